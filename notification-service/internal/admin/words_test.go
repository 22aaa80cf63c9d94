package admin_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/cityconnect/cityconnect/platform/audit"
)

// The console has words for all that it may list of what operators did, in both
// languages.
func TestEveryActionHasWords(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "id"} {
		file, err := os.ReadFile("../web/app/src/lang/console." + language + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var words map[string]string
		if err := json.Unmarshal(file, &words); err != nil {
			t.Fatal(err)
		}
		for _, action := range audit.Actions() {
			if words["act."+string(action)] == "" {
				t.Errorf("console.%s.json has no words for act.%s", language, action)
			}
		}
	}
}
