package querybudget_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cityconnect/cityconnect/platform/ratelimit"
	"github.com/cityconnect/cityconnect/report-service/internal/querybudget"
)

// takes is work of a duration.
func takes(d time.Duration) func(context.Context) error {
	return func(context.Context) error {
		time.Sleep(d) //nolint:forbidigo // the clock is synctest's
		return nil
	}
}

// A caller that asks for as much as it can has a part of the room, and after some seconds
// of work a tenth of the time; another caller waits for neither.
func TestOneCallerCannotTakeAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := querybudget.New(4, 2, querybudget.Share, 2*time.Second)
		const cost = 100 * time.Millisecond
		var done, refused, running, most atomic.Int64
		flood, stop := context.WithTimeout(t.Context(), 2*time.Minute)
		defer stop()
		var callers sync.WaitGroup
		for range 120 {
			callers.Go(func() {
				for flood.Err() == nil {
					err := gate.Do(flood, "flood", func(ctx context.Context) error {
						if now := running.Add(1); now > most.Load() {
							most.Store(now)
						}
						defer running.Add(-1)
						return takes(cost)(ctx)
					})
					if tooMany, ok := errors.AsType[*querybudget.TooManyError](err); ok && tooMany.Wait <= 0 {
						t.Errorf("refused with %v, want a time to wait", err)
					}
					if err != nil {
						refused.Add(1)
					} else {
						done.Add(1)
					}
					time.Sleep(10 * time.Millisecond) //nolint:forbidigo // the clock is synctest's
				}
			})
		}
		for range 1000 {
			began := time.Now()
			if err := gate.Do(t.Context(), "ann", takes(5*time.Millisecond)); err != nil || time.Since(began) > 6*time.Millisecond {
				t.Errorf("another caller: %v after %v, want 5 ms", err, time.Since(began))
			}
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the clock is synctest's
		}
		callers.Wait()
		// 2 s at once, a tenth of two minutes, and what was begun when nothing was left.
		share := time.Duration(done.Load()) * cost
		if most.Load() != 2 || refused.Load() == 0 || share < 13*time.Second || share > 16*time.Second {
			t.Errorf("%v of work, %d at a time, %d refused; want some 14 s, 2 at a time, and refusals", share, most.Load(), refused.Load())
		}
	})
}

// With all of the room taken, others wait, but not for ever.
func TestRoomIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := querybudget.New(2, 1, ratelimit.Limit{}, 2*time.Second)
		for _, name := range []string{"a", "b"} {
			go func() { _ = gate.Do(t.Context(), name, takes(3*time.Second)) }()
		}
		synctest.Wait()
		began := time.Now()
		if err := gate.Do(t.Context(), "c", takes(0)); !errors.Is(err, querybudget.ErrBusy) || time.Since(began) != 2*time.Second {
			t.Errorf("got %v after %v, want ErrBusy after 2 s", err, time.Since(began))
		}
		if err := gate.Do(t.Context(), "c", takes(0)); err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("got %v after %v, want room after 3 s", err, time.Since(began))
		}
	})
}

// A database that hangs costs a caller some seconds, and a caller that leaves gets an error.
func TestPriceIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := querybudget.New(4, 2, querybudget.Share, 2*time.Second)
		for range 3 {
			if err := gate.Do(t.Context(), "ann", takes(time.Minute)); err != nil {
				t.Errorf("got %v after a minute without work", err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := gate.Do(ctx, "ann", takes(0)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that the request was cancelled", err)
		}
	})
}
