package api

import (
	"os"
	"strings"
	"testing"
)

// The type of each problem leads to a heading of the page about them.
func TestProblemsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/problems.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !strings.Contains(string(page), "\n## "+p.Name+"\n") {
			t.Errorf("docs/problems.md has no section %q", p.Name)
		}
	}
}
