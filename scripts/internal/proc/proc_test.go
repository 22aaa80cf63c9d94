package proc

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

func TestProcessorTime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		stat string
		cpu  time.Duration
		ok   bool
	}{
		{"7 (go) S 3 7 7 0 -1 0 0 0 0 0 100 50 20 5 20 0 1 0", 1750 * time.Millisecond, true},
		{"7 (a) b (c) S 3 7 7 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0", 10 * time.Millisecond, true},
		{"7 (go) S 3", 0, false},
		{"7 (go) S 3 7 7 0 -1 0 0 0 0 0 x 0 0 0 20 0 1 0", 0, false},
		{"", 0, false},
	} {
		cpu, ok := processorTime(statFields(tt.stat))
		if cpu != tt.cpu || ok != tt.ok {
			t.Errorf("%q: got %v, %v, want %v, %v", tt.stat, cpu, ok, tt.cpu, tt.ok)
		}
	}
}

// A child is seen until it has ended, whether or not anybody has waited for it.
func TestChild(t *testing.T) {
	t.Parallel()
	child := exec.CommandContext(t.Context(), "sh", "-c", "read line; exit 0")
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	pid := child.Process.Pid
	if !Alive(pid) || !slices.Contains(Children(os.Getpid()), pid) || Memory(pid, "RssAnon", "RssFile") <= 0 {
		t.Errorf("alive: %t, among children: %v, memory: %d", Alive(pid), Children(os.Getpid()), Memory(pid, "RssAnon", "RssFile"))
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a process that has ended is not alive", func() bool { return !Alive(pid) })
	_ = child.Wait() // the read fails at its end
	if _, ok := CPU(pid); ok {
		t.Error("a process that is gone has used processors")
	}
}
