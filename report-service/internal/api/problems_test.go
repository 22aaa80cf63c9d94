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
	all := []string{notFailed.Name}
	for _, p := range problems {
		all = append(all, p.Name)
	}
	for _, name := range all {
		if !strings.Contains(string(page), "\n## "+name+"\n") {
			t.Errorf("docs/problems.md has no section %q", name)
		}
	}
}
