//go:build linux

package main

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/scripts/internal/proc"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

// The stack starts again what was killed, however late that is reaped: a zombie that
// was reaped while the stack looked was once taken for alive.
func TestEndedProcessIsNotRunning(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sleep.pid")
	for i := range 50 {
		process := exec.Command("sleep", "3600")
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		pid := process.Process.Pid
		if err := stackDoes(`printf '%s\n' "$0" "$(birth "$0")" >"$1"`, strconv.Itoa(pid), file).Run(); err != nil {
			t.Fatalf("note the process: %v", err)
		}
		if err := stackDoes(`running "$0"`, file).Run(); err != nil {
			t.Fatalf("a process that is alive is not running: %v", err)
		}
		if err := process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "the process has ended", func() bool { return !proc.Alive(pid) })
		look := stackDoes(`running "$0"`, file)
		if err := look.Start(); err != nil {
			t.Fatal(err)
		}
		// It is reaped at another moment of the look each time.
		if err := wait.For(t.Context(), time.Duration(i)*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		_ = process.Wait() // killed, so this is an error
		_ = look.Wait()    // its exit code is what counts
		if code := look.ProcessState.ExitCode(); code != 1 {
			t.Fatalf("look %d at a process that has ended: exit code %d, want 1", i, code)
		}
	}
}

// stackDoes has the stack's functions for processes run a script with arguments.
func stackDoes(script string, args ...string) *exec.Cmd {
	return exec.Command("bash", append([]string{"-c", "source ../../stack.d/process.sh && " + script}, args...)...)
}
