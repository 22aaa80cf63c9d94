package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/platform/testing/devserver"
)

// A Server is a PostgreSQL of one test alone, which may stop, kill and pause
// it. It keeps its port and its data over restarts.
type Server struct {
	t   testing.TB
	own devserver.Postgres
	log string
	cmd *exec.Cmd
}

// StartServer makes a server with a data folder of its own and starts it. It
// is killed when t ends.
func StartServer(t testing.TB) *Server {
	t.Helper()
	return StartServerTLS(t, devserver.TLS{})
}

// StartServerTLS starts one that takes connections over TLS, too.
func StartServerTLS(t testing.TB, tls devserver.TLS) *Server {
	t.Helper()
	return startServer(t, devserver.Postgres{TLS: tls})
}

// StartServerWithArchive starts one that keeps its whole log, so that it can be
// recovered to any moment after a BaseBackup.
func StartServerWithArchive(t testing.TB) *Server {
	t.Helper()
	return startServer(t, devserver.Postgres{Archive: true})
}

// StartServerOnSmallDisk starts one whose data are on a disk of that many megabytes, and
// returns its folder, in which another file may take the rest. Only root may.
func StartServerOnSmallDisk(t testing.TB, megabytes int) (s *Server, dir string) {
	t.Helper()
	s = newServer(t, devserver.Postgres{})
	if err := syscall.Mount("tmpfs", s.own.Dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=755", megabytes)); err != nil {
		t.Skipf("mounting a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(s.own.Dir, syscall.MNT_DETACH) })
	s.prepare()
	return s, s.own.Dir
}

func startServer(t testing.TB, own devserver.Postgres) *Server {
	t.Helper()
	s := newServer(t, own)
	s.prepare()
	return s
}

// prepare makes the data folder, and starts the server.
func (s *Server) prepare() {
	s.t.Helper()
	if err := s.own.Prepare(s.t.Context()); err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
	s.t.Cleanup(s.Kill)
	s.Start()
}

// newServer chooses a port and a folder.
func newServer(t testing.TB, own devserver.Postgres) *Server {
	t.Helper()
	ports, err := devserver.FreePorts(1)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	// In memory where the tests' servers have theirs. It is not t.TempDir, whose parents
	// are closed to the server's account.
	dir, err := os.MkdirTemp(os.Getenv("TEST_DATA"), "pgtest")
	if err != nil {
		t.Fatalf("pgtest: make folder: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	own.Dir, own.Port, own.Settings = dir, ports[0], []string{"max_connections=200"}
	return &Server{t: t, log: filepath.Join(dir, "log"), own: own}
}

// URL returns the superuser's URL of the database called name.
func (s *Server) URL(name string) string { return s.own.URL(name) }

// Create makes a migrated database on this server and returns its URL. It goes with the
// server, which may be paused when the test ends.
func (s *Server) Create(db migrations.Database) string {
	s.t.Helper()
	address, _ := create(s.t, s.URL("postgres"), db)
	return address
}

// Log returns what the server has logged so far.
func (s *Server) Log() string {
	s.t.Helper()
	text, err := os.ReadFile(s.log)
	if err != nil {
		s.t.Fatalf("pgtest: read log: %v", err)
	}
	return string(text)
}

// Start starts a stopped server and returns once it answers.
func (s *Server) Start() {
	s.t.Helper()
	cmd, err := s.own.Command()
	if err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatalf("pgtest: open log: %v", err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("pgtest: start: %v", err)
	}
	s.cmd = cmd
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), setupTimeout)
	defer cancel()
	for s.own.Ready(ctx) != nil {
		select {
		case <-ctx.Done():
			text, _ := os.ReadFile(s.log)
			s.t.Fatalf("pgtest: the server does not answer\n%s", text)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// BaseBackup copies the server, in the place of an earlier copy.
func (s *Server) BaseBackup() {
	s.t.Helper()
	if err := s.own.BaseBackup(s.t.Context()); err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
}

// Recover brings a server that was killed or stopped back to a moment after its
// BaseBackup, which its archive must reach. The moment is a setting of PostgreSQL,
// such as recovery_target_xid=750. It returns once the server answers.
func (s *Server) Recover(target string) {
	s.t.Helper()
	settings, err := s.own.Recover(s.t.Context(), target)
	if err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
	usual := s.own.Settings
	s.own.Settings = slices.Concat(usual, settings)
	s.Start()
	s.own.Settings = usual
}

// Stop ends the server cleanly and at once: open transactions are rolled back.
func (s *Server) Stop() { s.end(syscall.SIGINT) } // "fast shutdown"

// Kill ends the server as a power cut would. Killing a stopped one does nothing.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Pause freezes the server and every connection to it, until Resume.
func (s *Server) Pause() {
	s.t.Helper()
	err := devserver.Freeze(s.cmd.Process.Pid) // first, so that it starts no more workers
	if err == nil {
		err = devserver.Freeze(s.own.Processes()...)
	}
	if err != nil {
		s.t.Fatalf("pgtest: pause: %v", err)
	}
}

// Resume lets a paused server go on.
func (s *Server) Resume() { s.signalAll(syscall.SIGCONT) }

// end signals the server and returns once the last of its processes has ended:
// one that forked just before a kill holds the shared memory until it notices,
// and until then the server does not start again.
func (s *Server) end(signal syscall.Signal) {
	if s.cmd == nil {
		return
	}
	s.signalAll(syscall.SIGCONT) // a paused process takes no SIGINT
	if signal == syscall.SIGKILL {
		s.signalAll(signal)
	} else {
		_ = s.cmd.Process.Signal(signal) // which tells its workers
	}
	_ = s.cmd.Wait() // its exit code says only how we ended it
	s.cmd = nil
	if err := s.own.AwaitEnd(context.WithoutCancel(s.t.Context()), setupTimeout); err != nil {
		s.t.Errorf("pgtest: %v", err)
	}
}

// signalAll reaches the main process first, so that it starts no more workers.
func (s *Server) signalAll(signal syscall.Signal) {
	_ = s.cmd.Process.Signal(signal)
	for _, pid := range s.own.Processes() {
		_ = syscall.Kill(pid, signal) // it may have ended by itself
	}
}
