package relay

import (
	"testing"
	"time"
)

// The figures are those of the last seconds, whatever was before, and nothing
// when nothing was published.
func TestRecent(t *testing.T) {
	t.Parallel()
	began := time.Unix(1000, 0)
	r := newRecent(began)
	at := func(s float64) time.Time { return began.Add(time.Duration(s * float64(time.Second))) }
	want := func(now, perSecond float64, p50, p99 time.Duration) {
		t.Helper()
		rate, half, most := r.figures(at(now))
		if rate < perSecond*0.95 || rate > perSecond*1.05 {
			t.Errorf("after %v s: %v a second, want about %v", now, rate, perSecond)
		}
		for what, d := range map[string][2]time.Duration{"median": {half, p50}, "p99": {most, p99}} {
			if got, want := d[0], d[1]; got < want*95/100 || got > want*105/100 {
				t.Errorf("after %v s: %s %v, want about %v", now, what, got, want)
			}
		}
	}
	want(0, 0, 0, 0)
	for s := range 100 { // at the same pace throughout, and slow in the beginning
		for i := range 50 {
			confirm := 2 * time.Millisecond
			if i == 0 || s < 20 {
				confirm = 3 * time.Second
			}
			r.published(at(float64(s)+float64(i)/50), confirm)
		}
	}
	want(100, 50, 2*time.Millisecond, 3*time.Second)
	want(105.5, 25, 2*time.Millisecond, 3*time.Second)
	want(115, 0, 2*time.Millisecond, 3*time.Second)
	want(165, 0, 0, 0)

	r.published(at(200), 0)
	r.published(at(200.5), time.Hour)
	if _, shortest, longest := r.figures(at(201)); shortest <= 0 || shortest > finest || longest < time.Minute {
		t.Errorf("the extremes are told as %v and %v, want at most %v and at least a minute", shortest, longest, finest)
	}
}
