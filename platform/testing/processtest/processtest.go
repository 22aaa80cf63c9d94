// Package processtest runs a program as a process of its own, which a test kills,
// stops, pauses and starts again.
//
// The program is the test binary itself, whose TestMain is
//
//	func TestMain(m *testing.M) { processtest.Main(m, main) }
//
// So nothing is built for it, and the race detector watches the program wherever
// it watches the tests: a race ends the process, which fails the test.
package processtest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/testing/devserver"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// marker is the environment variable that makes the test binary the program.
const marker = "PROCESSTEST_PROGRAM"

// Main runs program in the processes that tests start, and otherwise the tests.
// It does not return.
func Main(m *testing.M, program func()) {
	if os.Getenv(marker) == "" {
		os.Exit(m.Run())
	}
	program()
	os.Exit(0)
}

// Command returns the program as a command that runs with args and ends. It has
// nothing of the test's own environment but the PATH.
func Command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append([]string{marker + "=1", "PATH=" + os.Getenv("PATH"), "GORACE=halt_on_error=1 exitcode=66 atexit_sleep_ms=20"}, env...)
	return cmd
}

// A Config is what a program is started with.
type Config struct {
	// Address is the variable that tells the program where to serve.
	Address string
	// Ready is polled until it answers 200; /readyz if it is empty.
	Ready string
	// Env is the rest of the program's environment, as NAME=value. Of the
	// test's own environment it has nothing but the PATH.
	Env []string
}

// A Process is a program that runs, again and again at the same address. Its
// methods are for one goroutine at a time.
type Process struct {
	t      testing.TB
	cfg    Config
	addr   string
	cmd    *exec.Cmd     // nil while it does not run
	exited chan struct{} // closed once cmd has ended
	log    log           // of all its runs
}

// Start starts a program and returns once it is ready. It is killed when t ends,
// and its log is shown if t has failed.
func Start(t testing.TB, cfg Config) *Process {
	t.Helper()
	ports, err := devserver.FreePorts(1)
	if err != nil {
		t.Fatalf("processtest: %v", err)
	}
	if cfg.Ready == "" {
		cfg.Ready = "/readyz"
	}
	p := &Process{t: t, cfg: cfg, addr: fmt.Sprintf("127.0.0.1:%d", ports[0])}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the log of the process at %s:\n%s", p.addr, p.Log())
		}
	})
	p.Start()
	return p
}

// Start starts it again and returns once it is ready.
func (p *Process) Start() {
	p.t.Helper()
	p.cmd = Command(context.WithoutCancel(p.t.Context()), append([]string{p.cfg.Address + "=" + p.addr}, p.cfg.Env...))
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it ends with the test, however that ends
	if err := p.cmd.Start(); err != nil {
		p.cmd = nil
		p.t.Fatalf("processtest: start: %v", err)
	}
	cmd, exited := p.cmd, make(chan struct{})
	p.exited = exited
	go func() {
		_ = cmd.Wait() // its state says how it ended
		close(exited)
	}()
	eventually.True(p.t, "processtest: "+p.URL(p.cfg.Ready)+" answers 200", func() bool {
		select {
		case <-exited:
			p.t.Fatalf("processtest: it ended instead of being ready: %v", cmd.ProcessState)
		default:
		}
		return p.ready()
	})
}

func (p *Process) ready() bool {
	resp, err := http.Get(p.URL(p.cfg.Ready))
	if err != nil {
		return false
	}
	_ = resp.Body.Close() // nothing is read
	return resp.StatusCode == http.StatusOK
}

// Kill ends the process without warning, as a crash does. One that has not been
// started, or was ended by Kill or Stop, stays as it is; one that has ended by
// itself fails the test.
func (p *Process) Kill() {
	p.t.Helper()
	if p.cmd == nil {
		return
	}
	select {
	case <-p.exited:
		p.t.Errorf("processtest: it ended by itself: %v", p.cmd.ProcessState)
	default:
		_ = p.cmd.Process.Kill() // it may have ended this moment
		<-p.exited
	}
	p.cmd = nil
}

// Stop ends the process as an operator does, and returns its exit code.
func (p *Process) Stop() int {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(eventually.Patience):
		p.t.Errorf("processtest: it does not end after a SIGTERM")
		_ = p.cmd.Process.Kill() // it may have ended this moment
		<-p.exited
	}
	code := p.cmd.ProcessState.ExitCode()
	p.cmd = nil
	return code
}

// Pause stops the process and returns once it stands still.
func (p *Process) Pause() {
	p.t.Helper()
	if err := devserver.Freeze(p.cmd.Process.Pid); err != nil {
		p.t.Fatalf("processtest: %v", err)
	}
}

// Resume lets a paused process go on.
func (p *Process) Resume() {
	p.t.Helper()
	p.signal(syscall.SIGCONT)
}

func (p *Process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("processtest: signal %v: %v", s, err)
	}
}

// URL returns that of a path which the process serves.
func (p *Process) URL(path string) string { return "http://" + p.addr + path }

// Addr returns the host and port at which the process serves.
func (p *Process) Addr() string { return p.addr }

// Log returns what all runs of the process have written.
func (p *Process) Log() string { return p.log.String() }

// A log takes what a process writes while it is read.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
