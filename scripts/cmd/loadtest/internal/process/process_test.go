package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A group counts what its process started, and is gone with the process.
func TestGroup(t *testing.T) {
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), "sh", "-c", "read line; exit 0")
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for name, pid := range map[string]int{"all": os.Getpid(), "child": child.Process.Pid} {
		if err := os.WriteFile(filepath.Join(dir, name+".pid"), fmt.Appendf(nil, "%d\n123\n", pid), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	groups := Stack(dir)
	if len(groups) != 2 || groups[0].Name != "all" || groups[1].Name != "child" {
		t.Fatalf("got %d groups, want all and child", len(groups))
	}
	all, okAll := groups[0].Sample()
	one, okOne := groups[1].Sample()
	if !okAll || !okOne || one.Memory <= 0 || all.Memory <= one.Memory {
		t.Errorf("got %+v and %+v, want the child's memory in the parent's", all, one)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // the read fails at its end
	if _, ok := groups[1].Sample(); ok {
		t.Error("a process that ended is still there")
	}
}
