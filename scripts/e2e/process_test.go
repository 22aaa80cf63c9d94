package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A process is a service that a test starts, breaks and starts again.
type process struct {
	t    *testing.T
	path string
	env  map[string]string
	log  output // of all its lives

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has ended
}

func newProcess(t *testing.T, name string, env map[string]string) *process {
	p := &process{t: t, path: filepath.Join(binaries, name), env: env}
	p.log.parts = 2 // for everyone, and for operators
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the end of %s's log:\n%s", name, p.log.tail(30))
		}
	})
	return p
}

// start starts the service and returns once it serves.
func (p *process) start() {
	p.t.Helper()
	serving := p.launch()
	select {
	case <-serving:
	case <-p.exited:
		p.t.Fatalf("%s ended instead of serving", filepath.Base(p.path))
	case <-time.After(eventually.Patience):
		p.t.Fatalf("%s does not serve", filepath.Base(p.path))
	}
}

// launch starts the service and returns a channel that closes once it serves.
func (p *process) launch() (serving <-chan struct{}) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	serving = p.log.expectAddr()
	p.cmd = exec.Command(p.path)
	for name, value := range p.env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatalf("start: %v", err)
	}
	cmd, exited := p.cmd, make(chan struct{})
	p.exited = exited
	go func() {
		_ = cmd.Wait() // the state says how it ended
		close(exited)
	}()
	return serving
}

// url returns where the service serves; it is another one after each start.
func (p *process) url() string { return "http://" + p.log.addr("") }

// operations returns where it serves operators, who are all that the worker serves.
func (p *process) operations() string {
	return "http://" + cmp.Or(p.log.addr("operations"), p.log.addr(""))
}

// peakMemory returns how many bytes of memory the service has had at most since its
// start.
func (p *process) peakMemory() int64 {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatalf("memory of %s: %v", filepath.Base(p.path), err)
	}
	var kilobytes int64
	_, rest, _ := strings.Cut(string(status), "\nVmHWM:")
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		p.t.Fatalf("memory of %s: %v", filepath.Base(p.path), err)
	}
	return kilobytes << 10
}

// kill ends the service as a crash would.
func (p *process) kill() { p.signal(syscall.SIGKILL) }

// terminate asks the service to end, and returns its exit code and how long
// it took.
func (p *process) terminate() (code int, took time.Duration) {
	start := time.Now()
	p.signal(syscall.SIGTERM)
	return p.cmd.ProcessState.ExitCode(), time.Since(start)
}

func (p *process) signal(sig os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || p.cmd.Process == nil {
		return
	}
	_ = p.cmd.Process.Signal(sig) // it may have ended already
	select {
	case <-p.exited:
	case <-time.After(eventually.Patience):
		p.t.Errorf("%s did not end after %v", filepath.Base(p.path), sig)
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// An output keeps what a process wrote and notices where it serves.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	line    bytes.Buffer
	parts   int               // how many serve
	where   map[string]string // by the part that serves
	serving chan struct{}     // closed once all parts do
}

// expectAddr forgets the addresses; the channel closes with the next ones.
func (o *output) expectAddr() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.where, o.serving = make(map[string]string), make(chan struct{})
	return o.serving
}

// Write keeps b.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(b)
	for line := range bytes.Lines(b) {
		o.line.Write(line)
		if bytes.HasSuffix(line, []byte("\n")) {
			o.noticeLocked()
			o.line.Reset()
		}
	}
	return len(b), nil
}

func (o *output) noticeLocked() {
	var entry struct{ Message, Addr, Part string }
	if json.Unmarshal(o.line.Bytes(), &entry) != nil || entry.Message != "serving" {
		return
	}
	o.where[entry.Part] = entry.Addr
	if len(o.where) == o.parts {
		close(o.serving)
	}
}

func (o *output) addr(part string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.where[part]
}

// String returns everything that was written.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// tail returns the last lines, without the access log.
func (o *output) tail(n int) string {
	lines := slices.DeleteFunc(strings.Split(o.String(), "\n"), func(line string) bool {
		return strings.Contains(line, `"message":"request"`)
	})
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// messages returns the log lines with the given message.
func (o *output) messages(message string) []string {
	lines := strings.Split(o.String(), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, `"message":"`+message+`"`) })
}
