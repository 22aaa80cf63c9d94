package devserver

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// freezeTime is far above what a busy machine needs to stop a process.
const freezeTime = 15 * time.Minute

// Freeze stops processes with SIGSTOP and returns once they stand still. A
// signal is only noted when kill returns: on a busy machine the threads of the
// process run on for a while, and do what a test takes to be impossible. A
// process that has ended counts as frozen; where the system has no /proc, one
// that was signalled does.
func Freeze(pids ...int) error {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP) // it may have ended by itself
	}
	ctx, cancel := context.WithTimeout(context.Background(), freezeTime)
	defer cancel()
	tick := time.Tick(time.Millisecond)
	for _, pid := range pids {
		for !frozen(pid) {
			select {
			case <-tick:
			case <-ctx.Done():
				return fmt.Errorf("process %d does not stop", pid)
			}
		}
	}
	return nil
}

// frozen reports whether no thread of a process can run.
func frozen(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*/stat", pid)) // its only error is a wrong pattern
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state …; the name may have anything in it.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 0 && !strings.Contains("TtZX", fields[0]) {
			return false
		}
	}
	return true
}
