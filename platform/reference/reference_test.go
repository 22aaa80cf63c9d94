package reference_test

import (
	"os"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/reference"
)

// Each operation, message and schema of the documents has its heading.
func TestPages(t *testing.T) {
	t.Parallel()
	pages, err := reference.Pages(os.DirFS("../../docs"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"report-service": {
			"### POST /reports\n", "### Schema: NewReport\n", "| field | type | required | meaning |\n",
			"Roles: `operator`.", "Needs no sign-in.", "1 to 80 characters", "[Status](#schema-status)",
		},
		"notification-service": {"### GET /notifications\n", "## Headers\n", "```json\n"},
		"messages":             {"| `queue.status_updates` |", "Routing key: `report.created`."},
	} {
		for _, part := range want {
			if !strings.Contains(pages[name], part) {
				t.Errorf("%s has no %q", name, part)
			}
		}
	}
}
