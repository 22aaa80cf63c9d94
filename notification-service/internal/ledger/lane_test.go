package ledger

import (
	"testing"
	"time"
)

const disableAfter = 120 * time.Hour

// newTestLane returns an open lane with n claimed deliveries.
func newTestLane(now time.Time, n int) *lane {
	l := newLane(LeasedLane{Name: "a"}, now.Add(365*24*time.Hour), now)
	l.is = Lane{Hold: Open, InFlight: 4}
	for id := range int64(n) {
		l.queue = append(l.queue, claimed{Delivery{ID: id}, now})
		l.inHand[id] = struct{}{}
	}
	return l
}

func (l *lane) attempt(t *testing.T, v Verdict, now time.Time) {
	t.Helper()
	if !l.maySend(now) {
		t.Fatalf("nothing is sent, want an attempt that is %s", v)
	}
	l.take(now)
	l.answered(Answer{Verdict: v, At: now}, now, disableAfter)
}

// Five failures in a row open the circuit, for 30 s and then longer and longer,
// up to ten minutes. One delivery at a time finds out whether the target is
// back; with the first answer the circuit closes, and the lane starts with one.
func TestCircuit(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := newTestLane(now, 100)
	if l.limit() != 4 {
		t.Errorf("%d at once at first, want the channel's 4", l.limit())
	}
	for range circuitAfter {
		l.attempt(t, Failed, now)
	}
	open := l.openUntil.Sub(now)
	if open < 24*time.Second || open > 36*time.Second || l.maySend(now) || l.mayClaim(now) {
		t.Fatalf("after five failures the circuit is open for %s, want about 30 s in which nothing is sent or claimed", open)
	}
	for i := range 10 {
		now = l.openUntil.Add(time.Nanosecond)
		if l.limit() != 1 {
			t.Fatalf("%d probes at once, want 1", l.limit())
		}
		l.attempt(t, Failed, now)
		if open := l.openUntil.Sub(now); open < 24*time.Second || open > 12*time.Minute || i == 9 && open < 8*time.Minute {
			t.Errorf("after probe %d the circuit is open for %s, want it to grow to about 10 min", i+1, open)
		}
	}
	now = l.openUntil.Add(time.Nanosecond)
	l.attempt(t, Delivered, now)
	if l.failures != 0 || l.limit() != 1 || l.failing {
		t.Errorf("after a success: %d failures, %d at once, failing %t; want 0, 1, false", l.failures, l.limit(), l.failing)
	}
	l.attempt(t, Delivered, now)
	l.attempt(t, Delivered, now)
	if l.limit() != 3 {
		t.Errorf("%d at once after two more successes, want 3", l.limit())
	}
}

// A target that answers, whatever it answers, closes the circuit; only
// deliveries count as a success.
func TestAnswersCloseTheCircuit(t *testing.T) {
	t.Parallel()
	for _, v := range []Verdict{TooMany, Throttled, Postponed, TooEarly, Refused} {
		now := time.Now()
		l := newTestLane(now, 100)
		for range circuitAfter {
			l.attempt(t, Failed, now)
		}
		now = l.openUntil.Add(time.Nanosecond)
		l.attempt(t, v, now)
		if l.failures != 0 || !l.failing {
			t.Errorf("%s: %d failures in a row, failing %t; want 0, true", v, l.failures, l.failing)
		}
	}
}

