package relay

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// The times of confirms are those of about the last minute.
func TestConfirmQuantiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics(prometheus.NewRegistry(), 1, shards.NewLeases(), new(atomic.Int64))
		if p50, p99 := m.confirmQuantiles(); p50 != 0 || p99 != 0 {
			t.Errorf("quantiles of nothing are %v and %v", p50, p99)
		}
		for i := range 1000 {
			took := 2 * time.Millisecond
			if i%50 == 0 {
				took = 3 * time.Second
			}
			m.confirmSeconds.Observe(took.Seconds())
		}
		if p50, p99 := m.confirmQuantiles(); p50 != 2*time.Millisecond || p99 != 3*time.Second {
			t.Errorf("quantiles are %v and %v, want 2ms and 3s", p50, p99)
		}
		time.Sleep(2 * time.Minute) //nolint:forbidigo // the clock is synctest's
		if p50, p99 := m.confirmQuantiles(); p50 != 0 || p99 != 0 {
			t.Errorf("two minutes later the quantiles are %v and %v, want none", p50, p99)
		}
	})
}
