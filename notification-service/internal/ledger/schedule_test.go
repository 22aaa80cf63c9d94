package ledger

import (
	"testing"
	"time"
)

func TestOutcomes(t *testing.T) {
	t.Parallel()
	schedule := Schedule{5 * time.Second, 5 * time.Minute}
	const week = 7 * 24 * time.Hour
	for _, tt := range []struct {
		name      string
		retries   int
		answer    Answer
		age       time.Duration
		remaining time.Duration
		state     State
		from, to  time.Duration // of the delay
		sent      bool
		retried   bool
	}{
		{"delivered", 0, Answer{Verdict: Delivered}, 0, week, Done, 0, 0, true, false},
		{"first failure", 0, Answer{Verdict: Failed}, 0, week, Waiting, 4 * time.Second, 6 * time.Second, true, true},
		{"second failure", 1, Answer{Verdict: Failed}, 0, week, Waiting, 4 * time.Minute, 6 * time.Minute, true, true},
		{"the schedule is over", 2, Answer{Verdict: Failed}, 0, week, Dead, 0, 0, true, true},
		{"too many, with a time", 0, Answer{Verdict: TooMany, After: time.Hour}, 0, week, Waiting, time.Hour, time.Hour, true, true},
		{"too many, without", 0, Answer{Verdict: TooMany}, 0, week, Waiting, 4 * time.Second, 6 * time.Second, true, true},
		{"too many, for too long", 0, Answer{Verdict: TooMany, After: 48 * time.Hour}, 0, week, Waiting, 24 * time.Hour, 24 * time.Hour, true, true},
		{"too early", 2, Answer{Verdict: TooEarly}, 0, week, Waiting, 30 * time.Second, 30 * time.Second, true, false},
		{"too early, with a time", 2, Answer{Verdict: TooEarly, After: time.Minute}, 0, week, Waiting, time.Minute, time.Minute, true, false},
		{"throttled", 2, Answer{Verdict: Throttled}, 0, week, Waiting, 96 * time.Second, 144 * time.Second, true, false},
		{"throttled, with a time", 2, Answer{Verdict: Throttled, After: time.Hour}, 0, week, Waiting, time.Hour, time.Hour, true, false},
		{"postponed", 0, Answer{Verdict: Postponed}, 0, week, Waiting, 4 * time.Second, 6 * time.Second, true, true},
		{"postponed, with a time", 0, Answer{Verdict: Postponed, After: time.Minute}, 0, week, Waiting, time.Minute, time.Minute, true, true},
		{"postponed to the end", 2, Answer{Verdict: Postponed}, 0, week, Dead, 0, 0, true, true},
		{"too early, beyond its time", 0, Answer{Verdict: TooEarly, After: time.Minute}, 10 * time.Second, time.Minute, Dead, 0, 0, true, false},
		{"refused", 0, Answer{Verdict: Refused}, 0, week, Dead, 0, 0, true, false},
		{"gone", 0, Answer{Verdict: Gone}, 0, week, Dead, 0, 0, true, false},
		{"expired", 0, Answer{Verdict: Expired}, 0, 0, Dead, 0, 0, false, false},
		{"unsent", 1, Answer{Verdict: Unsent}, 0, week, Waiting, time.Second, time.Second, false, false},
	} {
		o := schedule.outcome(&Delivery{ID: 7, Attempts: 3, Retries: tt.retries, Remaining: tt.remaining}, tt.answer, tt.age)
		if o.ID != 7 || o.Attempts != 3 || o.State != tt.state || o.Delay < tt.from || o.Delay > tt.to || o.Sent != tt.sent || o.Retried != tt.retried {
			t.Errorf("%s: %+v, want %+v", tt.name, o, tt)
		}
	}
}
