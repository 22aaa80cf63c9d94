package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ticksPerSecond is the unit of procfs.
const ticksPerSecond = 100

// A hub is notification-service/bench/sse of some revision, which runs.
type hub struct {
	cmd  *exec.Cmd
	addr string
}

// buildHub compiles this tree's.
func buildHub() (program string, cleanup func(), err error) {
	dir, err := os.MkdirTemp("", "bench-sse")
	if err != nil {
		return "", nil, err
	}
	cleanup = func() { _ = os.RemoveAll(dir) } // a leftover harms nobody
	program = filepath.Join(dir, "hub")
	build := exec.Command("go", "build", "-o", program, "./bench/sse")
	build.Dir = "../../notification-service"
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		cleanup()
		return "", nil, fmt.Errorf("build hub: %w\n%s", err, out)
	}
	return program, cleanup, nil
}

// startHub starts a program and returns once it listens.
func startHub(program string) (*hub, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	h := &hub{exec.Command(program, "-addr", addr), addr}
	h.cmd.Stderr = os.Stderr
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close() // it only had to open
			return h, nil
		}
		if time.Now().After(deadline) {
			h.stop()
			return nil, fmt.Errorf("did not start: %w", err)
		}
	}
}

func (h *hub) stop() {
	_ = h.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = h.cmd.Wait()                          // by a signal, so this is an error
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// memory returns the resident memory in KB.
func (h *hub) memory() int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.cmd.Process.Pid)) // one that has ended has none
	for line := range bytes.Lines(status) {
		if value, ok := bytes.CutPrefix(line, []byte("VmRSS:")); ok {
			kb, _ := strconv.Atoi(strings.Fields(string(value))[0]) // the kernel writes a number
			return kb
		}
	}
	return 0
}

// cpu returns the processor time that was used so far.
func (h *hub) cpu() time.Duration {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.cmd.Process.Pid)) // one that has ended has none
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) <= 12 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11]) // the kernel writes numbers
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * time.Second / ticksPerSecond
}

// collect has the hub give back what is garbage.
func (h *hub) collect() {
	if res, err := publisher.Get("http://" + h.addr + "/gc"); err == nil {
		_ = res.Body.Close() // it is empty
	}
}
