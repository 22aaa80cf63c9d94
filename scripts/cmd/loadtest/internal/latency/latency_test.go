package latency_test

import (
	"math"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/latency"
)

func TestRecorder(t *testing.T) {
	t.Parallel()
	r := latency.NewRecorder()
	for ms := range 1000 {
		r.Record(time.Duration(ms+1) * time.Millisecond)
	}
	first := r.Interval()
	r.Record(-time.Second) // a clock that was set back does not count as negative
	r.Record(time.Hour)
	second, whole := r.Interval(), r.Whole()
	near := func(got, want float64) bool { return math.Abs(got/want-1) < 0.002 }
	if first.Count != 1000 || !near(first.P50, 500) || !near(first.P99, 990) || !near(first.Max, 1000) {
		t.Errorf("first interval: got %+v, want 1000 times with p50 500, p99 990, max 1000", first)
	}
	if second.Count != 2 || !near(second.Max, 600_000) {
		t.Errorf("second interval: got %+v, want 2 times up to ten minutes", second)
	}
	if whole.Count != 1002 || !near(whole.P50, 500) {
		t.Errorf("whole: got %+v, want 1002 times with p50 500", whole)
	}
}
