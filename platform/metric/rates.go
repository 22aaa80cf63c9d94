package metric

import (
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// span is over how many seconds a rate takes its mean: short enough to show that
// something has stopped.
const span = 10

// A Rate is how many events there are per second. Its zero value has seen none, and it
// is safe for concurrent use.
type Rate struct {
	mu      sync.Mutex
	total   int64
	last    time.Time                              // zero if there was none
	seconds [span + 1]struct{ unix, events int64 } // each takes the place of the one eleven before
}

// Add counts n events at now.
func (r *Rate) Add(now time.Time, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.seconds[now.Unix()%int64(len(r.seconds))]
	if s.unix != now.Unix() {
		s.unix, s.events = now.Unix(), 0
	}
	s.events += int64(n)
	r.total += int64(n)
	r.last = now
}

// Read returns the mean per second over the last seconds, and when the last event was.
func (r *Rate) Read(now time.Time) (perSecond float64, last time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var events int64
	for _, s := range r.seconds {
		if now.Unix()-s.unix <= span {
			events += s.events
		}
	}
	// The present second is not over: only the part of it that has passed counts.
	return float64(events) / (span + float64(now.Nanosecond())/1e9), r.last
}

// Total returns how many events there were.
func (r *Rate) Total() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// Quantiles returns the first two quantiles, in seconds, of a summary; zero if it has
// observed nothing lately.
func Quantiles(summary prometheus.Metric) (first, second time.Duration) {
	var seen dto.Metric
	if summary.Write(&seen) != nil {
		return 0, 0
	}
	quantiles := seen.GetSummary().GetQuantile() // in ascending order
	return duration(quantiles[0]), duration(quantiles[1])
}

// duration returns a quantile of seconds; that of nothing is not a number.
func duration(q *dto.Quantile) time.Duration {
	if math.IsNaN(q.GetValue()) {
		return 0
	}
	return time.Duration(math.Round(q.GetValue() * float64(time.Second)))
}
