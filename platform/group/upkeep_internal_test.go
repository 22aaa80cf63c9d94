package group

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// A script answers by its errors first, then tells that more is left,
// and then that nothing is.
type script struct {
	errors []error
	more   int64 // that many calls leave something to do
	calls  atomic.Int64
}

func (s *script) upkeep(context.Context) (bool, error) {
	n := s.calls.Add(1) - int64(len(s.errors))
	if n <= 0 {
		return false, s.errors[len(s.errors)-1+int(n)]
	}
	return n <= s.more, nil
}

// run runs upkeep in the background and returns what ends it.
func run(t *testing.T, s *script, log zerolog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := runUpkeep(ctx, s.upkeep, log); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return func() { cancel(); running.Wait() }
}

func TestUpkeepDoesAtOnceWhatIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{more: 3}
		stop := run(t, s, zerolog.Nop())
		synctest.Wait()
		if n := s.calls.Load(); n != 4 {
			t.Errorf("%d calls before the first pause, want 4: three that leave something, and one that does not", n)
		}
		<-time.After(8 * time.Minute) // longer than any pause
		synctest.Wait()
		if n := s.calls.Load(); n < 5 || n > 7 {
			t.Errorf("%d calls after 8 minutes, want another every 2.5 to 7.5 minutes", n)
		}
		stop()
	})
}

// A failure is logged, waits for the next turn, and ends nothing.
func TestUpkeepGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &script{errors: []error{errors.New("secret-canary")}}
		stop := run(t, s, zerolog.New(&log))
		synctest.Wait()
		if n := s.calls.Load(); n != 1 || !bytes.Contains(log.Bytes(), []byte("upkeep failed, will retry")) || bytes.Contains(log.Bytes(), []byte("secret-canary")) {
			t.Errorf("after %d calls the log has %q, want one call, logged without the error's text", n, log.String())
		}
		<-time.After(8 * time.Minute) // longer than any pause
		synctest.Wait()
		if s.calls.Load() < 2 {
			t.Error("not tried again")
		}
		stop()
	})
}
