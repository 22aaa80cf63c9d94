package reconciliation

import (
	"slices"
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	const recheck = 5 * time.Minute
	planned := waits(recheck, []time.Duration{time.Second, 5 * time.Second, 30 * time.Second})
	last := len(planned) - 1
	// Nothing but time has passed, and everything could have come.
	settled := assessment{state: Waiting, checks: last, left: 1, age: 5 * time.Minute, drained: true}
	for name, tt := range map[string]struct {
		change func(a *assessment)
		state  State
		checks int
		next   time.Duration
	}{
		"all there":                           {func(a *assessment) { a.left = 0 }, Complete, last, 0},
		"all there, late":                     {func(a *assessment) { a.left, a.overdue = 0, time.Hour }, Complete, last, 0},
		"found after all":                     {func(a *assessment) { a.state, a.left = Missing, 0 }, Complete, last, 0},
		"first look":                          {func(a *assessment) { a.checks = 0 }, Waiting, 1, planned[1]},
		"last look":                           {func(*assessment) {}, Missing, last, recheck},
		"last look, explained":                {func(a *assessment) { a.explained = true }, Unknown, last, recheck},
		"explained, and the queue has some":   {func(a *assessment) { a.explained, a.drained = true, false }, Unknown, last, recheck},
		"no longer explained":                 {func(a *assessment) { a.state = Unknown }, Missing, last, recheck},
		"the queue has some":                  {func(a *assessment) { a.drained = false }, Waiting, last, planned[last]},
		"missing, and the queue has some":     {func(a *assessment) { a.state, a.drained = Missing, false }, Missing, last, planned[last]},
		"the check was late":                  {func(a *assessment) { a.overdue = 2 * late }, Waiting, last, planned[last]},
		"the first check was late":            {func(a *assessment) { a.checks, a.overdue = 0, 2*late }, Waiting, 0, planned[0]},
		"too old to be looked for any more":   {func(a *assessment) { a.age = lookBack + 1 }, Missing, last, 0},
		"too old, and the queue still is not": {func(a *assessment) { a.age, a.drained = lookBack+1, false }, Waiting, last, planned[last]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := settled
			tt.change(&a)
			state, checks, next := a.judge(planned, recheck)
			if state != tt.state || checks != tt.checks || next != tt.next {
				t.Errorf("got %s, %d checks, next in %v, want %s, %d, %v", state, checks, next, tt.state, tt.checks, tt.next)
			}
		})
	}
}

// A message is not missing before all its retries could have been made.
func TestWaitsOutlastRetries(t *testing.T) {
	t.Parallel()
	total := func(all []time.Duration) (sum time.Duration) {
		for _, one := range all {
			sum += one
		}
		return sum
	}
	if got := total(waits(5*time.Minute, nil)); got != 5*time.Minute {
		t.Errorf("without retries a message is missing after %v, want 5m", got)
	}
	retries := slices.Repeat([]time.Duration{30 * time.Second}, 19)
	if got, min := total(waits(5*time.Minute, retries)), total(retries); got <= min {
		t.Errorf("with retries for %v a message is missing after %v", min, got)
	}
}
