package devserver_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/testing/devserver"
)

// A server whose main process alone was killed starts again, although its
// workers live on for a moment and nobody has collected the dead process yet.
func TestPostgresStartsAfterItsMainProcessWasKilled(t *testing.T) {
	t.Parallel()
	ports, err := devserver.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "devserver") // not t.TempDir: its parents are closed to the server's account
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &devserver.Postgres{Dir: dir, Port: ports[0], Password: "secret"}

	killed := startPostgres(t, p)
	if err := killed.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	startPostgres(t, p)
}

// startPostgres prepares and starts the server and returns once it answers.
func startPostgres(t *testing.T, p *devserver.Postgres) *exec.Cmd {
	t.Helper()
	if err := p.Prepare(t.Context()); err != nil {
		t.Fatalf("prepare: %v", err)
	}
	cmd, err := p.Command()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pid := range p.Processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = cmd.Wait() // by a signal, so this is an error
	})
	deadline := time.Now().Add(15 * time.Minute)
	for p.Ready(t.Context()) != nil {
		if time.Now().After(deadline) {
			t.Fatal("PostgreSQL does not answer")
		}
		<-time.After(50 * time.Millisecond)
	}
	return cmd
}
