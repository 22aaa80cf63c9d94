// Package backoff spaces attempts: each pause is twice the one before, up to a
// limit, and a little random, so that replicas that failed together do not try
// again together.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// A Backoff yields the pauses between attempts in a row. It is not safe for
// concurrent use.
type Backoff struct {
	// First is the pause after the first failure, Max the longest one.
	First, Max time.Duration

	failures int
}

// Next returns the pause before the next attempt: First, doubling with each
// call up to Max, ±20 %.
func (b *Backoff) Next() time.Duration {
	b.failures++
	return Delay(b.First, b.Max, b.failures)
}

// Reset makes the next pause First again. Call it after a success.
func (b *Backoff) Reset() { b.failures = 0 }

// Delay returns the pause after so many failures in a row, of which there was
// at least one: first, doubling up to limit, ±20 %.
func Delay(first, limit time.Duration, failures int) time.Duration {
	delay := first
	for range failures - 1 {
		if delay >= limit { // also keeps a large count from overflowing
			break
		}
		delay *= 2
	}
	return Jitter(min(delay, limit))
}

// Jitter returns d ±20 %, evenly spread.
func Jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// A Poll spaces the checks of something that sends no signal: short pauses at
// first, then longer ones, so that a long wait leaves the processor to the work
// that it waits for. The answer comes late by a fifth of the wait and 5 ms, but
// never by more than half a second. The zero Poll is ready. It is not safe for
// concurrent use.
type Poll struct{ pause time.Duration }

// Next returns a channel that receives when it is time for the next check.
func (p *Poll) Next() <-chan time.Time {
	const soonest, latest = 5 * time.Millisecond, 500 * time.Millisecond
	p.pause = min(max(p.pause*6/5, soonest), latest)
	return time.After(p.pause)
}

// Sleep waits for d. It returns ctx's error as soon as ctx ends, otherwise nil.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
