//go:build linux

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

	"github.com/cityconnect/cityconnect/platform/testing/devserver"
	"github.com/cityconnect/cityconnect/scripts/internal/proc"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

const (
	// A pause is shorter than any heartbeat, so that nobody notices and the process
	// wakes up with all that it had, or longer than all of them, so that others
	// have taken over. Either is as likely as the other.
	minShortPause, maxShortPause = time.Second, 4 * time.Second
	minLongPause, maxLongPause   = 10 * time.Second, 20 * time.Second
	// restoreTries bounds how often the stack is asked to start something.
	// Each try but the first is counted as a failed start.
	restoreTries = 5
	// cutPatience is how long a process that is to be cut may have no connections.
	cutPatience = time.Minute
)

// A stack is the native one, whose processes are known by their pid files.
type stack struct {
	dir     string           // has a pid file for each process
	program string           // scripts/stack
	kinds   map[string]fault // of what this stack has
	nodes   []node           // of a PostgreSQL cluster; none if there is one server
	brokers []broker         // of a RabbitMQ cluster; none if there is one server

	failedStarts int // how often it was asked in vain to start something
	rejoined     int // how often a RabbitMQ node was started again because it did not find the others
}

// A fault breaks something, and brings it back before it returns.
type fault func(ctx context.Context, s *stack, random *rand.Rand) error

// A target is what a fault breaks: the processes, the first one first.
type target func(s *stack, random *rand.Rand) ([]int, error)

// openStack finds out what there is to break.
func openStack(dir, program string) (*stack, error) {
	s := &stack{dir: dir, program: program, kinds: maps.Clone(kinds)}
	var err error
	if s.nodes, err = findNodes(dir); err != nil {
		return nil, err
	}
	if len(s.nodes) > 0 {
		s.replaceKinds("postgres-", nodeKinds)
	}
	if s.brokers, err = findBrokers(dir); err != nil {
		return nil, err
	}
	if len(s.brokers) > 0 {
		s.replaceKinds("rabbitmq-", brokerKinds)
	}
	return s, nil
}

// replaceKinds puts the faults of a cluster in the place of those of one server.
func (s *stack) replaceKinds(prefix string, of map[string]fault) {
	maps.DeleteFunc(s.kinds, func(name string, _ fault) bool { return strings.HasPrefix(name, prefix) })
	maps.Copy(s.kinds, of)
}

// kinds has every kind of fault of a stack with one PostgreSQL and one RabbitMQ.
// "report", "notification" and "photo" are one replica, chosen at random.
var kinds = map[string]fault{
	"report-kill":            end("report", syscall.SIGKILL),
	"report-stop":            end("report", syscall.SIGTERM),
	"report-pause":           pause(whole("report")),
	"report-cut":             cut(whole("report")),
	"notification-kill":      end("notification", syscall.SIGKILL),
	"notification-stop":      end("notification", syscall.SIGTERM),
	"notification-pause":     pause(whole("notification")),
	"notification-cut":       cut(whole("notification")),
	"photo-kill":             end("photo", syscall.SIGKILL),
	"photo-stop":             end("photo", syscall.SIGTERM),
	"photo-pause":            pause(whole("photo")),
	"photo-cut":              cut(whole("photo")),
	"rabbitmq-kill":          end("rabbitmq", syscall.SIGKILL),
	"rabbitmq-stop":          end("rabbitmq", syscall.SIGTERM),
	"rabbitmq-pause":         pause(whole("rabbitmq")),
	"rabbitmq-cut":           cut(whole("rabbitmq")),
	"postgres-kill":          end("postgres", syscall.SIGKILL),
	"postgres-stop":          end("postgres", syscall.SIGINT),
	"postgres-pause":         pause(whole("postgres")),
	"postgres-cut":           cut(whole("postgres")),
	"postgres-backend-kill":  kill(child("postgres", "postgres: ")),
	"postgres-backend-pause": pause(child("postgres", "postgres: ")),
	"postgres-backend-cut":   cut(child("postgres", "postgres: ")),
	"gateway-kill":           end("gateway", syscall.SIGKILL),
	"gateway-stop":           end("gateway", syscall.SIGTERM),
	"gateway-pause":          pause(whole("gateway")),
	"gateway-cut":            cut(whole("gateway")),
	"gateway-worker-kill":    kill(child("gateway", "nginx: worker")),
	"gateway-worker-pause":   pause(child("gateway", "nginx: worker")),
	"gateway-worker-cut":     cut(child("gateway", "nginx: worker")),
}

// end sends the signal, waits until the process is gone, and has the stack
// start it again, or all that depends on it if that was a server.
func end(name string, sig syscall.Signal) fault {
	return func(ctx context.Context, s *stack, random *rand.Rand) error {
		file := s.pidFile(name, random)
		pid, err := proc.ReadPID(file)
		if err != nil {
			return err
		}
		if err := endProcess(ctx, pid, sig); err != nil {
			return err
		}
		switch process := strings.TrimSuffix(filepath.Base(file), ".pid"); process {
		case "postgres", "rabbitmq": // another program may have taken its port
			return s.restore(ctx)
		default:
			return s.start(ctx, process)
		}
	}
}

