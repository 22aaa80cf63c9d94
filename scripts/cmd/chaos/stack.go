package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// Pauses are longer than the heartbeats, so that a paused process is noticed.
	minPause, maxPause = 8 * time.Second, 20 * time.Second
	// restoreTries bounds how often the stack is asked to start what is missing.
	restoreTries = 5
)

// A stack is the native one, whose processes are known by their pid files.
type stack struct {
	dir     string // has a pid file for each process
	program string // scripts/stack
}

// A fault breaks something, and brings it back before it returns.
type fault func(ctx context.Context, s *stack, random *rand.Rand) error

// kinds has every kind of fault. "report" and "notification" are one replica,
// chosen at random.
var kinds = map[string]fault{
	"report-kill":           end("report", syscall.SIGKILL),
	"report-stop":           end("report", syscall.SIGTERM),
	"report-pause":          pause("report"),
	"notification-kill":     end("notification", syscall.SIGKILL),
	"notification-stop":     end("notification", syscall.SIGTERM),
	"notification-pause":    pause("notification"),
	"rabbitmq-kill":         end("rabbitmq", syscall.SIGKILL),
	"rabbitmq-stop":         end("rabbitmq", syscall.SIGTERM),
	"rabbitmq-pause":        pause("rabbitmq"),
	"postgres-kill":         end("postgres", syscall.SIGKILL),
	"postgres-stop":         end("postgres", syscall.SIGINT),
	"postgres-pause":        pause("postgres"),
	"postgres-backend-kill": killChild("postgres", "postgres: "),
	"gateway-kill":          end("gateway", syscall.SIGKILL),
	"gateway-stop":          end("gateway", syscall.SIGTERM),
	"gateway-worker-kill":   killChild("gateway", "nginx: worker"),
}

func kindNames() []string { return slices.Sorted(maps.Keys(kinds)) }

// end sends the signal, waits until the process is gone, and has the stack
// start what is missing.
func end(name string, sig syscall.Signal) fault {
	return func(ctx context.Context, s *stack, random *rand.Rand) error {
		pid, err := s.pid(name, random)
		if err != nil {
			return err
		}
		if err := syscall.Kill(pid, sig); err != nil {
			return fmt.Errorf("send %v to %d: %w", sig, pid, err)
		}
		for alive(pid) {
			if err := sleep(ctx, 50*time.Millisecond); err != nil {
				return err
			}
		}
		return s.restore(ctx)
	}
}

// pause stops the process and its children for a while.
func pause(name string) fault {
	return func(ctx context.Context, s *stack, random *rand.Rand) error {
		pid, err := s.pid(name, random)
		if err != nil {
			return err
		}
		family := append([]int{pid}, children(pid)...)
		for _, p := range family {
			_ = syscall.Kill(p, syscall.SIGSTOP) // a backend may have ended meanwhile
		}
		err = sleep(ctx, minPause+rand.N(maxPause-minPause))
		for _, p := range family {
			_ = syscall.Kill(p, syscall.SIGCONT)
		}
		return err
	}
}

// killChild kills one child whose command line begins with title. Its parent
// sees to the rest.
func killChild(name, title string) fault {
	return func(_ context.Context, s *stack, random *rand.Rand) error {
		pid, err := s.pid(name, random)
		if err != nil {
			return err
		}
		candidates := slices.DeleteFunc(children(pid), func(child int) bool {
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
			// PostgreSQL's own processes are not those of a client.
			return err != nil || !strings.HasPrefix(string(line), title) || name == "postgres" && !strings.Contains(string(line), "127.0.0.1")
		})
		if len(candidates) == 0 {
			return fmt.Errorf("%s has no child %q", name, title)
		}
		return syscall.Kill(candidates[random.IntN(len(candidates))], syscall.SIGKILL)
	}
}

// pid returns the process called name, or one of its replicas.
func (s *stack) pid(name string, random *rand.Rand) (int, error) {
	files, _ := filepath.Glob(filepath.Join(s.dir, name+"-[0-9]*.pid")) // the pattern is well formed
	if len(files) == 0 {
		files = []string{filepath.Join(s.dir, name+".pid")}
	}
	text, err := os.ReadFile(files[random.IntN(len(files))])
	if err != nil {
		return 0, fmt.Errorf("find the process %s of the native stack: %w", name, err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return 0, fmt.Errorf("pid file of %s: %w", name, err)
	}
	return pid, nil
}

// restore has the stack start what is missing.
func (s *stack) restore(ctx context.Context) error {
	var errs error
	for range restoreTries {
		out, err := exec.CommandContext(ctx, s.program, "up").CombinedOutput()
		if err == nil {
			return nil
		}
		errs = errors.Join(errs, fmt.Errorf("%s up: %w: %s", s.program, err, out))
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	return errs
}

func alive(pid int) bool {
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(state), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func children(pid int) (pids []int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	for field := range strings.FieldsSeq(string(text)) {
		if child, err := strconv.Atoi(field); err == nil {
			pids = append(pids, child)
		}
	}
	return pids
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
