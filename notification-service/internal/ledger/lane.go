package ledger

import (
	"time"

	"github.com/cityconnect/cityconnect/platform/backoff"
)

const (
	// circuitAfter is after how many failures in a row a circuit opens.
	circuitAfter = 5
	// minOpen and maxOpen are how long it stays open, after the first failure
	// too many and after many.
	minOpen, maxOpen = 30 * time.Second, 10 * time.Minute
	// minRate is what a lane keeps when its target always asks for fewer, and
	// maxRate that from which on it is not limited, in deliveries a second.
	minRate, maxRate = 0.1, 1000
	// rateStep is what a success adds to a limited rate, which so doubles about
	// every seven seconds.
	rateStep = 0.1
	// rateWindow is for how long deliveries are counted for the present rate.
	rateWindow = 10 * time.Second
	// wroteSuccessEvery is how often it is written down that a lane succeeds.
	wroteSuccessEvery = 20 * time.Second
	// maxWindow is the most that a channel may let a lane send at once.
	maxWindow = 16
)

// A lane is one that this worker leases. Its circuit:
//
//	         5 failures in a row
//	closed ───────────────────────► open ◄───────────┐
//	   ▲                             │ 30 s to 10 min │ failure
//	   │        answer               ▼                │
//	   └────────────────────────── probe ─────────────┘
//
// A probe is one delivery, alone. While the circuit is open nothing is claimed.
type lane struct {
	name  string
	is    Lane      // what its channel said at the last claim
	until time.Time // nothing is sent after this: the lease ends
	queue []claimed // claimed, in the order in which they are sent

	inHand  map[int64]struct{} // claimed, and the outcome not yet recorded
	sending int                // requests in flight
	more    bool               // a claim may find something
	ready   bool               // it stands in the dispatcher's queue of lanes
	leaving bool               // it is given back, or lost, once nothing is in hand

	window    int // requests at once that it may have now: 1 after a failure, then one more with each success
	failures  int // in a row
	failing   bool
	since     time.Time // the first of the failures
	openUntil time.Time // of the circuit
	rate      float64   // 0 is any
	next      time.Time // with a rate, when the next may be sent
	slowed    time.Time // when the rate was halved
	sent      int       // since counted
	counted   time.Time // for the present rate, when the target first asks for fewer
	usedAt    time.Time // the last time that there was something to do

	disable, gone bool // the channel is to disable it
	dirty         bool // something is to be written down
	succeeded     bool // since it was written down
	failed        bool
	wroteSuccess  time.Time
}

// claimed is a delivery that the worker has.
type claimed struct {
	Delivery
	at time.Time // of the claim, by the clock of this process
}

func newLane(leased LeasedLane, until, now time.Time) *lane {
	l := &lane{
		name: leased.Name, until: until, inHand: make(map[int64]struct{}), more: true,
		window: maxWindow, counted: now, usedAt: now,
	}
	if l.adopt(leased, now); l.failures > 0 {
		l.window = 1
	}
	return l
}

// adopt takes the lane as it was written down.
func (l *lane) adopt(leased LeasedLane, now time.Time) {
	l.failures, l.rate = leased.Failures, leased.Rate
	l.failing, l.since = leased.FailingFor > 0, now.Add(-leased.FailingFor)
	l.openUntil = now.Add(leased.OpenFor)
}

// isOpen reports whether the circuit is open, or only a probe closes it.
func (l *lane) isOpen() bool { return l.failures >= circuitAfter }

// limit returns how many requests the lane may have at once.
func (l *lane) limit() int {
	if l.isOpen() {
		return 1
	}
	return max(1, min(l.window, l.is.InFlight))
}

// maySend reports whether the next delivery may leave now.
func (l *lane) maySend(now time.Time) bool {
	return len(l.queue) > 0 && l.sending < l.limit() && now.Before(l.until) &&
		!now.Before(l.openUntil) && !now.Before(l.next) && l.is.Hold == Open && !l.leaving && !l.disable
}

// mayClaim reports whether to look for more to send.
func (l *lane) mayClaim(now time.Time) bool {
	return l.more && !l.leaving && !l.disable && len(l.queue) < l.limit() && now.Before(l.until) && !now.Before(l.openUntil)
}

// drop forgets deliveries that are claimed and not sent. The rows are still waiting.
func (l *lane) drop() {
	for _, c := range l.queue {
		delete(l.inHand, c.ID)
	}
	l.queue, l.more = nil, true
}

// take takes the next delivery off the queue, to be sent now.
func (l *lane) take(now time.Time) claimed {
	d := l.queue[0]
	l.queue = l.queue[1:]
	l.sending++
	l.usedAt = now
	if now.Sub(l.counted) > rateWindow {
		l.counted, l.sent = now, 0
	}
	l.sent++
	if l.rate > 0 {
		l.next = now.Add(time.Duration(float64(time.Second) / l.rate))
	}
	return d
}

// answered notes how an attempt went. Failing for disableAfter disables it.
func (l *lane) answered(a Answer, now time.Time, disableAfter time.Duration) {
	l.sending--
	wasOpen := l.isOpen()
	switch a.Verdict {
	case Unsent, Expired:
		return // the target had no part in it
	case Failed:
		l.failures++
		l.window = 1
		l.fails(now, disableAfter)
		if l.isOpen() && !now.Before(l.openUntil) {
			l.openUntil = now.Add(backoff.Delay(minOpen, maxOpen, l.failures-circuitAfter+1))
		}
		return
	case Delivered:
		l.dirty = l.dirty || l.failing || l.failures > 0 || now.Sub(l.wroteSuccess) > wroteSuccessEvery
		l.failing, l.since, l.succeeded = false, time.Time{}, true
		l.window = min(l.window+1, maxWindow)
		if l.rate > 0 {
			if l.rate += rateStep; l.rate > maxRate {
				l.rate = 0
			}
			l.dirty = true
		}
	case TooMany, Throttled:
		l.slowDown(a.At, now)
	case Refused:
		l.fails(now, disableAfter)
	case Gone:
		l.fails(now, disableAfter)
		l.disable, l.gone = true, true
	}
	// The target answers, whatever it answered.
	if wasOpen {
		l.window = 1
	}
	l.dirty = l.dirty || l.failures > 0
	l.failures = 0
}

// fails notes that the lane had no success.
func (l *lane) fails(now time.Time, disableAfter time.Duration) {
	l.dirty, l.failed = true, true
	if !l.failing {
		l.failing, l.since = true, now
	}
	if now.Sub(l.since) >= disableAfter {
		l.disable = true
	}
}

// slowDown halves the rate, beginning at the present one. Answers to requests
// that were sent before it was halved halve it once.
func (l *lane) slowDown(sent, now time.Time) {
	switch {
	case l.rate == 0:
		l.rate = float64(l.sent) / max(now.Sub(l.counted).Seconds(), 1)
	case sent.Before(l.slowed):
		return
	}
	l.rate = max(l.rate/2, minRate)
	l.slowed = now
	l.next = now.Add(time.Duration(float64(time.Second) / l.rate))
	l.dirty = true
}

// state returns the state that is to be recorded, and counts it as recorded.
func (l *lane) state(now time.Time) LaneState {
	s := LaneState{
		Name: l.name, Rate: l.rate, Failures: l.failures, Failing: l.failing, OpenFor: max(0, l.openUntil.Sub(now)),
		Succeeded: l.succeeded, Failed: l.failed,
	}
	if l.succeeded {
		l.wroteSuccess = now
	}
	l.dirty, l.succeeded, l.failed = false, false, false
	return s
}