func endProcess(ctx context.Context, pid int, sig syscall.Signal) error {
	if err := syscall.Kill(pid, sig); err != nil {
		return fmt.Errorf("send %v to %d: %w", sig, pid, err)
	}
	for proc.Alive(pid) {
		if err := wait.For(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// pause stops the processes for a while.
func pause(what target) fault {
	return func(ctx context.Context, s *stack, random *rand.Rand) error {
		pids, err := what(s, random)
		if err != nil {
			return err
		}
		return freeze(ctx, pids, while(random))
	}
}

// while is how long a pause or a partition lasts.
func while(random *rand.Rand) time.Duration {
	if random.IntN(2) == 0 {
		return between(random, minLongPause, maxLongPause)
	}
	return between(random, minShortPause, maxShortPause)
}

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}

// freeze stops the processes for so long.
func freeze(ctx context.Context, pids []int, length time.Duration) error {
	err := devserver.Freeze(pids...)
	if err == nil {
		err = wait.For(ctx, length)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGCONT) // a backend may have ended by itself
	}
	return err
}

// kill kills a process whose parent sees to the rest.
func kill(what target) fault {
	return func(_ context.Context, s *stack, random *rand.Rand) error {
		pids, err := what(s, random)
		if err != nil {
			return err
		}
		return syscall.Kill(pids[0], syscall.SIGKILL)
	}
}

// cut ends all connections of the processes, in the middle of what they carry.
// Their owners have to open others.
func cut(what target) fault {
	return func(ctx context.Context, s *stack, random *rand.Rand) error {
		for began := time.Now(); ; {
			pids, err := what(s, random)
			if err != nil {
				return err
			}
			n, err := s.cut(pids)
			if err != nil || n > 0 {
				return err
			}
			// As a worker of the gateway, when clients have all come to the others.
			if time.Since(began) > cutPatience {
				return fmt.Errorf("processes %v have no connections", pids)
			}
			if err := wait.For(ctx, 50*time.Millisecond); err != nil {
				return err
			}
		}
	}
}

// cut returns how many connections of the processes it ended.
func (s *stack) cut(pids []int) (int, error) {
	spared, err := s.port("epmd")
	if err != nil {
		return 0, err
	}
	sockets, err := cuttable(pids[0], spared) // of one network
	if err != nil {
		return 0, err
	}
	sum := 0
	for _, pid := range pids {
		n, err := cutConnections(pid, sockets)
		if err != nil {
			return sum, fmt.Errorf("cut the connections of %d: %w", pid, err)
		}
		sum += n
	}
	return sum, nil
}

// whole is a process and its children.
func whole(name string) target {
	return func(s *stack, random *rand.Rand) ([]int, error) {
		pid, err := s.pid(name, random)
		if err != nil {
			return nil, err
		}
		return append([]int{pid}, proc.Children(pid)...), nil
	}
}

// child is one child, chosen at random, whose command line begins with title.
func child(name, title string) target {
	return func(s *stack, random *rand.Rand) ([]int, error) {
		pid, err := s.pid(name, random)
		if err != nil {
			return nil, err
		}
		candidates := slices.DeleteFunc(proc.Children(pid), func(child int) bool {
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
			// PostgreSQL's own processes are not those of a client.
			return err != nil || !strings.HasPrefix(string(line), title) || name == "postgres" && !strings.Contains(string(line), "127.0.0.1")
		})
		if len(candidates) == 0 {
			return nil, fmt.Errorf("%s has no child %q: process %d (alive: %t) has the children %v", name, title, pid, proc.Alive(pid), proc.Children(pid))
		}
		return candidates[random.IntN(len(candidates)):][:1], nil
	}
}

// pid returns the process called name, or one of its replicas.
func (s *stack) pid(name string, random *rand.Rand) (int, error) {
	return proc.ReadPID(s.pidFile(name, random))
}

// pidFile returns the pid file of the process called name, or of one of its
// replicas.
func (s *stack) pidFile(name string, random *rand.Rand) string {
	files, _ := filepath.Glob(filepath.Join(s.dir, name+"-[0-9]*.pid")) // the pattern is well formed
	if len(files) == 0 {
		return filepath.Join(s.dir, name+".pid")
	}
	return files[random.IntN(len(files))]
}

// port returns a port of the stack's servers, such as that of epmd.
func (s *stack) port(name string) (int, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, "ports"))
	if err != nil {
		return 0, fmt.Errorf("read the ports of the native stack: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+"_port="); ok {
			return strconv.Atoi(value)
		}
	}
	return 0, fmt.Errorf("the native stack has no port of %s", name)
}

// restore has the stack start what is missing.
func (s *stack) restore(ctx context.Context) error { return s.run(ctx, "up") }

// start has the stack start a replica, the gateway, or a node of a cluster, and
// nothing else.
func (s *stack) start(ctx context.Context, name string) error { return s.run(ctx, "start", name) }

// run runs a command of the stack. A start that fails and succeeds when it is
// repeated is a fault of the stack's own: it is said and counted. A start is not cut
// short when ctx ends, because it would leave a server that nobody knows of.
func (s *stack) run(ctx context.Context, command ...string) error {
	var errs error
	for try := range restoreTries {
		out, err := exec.CommandContext(context.WithoutCancel(ctx), s.program, command...).CombinedOutput()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.failedStarts++
		fmt.Fprintf(os.Stderr, "\nchaos: %s %v failed, try %d of %d: %v\n%s", s.program, command, try+1, restoreTries, err, out)
		errs = errors.Join(errs, fmt.Errorf("%s %v: %w: %s", s.program, command, err, out))
		if err := wait.For(ctx, time.Second); err != nil {
			return err
		}
	}
	return errs
}
