package client_test

import (
	"os"
	"strings"
	"testing"
)

// docs/clients.md shows the functions of the example, which is compiled here.
func TestManualShowsTheExample(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(manual), "```go\n")
	shown, _, found := strings.Cut(shown, "```")
	if !found {
		t.Fatal("docs/clients.md has no Go code")
	}
	for part := range strings.SplitSeq(strings.Replace(shown, "func main()", "func Example()", 1), "\n\n") {
		if !strings.Contains(string(example), strings.TrimSpace(part)) {
			t.Errorf("docs/clients.md shows what the example does not have:\n%s", part)
		}
	}
}