// A lane is disabled after 120 hours without a success, by the failure that
// finds this, and at once when its target is gone. Answers that ask for patience
// do not count.
func TestDisabling(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := newTestLane(now, 100)
	l.attempt(t, Failed, now)
	l.attempt(t, Failed, now.Add(disableAfter-time.Minute))
	l.attempt(t, TooMany, now.Add(disableAfter+time.Minute))
	if l.disable {
		t.Error("disabled before 120 h of failures are over")
	}
	l.attempt(t, Failed, now.Add(disableAfter+time.Hour))
	if !l.disable || l.gone || l.maySend(now.Add(disableAfter+2*time.Hour)) {
		t.Errorf("disable %t, gone %t after 121 h of failures; want true, false, and nothing sent", l.disable, l.gone)
	}

	l = newTestLane(now, 100)
	l.attempt(t, Failed, now)
	l.attempt(t, Delivered, now.Add(time.Hour))
	l.attempt(t, Failed, now.Add(disableAfter+time.Minute))
	if l.disable {
		t.Error("disabled by two failures with a success between them")
	}
	l.attempt(t, Gone, now.Add(disableAfter+2*time.Minute))
	if !l.disable || !l.gone {
		t.Error("not disabled by a target that says it is gone")
	}
}

// A target that wants fewer gets half as many, and slowly more again.
func TestRate(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := newTestLane(now, 10_000)
	for range 100 { // 100 a second
		l.attempt(t, Delivered, now)
		now = now.Add(10 * time.Millisecond)
	}
	l.attempt(t, TooMany, now)
	if l.rate < 40 || l.rate > 60 || l.maySend(now) {
		t.Fatalf("rate %.1f after 100 a second were too many, want about 50", l.rate)
	}
	halved := l.rate
	l.sending++ // one that left before
	l.answered(Answer{Verdict: TooMany, At: now.Add(-time.Millisecond)}, now, disableAfter)
	if l.rate != halved {
		t.Errorf("rate %.1f after a late answer, want it halved once", l.rate)
	}
	sent := 0
	for end := now.Add(5 * time.Second); now.Before(end); now = now.Add(time.Millisecond) {
		if l.maySend(now) {
			l.attempt(t, Delivered, now)
			sent++
		}
	}
	if sent < 250 || sent > 500 || l.rate <= halved {
		t.Errorf("%d sent in 5 s at a rate of %.1f and growing to %.1f", sent, halved, l.rate)
	}
	for range 12 {
		now = l.next
		l.attempt(t, TooMany, now.Add(time.Nanosecond))
	}
	if l.rate != minRate {
		t.Errorf("rate %.2f of a target that never has enough, want %.1f", l.rate, minRate)
	}
}

// Another worker goes on with the state that was written down.
func TestLaneGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := newTestLane(now, 100)
	for range circuitAfter {
		l.attempt(t, Failed, now)
	}
	if !l.dirty {
		t.Error("an open circuit is not written down")
	}
	s := l.state(now)
	other := newLane(LeasedLane{Name: "a", Failures: s.Failures, FailingFor: time.Hour, OpenFor: s.OpenFor, Rate: s.Rate}, now.Add(time.Minute), now)
	other.is, other.queue = l.is, l.queue
	if other.maySend(now) || other.mayClaim(now) || other.limit() != 1 || !other.failing {
		t.Errorf("the other worker sends %t, claims %t, %d at once; want an open circuit", other.maySend(now), other.mayClaim(now), other.limit())
	}
	if l.dirty || s.Succeeded || !s.Failed {
		t.Errorf("written down: %+v, dirty %t; want a failure, and nothing left", s, l.dirty)
	}
}

// A worker that has more to send than it may at once gives back a quarter of its
// lanes, for others to take; one with room to spare keeps all.
func TestShare(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, crowded := range []bool{false, true} {
		d := &Dispatcher{lanes: make(map[string]*lane), contended: crowded}
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			d.lanes[name] = newTestLane(now, 3)
		}
		d.share()
		leaving := 0
		for _, l := range d.lanes {
			if l.leaving {
				leaving++
				if len(l.queue)+len(l.inHand) > 0 || l.maySend(now) || l.mayClaim(now) {
					t.Errorf("a lane that is given back has %d deliveries", len(l.queue))
				}
			}
		}
		if want := map[bool]int{true: 2}[crowded]; leaving != want {
			t.Errorf("crowded %t: %d of 8 lanes are given back, want %d", crowded, leaving, want)
		}
	}
}
