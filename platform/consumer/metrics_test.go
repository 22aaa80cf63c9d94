package consumer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestHandlerTimesAreOfTheLastMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics(prometheus.NewRegistry())
		check := func(when string, want50, want99 time.Duration) {
			t.Helper()
			if p50, p99 := m.handlerTimes("q"); p50 != want50 || p99 != want99 {
				t.Errorf("%s: median %s, 99th percentile %s, want %s and %s", when, p50, p99, want50, want99)
			}
		}
		check("at first", 0, 0)
		for i := range 200 { // every tenth is slow
			took := 2500 * time.Microsecond
			if i%10 == 0 {
				took = 40 * time.Millisecond
			}
			m.handled("q", took, false)
		}
		m.handled("another", time.Second, false)
		check("after 200 batches", 2500*time.Microsecond, 40*time.Millisecond)
		<-time.After(time.Minute + time.Second)
		check("a minute later", 0, 0)
		m.handled("q", 7*time.Millisecond, false)
		check("after another", 7*time.Millisecond, 7*time.Millisecond)
	})
}
