package ledger

import (
	"time"

	"github.com/cityconnect/cityconnect/platform/backoff"
)

// Pauses that no operator needs to change.
const (
	// tooEarlyPause is after an answer "too early" that does not say when.
	tooEarlyPause = 30 * time.Second
	// throttledPause is after an answer "throttled" that does not say when. It is
	// long enough that a target which throttles for hours does not get the same
	// request again and again.
	throttledPause = 2 * time.Minute
	// maxAfter bounds the pause that a target may ask for.
	maxAfter = 24 * time.Hour
	// unsentPause is before another try of what this process could not send.
	unsentPause = time.Second
)

// A Schedule has the pauses before each further attempt. Each is used ±20 %,
// so that what failed together does not come back together.
type Schedule []time.Duration

// outcome returns what answer a changes in d, which was claimed so long ago.
//
//	Delivered ────────────────────────────► done
//	Failed, TooMany,
//	Postponed ────────┬─ pauses left ─────► waiting, one pause less
//	                  └─ none left ───────► dead
//	TooEarly, Throttled, Unsent ──────────► waiting
//	Refused, Gone, Expired ───────────────► dead
//	waiting beyond what remains of it ────► dead
func (s Schedule) outcome(d *Delivery, a Answer, age time.Duration) Outcome {
	o := Outcome{ID: d.ID, Attempts: d.Attempts, State: Waiting, Sent: a.Verdict != Unsent && a.Verdict != Expired, Answer: a}
	after := min(a.After, maxAfter)
	switch a.Verdict {
	case Delivered:
		o.State = Done
		return o
	case Refused, Gone, Expired:
		o.State = Dead
		return o
	case Unsent:
		o.Delay = max(after, unsentPause)
	case TooEarly:
		if o.Delay = after; after == 0 {
			o.Delay = tooEarlyPause
		}
	case Throttled:
		o.Delay = max(after, backoff.Jitter(throttledPause))
	default: // Failed, TooMany, Postponed
		o.Retried = true
		if d.Retries >= len(s) {
			o.State = Dead
			return o
		}
		o.Delay = max(after, backoff.Jitter(s[d.Retries]))
	}
	if age+o.Delay > d.Remaining {
		o.State, o.Delay = Dead, 0
	}
	return o
}
