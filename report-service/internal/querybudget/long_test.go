package querybudget_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cityconnect/cityconnect/report-service/internal/querybudget"
)

// Long answers that have begun come to their end, in turns, however slow the database is;
// others are refused before they begin.
func TestLongAnswersAreWholeOrRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ part, between time.Duration }{{10 * time.Millisecond, 50 * time.Millisecond}, {300 * time.Millisecond, 600 * time.Millisecond}} {
		synctest.Test(t, func(t *testing.T) {
			const answers, parts = 20, 60
			long := querybudget.NewLong(answers, 1)
			var under sync.WaitGroup
			for i := range answers {
				under.Go(func() {
					end, err := long.Begin(fmt.Sprint(i))
					if err != nil {
						t.Errorf("answer %d: %v", i, err)
						return
					}
					defer end()
					for range parts {
						last := time.Now()
						if err := long.Part(t.Context(), takes(tt.part)); err != nil {
							t.Errorf("a part of answer %d: %v", i, err)
						}
						if gap := time.Since(last); gap > (answers+1)*tt.between {
							t.Errorf("a part of answer %d came after %v", i, gap)
						}
					}
				})
			}
			synctest.Wait()
			if _, err := long.Begin("another"); !errors.Is(err, querybudget.ErrBusy) {
				t.Errorf("one more: %v, want ErrBusy", err)
			}
			if _, err := long.Begin("1"); !is[*querybudget.TooManyError](err) {
				t.Errorf("a second one of a caller: %v, want TooManyError", err)
			}
			under.Wait()
			end, err := long.Begin("another")
			if err != nil {
				t.Fatalf("when all have ended: %v", err)
			}
			end()
		})
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// An answer whose client leaves waits no longer, and leaves its turn to others.
func TestLongAnswerIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		long := querybudget.NewLong(2, 2)
		go func() { _ = long.Part(t.Context(), takes(time.Second)) }()
		synctest.Wait()
		ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		if err := long.Part(ctx, takes(0)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := long.Part(t.Context(), takes(0)); err != nil {
			t.Errorf("another: %v", err)
		}
	})
}
