//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A service is replicas of the hub, each with a crowd of clients in a process of
// its own.
type service struct {
	hub, dir      string
	reconnectRate int // of each replica
	replicas      []*replica
}

// A replica is a hub that runs, and its clients.
type replica struct {
	addr, history string
	cmd           *exec.Cmd
	clients       *exec.Cmd
	asks          io.Writer
	answers       *bufio.Reader
	status        status
}

// start builds the hub and starts replicas, to each of which so many clients a
// second come back at most.
func start(dir string, replicas, reconnectRate int) (*service, error) {
	s := &service{hub: filepath.Join(dir, "hub"), dir: dir, reconnectRate: reconnectRate}
	build := exec.Command("go", "build", "-o", s.hub, "./bench/sse") //nolint:gosec // the path is our own
	build.Dir = "../../notification-service"
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build hub: %w\n%s", err, out)
	}
	for i := range replicas {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		r := &replica{addr: l.Addr().String(), history: filepath.Join(dir, strconv.Itoa(i))}
		_ = l.Close() // it only had to find a port
		s.replicas = append(s.replicas, r)
		if err := r.start(s.hub, s.reconnectRate); err != nil {
			s.stop()
			return nil, err
		}
	}
	return s, nil
}

// start starts the hub and waits until it answers.
func (r *replica) start(hub string, reconnectRate int) error {
	r.cmd = exec.Command(hub, "-addr", r.addr, "-history", r.history, "-reconnect-rate", strconv.Itoa(reconnectRate)) //nolint:gosec // the path is our own
	r.cmd.Stderr = os.Stderr
	if err := r.cmd.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("tcp", r.addr)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the hub does not answer: %w", err)
		}
	}
}

// stop ends everything.
func (s *service) stop() {
	for _, r := range s.replicas {
		for _, cmd := range []*exec.Cmd{r.clients, r.cmd} {
			if cmd != nil && cmd.Process != nil {
				_ = cmd.Process.Kill() // it may have ended
				_ = cmd.Wait()         // by a signal, so this is an error
			}
		}
	}
}

// kill kills all replicas at once and starts them again.
func (s *service) kill() error {
	for _, r := range s.replicas {
		if err := r.cmd.Process.Kill(); err != nil {
			return err
		}
	}
	for _, r := range s.replicas {
		_ = r.cmd.Wait() // by a signal, so this is an error
		if err := r.start(s.hub, s.reconnectRate); err != nil {
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
		r.clients = exec.Command(self, "-crowd", r.addr, "-first", strconv.Itoa(first), //nolint:gosec // ourselves
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
			res, err := publisher.Post("http://"+r.addr+"/pub-to-officials", "application/json", strings.NewReader(body))
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
		if res, err := publisher.Get("http://" + r.addr + "/gc"); err == nil {
			_ = res.Body.Close() // it is empty
		}
	}
}

// memory returns the resident memory of all replicas in KB.
func (s *service) memory() int {
	sum := 0
	for _, r := range s.replicas {
		sum += field(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid), "VmRSS:")
	}
	return sum
}

// kernelMemory returns in KB what the kernel has for its own objects, of which
// sockets are some.
func kernelMemory() int {
	pages := 0
	text, _ := os.ReadFile("/proc/net/sockstat") // always there on Linux
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "TCP:" {
			pages, _ = strconv.Atoi(fields[len(fields)-1]) // the kernel writes a number
		}
	}
	return field("/proc/meminfo", "Slab:") + pages*os.Getpagesize()/1024
}

// field returns a number of a file of procfs.
func field(path, name string) int {
	text, _ := os.ReadFile(path) //nolint:gosec // a process that has ended has none
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte(name)); ok {
			number, _ := strconv.Atoi(string(bytes.Fields(value)[0])) // the kernel writes a number
			return number
		}
	}
	return 0
}
