package processtest_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/cityconnect/cityconnect/platform/testing/processtest"
)

func TestMain(m *testing.M) { processtest.Main(m, program) }

// program serves until it is stopped, and then ends with exit code 7.
func program() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	http.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("POST /end", func(http.ResponseWriter, *http.Request) { os.Exit(3) })
	go func() {
		if err := http.ListenAndServe(os.Getenv("ADDR"), nil); err != nil {
			fmt.Println(err)
		}
	}()
	fmt.Println("hello", os.Getenv("NAME"))
	<-ctx.Done()
	os.Exit(7)
}

// A process comes back at its address after each end, and tells how it ended.
func TestProcessComesBack(t *testing.T) {
	t.Parallel()
	p := processtest.Start(t, processtest.Config{Address: "ADDR", Env: []string{"NAME=Ann"}})
	first := p.Addr()
	p.Kill()
	p.Kill() // which changes nothing
	p.Start()
	p.Pause()
	p.Resume()
	if code := p.Stop(); code != 7 {
		t.Errorf("exit code %d, want 7", code)
	}
	p.Start()
	if p.Addr() != first {
		t.Errorf("it is at %s, and was at %s", p.Addr(), first)
	}
	if got := strings.Count(p.Log(), "hello Ann\n"); got != 3 {
		t.Errorf("%d runs in its log, want 3:\n%s", got, p.Log())
	}
}

// A test whose process has ended by itself fails.
func TestProcessEndsByItself(t *testing.T) {
	t.Parallel()
	strict := &failing{TB: t}
	p := processtest.Start(strict, processtest.Config{Address: "ADDR"})
	for strict.failed == "" {
		resp, err := http.Post(p.URL("/end"), "", nil)
		if err == nil {
			_ = resp.Body.Close() // nothing is read
			continue
		}
		p.Kill()
		if strict.failed == "" { // the kill came before its end
			p.Start()
		}
	}
	if !strings.Contains(strict.failed, "ended by itself: exit status 3") {
		t.Errorf("the test failed with %q, want the exit status 3", strict.failed)
	}
}

// A failing is a test whose failure is looked at.
type failing struct {
	testing.TB
	failed string
}

func (f *failing) Errorf(format string, args ...any) { f.failed = fmt.Sprintf(format, args...) }
