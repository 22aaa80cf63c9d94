package backoff_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cityconnect/cityconnect/platform/backoff"
)

func TestNextDoublesUpToMax(t *testing.T) {
	t.Parallel()
	b := backoff.Backoff{First: time.Second, Max: 5 * time.Second}
	for range 2 {
		for i, want := range []time.Duration{1, 2, 4, 5, 5} {
			want *= time.Second
			if got := b.Next(); got < want*8/10 || got > want*12/10 {
				t.Errorf("pause %d: got %s, want %s ±20 %%", i+1, got, want)
			}
		}
		b.Reset()
	}
}

func TestDelayOfManyFailures(t *testing.T) {
	t.Parallel()
	for _, failures := range []int{1, 40, 1 << 30} {
		got := backoff.Delay(time.Minute, time.Minute, failures)
		if got < 48*time.Second || got > 72*time.Second {
			t.Errorf("after %d failures: %s, want a minute ±20 %%", failures, got)
		}
	}
}

func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := backoff.Sleep(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("slept %s with error %v, want a minute and none", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := backoff.Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want that of the context", err)
		}
	})
}

// A caller that polls until something happens notices it late by a fifth of the wait
// and 5 ms, or by half a second, whichever is less.
func TestPollIsLittleLate(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{time.Millisecond, 40 * time.Millisecond, time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			began, questions := time.Now(), 0
			for poll := new(backoff.Poll); time.Since(began) < wait; questions++ {
				<-poll.Next()
			}
			late := time.Since(began) - wait
			if most := min(wait/5+5*time.Millisecond, 500*time.Millisecond); late > most {
				t.Errorf("after %s: %s late, want %s at most", wait, late, most)
			}
			if questions > 40+int(wait/(500*time.Millisecond)) {
				t.Errorf("%d questions within %s", questions, wait)
			}
		})
	}
}
