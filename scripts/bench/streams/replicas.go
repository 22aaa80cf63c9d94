//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/proc"
)

// A service is replicas of the hub, each with a crowd of clients in a process of
// its own.
type service struct {
	hub           string
	reconnectRate int // of each replica
	replicas      []*replica
}

// A replica is a hub that runs, and its clients.
type replica struct {
	*testbed.Process
	history string
	clients *exec.Cmd
	asks    io.Writer
	answers *bufio.Reader
	status  status
}

// start builds the hub and starts replicas, to each of which so many clients a
// second come back at most.
func start(ctx context.Context, b *testbed.Bed, replicas, reconnectRate int) (*service, error) {
	s := &service{reconnectRate: reconnectRate}
	dir, err := b.Dir()
	if err != nil {
		return nil, err
	}
	if s.hub, err = b.Build(ctx, "notification-service", "sse"); err != nil {
		return nil, err
	}
	b.Defer(func() error { s.stop(); return nil })
	for i := range replicas {
		r := &replica{history: filepath.Join(dir, fmt.Sprint("history-", i))}
		if r.Process, err = testbed.Start(ctx, func(addr string) *exec.Cmd { return s.command(r, addr) }, testbed.Listens); err != nil {
			return nil, err
		}
		s.replicas = append(s.replicas, r)
	}
	return s, nil
}

// command is the hub of a replica.
func (s *service) command(r *replica, addr string) *exec.Cmd {
	cmd := exec.Command(s.hub, "-addr", addr, "-history", r.history, "-reconnect-rate", strconv.Itoa(s.reconnectRate)) //nolint:gosec // the path is our own
	cmd.Stderr = os.Stderr
	return cmd
}

// stop ends everything.
func (s *service) stop() {
	for _, r := range s.replicas {
		for _, cmd := range []*exec.Cmd{r.clients, r.Cmd} {
			if cmd != nil && cmd.Process != nil {
				_ = cmd.Process.Kill() // it may have ended
				_ = cmd.Wait()         // by a signal, so this is an error
			}
		}
	}
}

// kill kills all replicas at once and starts them again, at the same addresses.
func (s *service) kill(ctx context.Context) error {
	for _, r := range s.replicas {
		if err := r.Cmd.Process.Kill(); err != nil {
			return err
		}
	}
	for _, r := range s.replicas {
		_ = r.Wait() // by a signal, so this is an error
		r.Cmd = s.command(r, r.Addr)
		if err := r.Start(); err != nil {
			return err
		}
		if err := r.Await(ctx, testbed.Listens); err != nil {
			return err
		}
	}
	return nil
}

// gather has clients open streams, as many of each replica.
func (s *service) gather(streams, perAddress int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for i, r := range s.replicas {
		first, next := streams*i/len(s.replicas), streams*(i+1)/len(s.replicas)
		r.clients = exec.Command(self, "-crowd", r.Addr, "-first", strconv.Itoa(first), //nolint:gosec // ourselves
			"-streams", strconv.Itoa(next-first), "-per-address", strconv.Itoa(perAddress))
		r.clients.Stderr = os.Stderr
		if r.asks, err = r.clients.StdinPipe(); err != nil {
			return err
		}
		answers, err := r.clients.StdoutPipe()
		if err != nil {
			return err
		}
		r.answers = bufio.NewReader(answers)
		if err := r.clients.Start(); err != nil {
			return err
		}
	}
	return nil
}

// ask has all crowds say how far they are.
func (s *service) ask() error {
	for _, r := range s.replicas {
		if _, err := io.WriteString(r.asks, "\n"); err != nil {
			return fmt.Errorf("clients ended: %w", err)
		}
		line, err := r.answers.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("clients ended: %w", err)
		}
		if err := json.Unmarshal(line, &r.status); err != nil {
			return err
		}
	}
	return nil
}

var errPatience = errors.New("not all in time")

// await returns when the last of the streams was open and had the last of the
// events.
func (s *service) await(streams, events int, patience time.Duration) (time.Time, error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if err := s.ask(); err != nil {
			return time.Time{}, err
		}
		open, received, last := 0, 0, int64(0)
		for _, r := range s.replicas {
			open += r.status.Open
			received += r.status.Received
			last = max(last, r.status.LastAt)
		}
		switch {
		case open == streams && received >= streams*events:
			return time.Unix(0, last), nil
		case time.Now().After(deadline):
			return time.Now(), fmt.Errorf("%w: %d of %d streams are open, with %d of %d events", errPatience, open, streams, received, streams*events)
		}
	}
}

// missing counts what did not come, and what came twice or in another order.
func (s *service) missing(streams, events int) (int, error) {
	if err := s.ask(); err != nil {
		return 0, err
	}
	missing := streams * events
	for _, r := range s.replicas {
		missing += r.status.Wrong - r.status.Received
	}
	return missing, nil
}

var publisher = &http.Client{Timeout: 30 * time.Second}

// publish sends the next event to all streams.
func (s *service) publish(events *int) error {
	*events++
	body := fmt.Sprintf(`{"n":%d,"pad":%q}`, *events, strings.Repeat("x", 160)) // as long as a notification
	var publishing sync.WaitGroup
	errs := make([]error, len(s.replicas))
	for i, r := range s.replicas {
		publishing.Go(func() {
			res, err := publisher.Post("http://"+r.Addr+"/pub-to-officials", "application/json", strings.NewReader(body))
			if err != nil {
				errs[i] = err
				return
			}
			_ = res.Body.Close() // it is empty
			if res.StatusCode/100 != 2 {
				errs[i] = fmt.Errorf("publish: %s", res.Status)
			}
		})
	}
	publishing.Wait()
	return errors.Join(errs...)
}

// collectGarbage has the replicas give back what they do not need.
func (s *service) collectGarbage() {
	for _, r := range s.replicas {
		if res, err := publisher.Get("http://" + r.Addr + "/gc"); err == nil {
			_ = res.Body.Close() // it is empty
		}
	}
}

// memory returns the resident memory of all replicas in KB.
func (s *service) memory() (sum int64) {
	for _, r := range s.replicas {
		sum += proc.Memory(r.Cmd.Process.Pid, "VmRSS") >> 10
	}
	return sum
}

// kernelMemory returns in KB what the kernel has for its own objects, of which
// sockets are some.
func kernelMemory() int64 {
	var pages, slab int64
	text, _ := os.ReadFile("/proc/net/sockstat") // always there on Linux
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "TCP:" {
			pages, _ = strconv.ParseInt(fields[len(fields)-1], 10, 64) // the kernel writes a number
		}
	}
	text, _ = os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "Slab:"); ok {
			slab, _ = strconv.ParseInt(strings.Fields(value)[0], 10, 64)
		}
	}
	return slab + pages*int64(os.Getpagesize())/1024
}
