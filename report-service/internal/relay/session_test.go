package relay

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// A confirm that is owed is overdue after the timeout. While the broker blocks
// publishers none is overdue, and the timeout starts again when the blocking
// ends.
func TestConfirmTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &session{
			cfg:      Config{ConfirmTimeout: time.Second},
			rows:     testTracker(shards.NewLeases(), new(atomic.Int64)),
			progress: time.Now(),
		}
		check := func(when string, want bool) {
			t.Helper()
			if got := s.confirmOverdue(time.Now()); got != want {
				t.Errorf("%s: overdue is %v, want %v", when, got, want)
			}
		}
		<-time.After(time.Hour)
		check("nothing in flight", false)
		s.rows.count[inFlight] = 1
		check("in flight, silent for an hour", true)
		s.onBlocking(true)
		<-time.After(time.Hour)
		check("blocked for an hour", false)
		s.onBlocking(false)
		<-time.After(s.cfg.ConfirmTimeout)
		check("a timeout after the blocking", false)
		<-time.After(time.Nanosecond)
		check("longer than that", true)
	})
}
