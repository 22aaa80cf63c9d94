package api

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A preview says of a status what the page says.
func TestPreviewSaysWhatThePageSays(t *testing.T) {
	t.Parallel()
	for language, words := range previewWords {
		data, err := os.ReadFile("../../../notification-service/internal/web/app/src/lang/page." + language + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var page map[string]string
		if err := json.Unmarshal(data, &page); err != nil {
			t.Fatal(err)
		}
		for key, want := range page {
			status, ok := strings.CutPrefix(key, "status.")
			if !ok {
				continue
			}
			view := report.View{}
			view.Status = report.Status(status)
			if got := strings.Trim(words.describe(view, ""), " ·"); got != want {
				t.Errorf("%s in %s is %q, want %q as on the page", key, language, got, want)
			}
		}
	}
}
