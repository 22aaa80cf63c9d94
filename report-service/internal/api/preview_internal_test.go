package api

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A preview says of a status and a category what the page says.
func TestPreviewSaysWhatThePageSays(t *testing.T) {
	t.Parallel()
	for language, words := range previewWords {
		data, err := os.ReadFile("../../../notification-service/internal/web/app/src/lang/" + language + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var page map[string]string
		if err := json.Unmarshal(data, &page); err != nil {
			t.Fatal(err)
		}
		for key, want := range page {
			var view report.View
			if status, ok := strings.CutPrefix(key, "status."); ok {
				view.Status = report.Status(status)
			} else if category, ok := strings.CutPrefix(key, "category-name."); ok {
				view.Category.Name = category
			} else {
				continue
			}
			if got := strings.Trim(words.describe(view), " ·"); got != want {
				t.Errorf("%s in %s is %q, want %q as on the page", key, language, got, want)
			}
		}
	}
}
