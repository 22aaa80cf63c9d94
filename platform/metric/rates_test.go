package metric_test

import (
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/metric"
)

// The rate is that of the last ten seconds, whatever was before, and nothing
// when there was nothing. The total has everything.
func TestRate(t *testing.T) {
	t.Parallel()
	began := time.Unix(1000, 0)
	at := func(s float64) time.Time { return began.Add(time.Duration(s * float64(time.Second))) }
	var r metric.Rate
	if got, last := r.Read(at(0)); got != 0 || !last.IsZero() {
		t.Errorf("at first: %v a second, the last at %s", got, last)
	}
	for s := range 100 {
		for i := range 25 {
			r.Add(at(float64(s)+float64(i)/25), 2)
		}
	}
	for now, want := range map[float64]float64{100: 50, 105.5: 25, 115: 0, 165: 0} {
		got, last := r.Read(at(now))
		if got < want*0.95 || got > want*1.05 || !last.Equal(at(99.96)) {
			t.Errorf("after %v s: %v a second, the last at %s, want about %v", now, got, last, want)
		}
	}
	if got := r.Total(); got != 5000 {
		t.Errorf("%d events in all, want 5000", got)
	}
}
