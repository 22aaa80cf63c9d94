package consumer

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
)

// How often an open breaker probes: soon at first, then at a rate that a
// recovering database does not feel.
const (
	firstProbe = 250 * time.Millisecond
	maxProbe   = 5 * time.Second
)

// A databaseBreaker stops all work while the database is away, and lets one
// worker at a time try whether it is back. Without it an outage would spend
// every message's attempts within a minute.
//
//	             the database is away
//	 ┌─ closed ──────────────────────────► open ◄─────────────┐
//	 │     ▲                                │                 │
//	 │     │                   a delay is over, for one worker │ still away:
//	 │     │                                ▼                 │ a longer delay
//	work   └── it answers ◄──────────── half-open ────────────┘
type databaseBreaker struct {
	up  prometheus.Gauge // 1 while closed
	log zerolog.Logger

	mu      sync.Mutex
	state   breakerState
	delays  backoff.Backoff
	opened  time.Time     // when it was left closed; zero while it is
	probeAt time.Time     // when an open breaker becomes half-open
	left    chan struct{} // closed when the state is left
}

type breakerState int

const (
	closed   breakerState = iota // work flows
	open                         // no work: the database is away
	halfOpen                     // one worker probes
)

func newDatabaseBreaker(up prometheus.Gauge, log zerolog.Logger) *databaseBreaker {
	up.Set(1)
	return &databaseBreaker{up: up, log: log, delays: backoff.Backoff{First: firstProbe, Max: maxProbe}, left: make(chan struct{})}
}

// enter returns once the database may be used. With probe it may be used for
// one message only. The caller reports the result to record.
func (b *databaseBreaker) enter(ctx context.Context) (probe bool, err error) {
	for {
		b.mu.Lock()
		if b.state == closed {
			b.mu.Unlock()
			return false, nil
		}
		wait := time.Until(b.probeAt)
		if b.state == open && wait <= 0 {
			b.setLocked(halfOpen)
			b.mu.Unlock()
			return true, nil
		}
		state, left := b.state, b.left
		b.mu.Unlock()

		if state == halfOpen { // another worker probes
			select {
			case <-left:
			case <-ctx.Done():
				return false, ctx.Err()
			}
		} else if err := backoff.Sleep(ctx, wait); err != nil {
			return false, err
		}
	}
}

// record takes what a use of the database found out about it.
func (b *databaseBreaker) record(probe, away bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case away && (probe || b.state == closed):
		if b.state == closed {
			b.delays.Reset()
			b.opened = time.Now()
			b.up.Set(0)
			b.log.Error().Msg("a dependency is unavailable, circuit opened: no messages are consumed until a probe succeeds")
		}
		b.probeAt = time.Now().Add(b.delays.Next())
		b.setLocked(open)
	case !away && probe:
		b.opened = time.Time{}
		b.setLocked(closed)
		b.up.Set(1)
		b.log.Info().Msg("the dependency answers again, circuit closed")
	}
}

func (b *databaseBreaker) setLocked(s breakerState) {
	b.state = s
	close(b.left)
	b.left = make(chan struct{})
}

// lasts returns nil once the circuit has been open for d without a break, counted from
// this call at the earliest.
func (b *databaseBreaker) lasts(ctx context.Context, d time.Duration) error {
	called := time.Now()
	for {
		b.mu.Lock()
		opened, left := b.opened, b.left
		b.mu.Unlock()
		var due <-chan time.Time
		if !opened.IsZero() {
			wait := d - time.Since(maxTime(opened, called))
			if wait <= 0 {
				return nil
			}
			due = time.After(wait)
		}
		select {
		case <-due:
		case <-left:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// isClosed reports whether work flows.
func (b *databaseBreaker) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == closed
}
