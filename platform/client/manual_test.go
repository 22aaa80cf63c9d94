package client_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The program of docs/clients.md compiles as it is, and has the functions of the example.
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
	program := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(program, []byte(shown), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, program).CombinedOutput(); err != nil {
		t.Errorf("what docs/clients.md shows does not compile: %s", out)
	}
	_, shown, _ = strings.Cut(shown, "\n)\n\n") // the imports
	for part := range strings.SplitSeq(strings.Replace(shown, "func main()", "func Example()", 1), "\n\n") {
		if !strings.Contains(string(example), strings.TrimSpace(part)) {
			t.Errorf("docs/clients.md shows what the example does not have:\n%s", part)
		}
	}
}
