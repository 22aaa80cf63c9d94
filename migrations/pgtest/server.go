package pgtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/migrations"
)

// A Server is a PostgreSQL of one test alone, which may stop, kill and pause
// it. It keeps its port and its data over restarts.
type Server struct {
	t    testing.TB
	bin  string // folder of initdb and postgres
	dir  string
	port int
	cred *syscall.Credential // nil unless the test runs as root, which PostgreSQL refuses
	cmd  *exec.Cmd
}

// StartServer makes a server with a data folder of its own and starts it. It
// is killed when t ends.
func StartServer(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, bin: binFolder(t), port: freePort(t)}
	// Not t.TempDir: its name can exceed what a socket path holds, and its
	// parents are closed to the unprivileged user.
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		t.Fatalf("pgtest: make folder: %v", err)
	}
	s.dir = dir
	t.Cleanup(func() { os.RemoveAll(dir) })
	s.dropRoot()
	out, err := s.command("initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "-D", s.data()).CombinedOutput()
	if err != nil {
		t.Fatalf("pgtest: initdb: %v\n%s", err, out)
	}
	t.Cleanup(s.Kill)
	s.Start()
	return s
}

// URL returns the superuser's URL of the database called name.
func (s *Server) URL(name string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, name)
}

// Create makes a migrated database on this server and returns its URL.
func (s *Server) Create(db migrations.Database) string {
	s.t.Helper()
	return Create(s.t, s.URL("postgres"), db)
}

// Start starts a stopped server and returns once it answers.
func (s *Server) Start() {
	s.t.Helper()
	s.cmd = s.command("postgres", "-D", s.data(), "-p", strconv.Itoa(s.port), "-k", s.dir,
		"-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200", "-c", "logging_collector=off")
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatalf("pgtest: open log: %v", err)
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("pgtest: start: %v", err)
	}
	s.waitReady()
}

// Stop ends the server cleanly and at once: open transactions are rolled back.
func (s *Server) Stop() { s.end(syscall.SIGINT) } // "fast shutdown"

// Kill ends the server as a power cut would. Killing a stopped one does nothing.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Pause freezes the server and every connection to it, until Resume.
func (s *Server) Pause() { s.signalAll(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *Server) Resume() { s.signalAll(syscall.SIGCONT) }

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) end(signal syscall.Signal) {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	workers := s.children()
	s.signalAll(syscall.SIGCONT) // a paused process takes no SIGINT
	_ = s.cmd.Process.Signal(signal)
	_ = s.cmd.Wait() // its exit code says only how we ended it
	if signal == syscall.SIGKILL {
		for _, pid := range workers {
			_ = syscall.Kill(pid, signal)
		}
	}
	s.waitGone()
	s.cmd = nil
}

// waitGone waits for the last of the server's processes: one that forked just
// before a kill holds the shared memory until it notices, and until then the
// server does not start again. All of them work in the data folder.
func (s *Server) waitGone() {
	deadline, tick := time.After(setupTimeout), time.Tick(5*time.Millisecond)
	for s.lives() {
		select {
		case <-tick:
		case <-deadline:
			s.t.Error("pgtest: the server's processes do not end")
			return
		}
	}
}

func (s *Server) lives() bool {
	folders, _ := filepath.Glob("/proc/[0-9]*/cwd") // its only error is a wrong pattern
	return slices.ContainsFunc(folders, func(link string) bool {
		folder, err := os.Readlink(link)
		return err == nil && folder == s.data()
	})
}

func (s *Server) signalAll(signal syscall.Signal) {
	for _, pid := range append(s.children(), s.cmd.Process.Pid) {
		_ = syscall.Kill(pid, signal) // it may have ended meanwhile
	}
}

// children lists the server's worker processes. Each is a session of its own,
// so that signalling the process group would miss them.
func (s *Server) children() []int {
	pid := s.cmd.Process.Pid
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	var pids []int
	for _, field := range strings.Fields(string(content)) {
		if child, err := strconv.Atoi(field); err == nil {
			pids = append(pids, child)
		}
	}
	return pids
}

func (s *Server) waitReady() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), setupTimeout)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			_ = conn.Close(ctx)
			return
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			s.t.Fatalf("pgtest: server does not answer: %v\n%s", err, log)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setpgid: true}
	return cmd
}

// dropRoot picks the distribution's postgres user when the test runs as root.
func (s *Server) dropRoot() {
	if os.Getuid() != 0 {
		return
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		s.t.Fatalf("pgtest: running as root needs the distribution's postgres user: %v", err)
	}
	uid, _ := strconv.Atoi(account.Uid)
	gid, _ := strconv.Atoi(account.Gid)
	if err := os.Chown(s.dir, uid, gid); err != nil {
		s.t.Fatalf("pgtest: give folder to postgres: %v", err)
	}
	s.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// binFolder finds the newest installed server, or the one on the PATH.
func binFolder(t testing.TB) string {
	t.Helper()
	if found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); err == nil && len(found) > 0 {
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return majorOf(a) - majorOf(b) }))
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		t.Fatal("pgtest: no PostgreSQL server is installed: run `make test`, which installs it")
	}
	return filepath.Dir(path)
}

func majorOf(initdb string) int {
	major, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb))))
	return major
}

func freePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("pgtest: find a port: %v", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
