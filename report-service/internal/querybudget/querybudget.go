// Package querybudget gives requests that cost the database much a price, so that
// nobody slows down everyone else with them: searches, maps, exports, and lists in an
// order that no index has.
//
// It promises that such requests take a few of the database's connections and
// leave the others to everything else; that one caller has only some of those few;
// and that a caller who asks for much pays with the time that it takes: after a few
// seconds of the database's work, each further second has to be waited for. Each
// replica counts for itself.
package querybudget

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/cityconnect/cityconnect/platform/ratelimit"
)

const (
	// maxInside is how many requests of one caller may run or wait: as many as a page
	// makes at once, and more.
	maxInside = 10
	// mostPaid is the price of a request that took longer: a database that hangs is
	// not the caller's fault.
	mostPaid = 2 * time.Second
)

// Share is what each caller may take of the database's time: a tenth of a processor,
// and two seconds at once.
var Share = ratelimit.Limit{Turns: 2000, Period: 20 * time.Second}

// ErrBusy is the refusal of a request that found no room: others have it.
var ErrBusy = errors.New("too many expensive requests are running")

// A TooManyError is the refusal of a caller who asks for too much.
type TooManyError struct {
	Wait time.Duration // until it makes sense to ask again
}

// Error says how long to wait.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("too many expensive requests, again in %s", e.Wait)
}

// A Gate lets expensive work in.
type Gate struct {
	room     *semaphore.Weighted // of all callers
	paid     *ratelimit.Limiter  // milliseconds
	each     int64               // how many of one caller run at a time
	patience time.Duration

	mu      sync.Mutex
	callers map[string]*caller // who is inside
}

// A caller has requests inside of a Gate.
type caller struct {
	inside int
	turns  *semaphore.Weighted
}

// New returns a Gate that lets as many in at a time as there is room, so many of each
// caller, and each within share: in milliseconds, or the zero Limit for no bound. A
// request waits for patience.
func New(room, each int, share ratelimit.Limit, patience time.Duration) *Gate {
	return &Gate{
		room: semaphore.NewWeighted(int64(room)), paid: ratelimit.New(share), each: int64(each), patience: patience,
		callers: make(map[string]*caller),
	}
}

// Do does work for a caller once it is its turn, and takes the time that it took
// from the caller's share. Without doing it, it returns a *TooManyError, ErrBusy, or
// the error of ctx.
func (g *Gate) Do(ctx context.Context, name string, work func(ctx context.Context) error) error {
	c := g.enter(name)
	if c == nil {
		return &TooManyError{time.Second}
	}
	defer g.leave(name, c)
	waiting, cancel := context.WithTimeout(ctx, g.patience)
	defer cancel()
	if c.turns.Acquire(waiting, 1) != nil {
		return refusal(ctx, &TooManyError{time.Second})
	}
	defer c.turns.Release(1)
	if err := g.awaitShare(waiting, name); err != nil {
		return refusal(ctx, err)
	}
	if g.room.Acquire(waiting, 1) != nil {
		return refusal(ctx, ErrBusy)
	}
	defer g.room.Release(1)
	began := time.Now()
	defer func() { g.paid.Charge(name, float64(min(time.Since(began), mostPaid))/float64(time.Millisecond)) }()
	return work(ctx)
}

// refusal is err, unless the request itself has ended.
func refusal(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("wait for a turn: %w", ctx.Err())
	}
	return err
}

// awaitShare waits until the caller owes nothing, if that is soon.
func (g *Gate) awaitShare(ctx context.Context, name string) error {
	for {
		wait := g.paid.Debt(name)
		if wait == 0 {
			return nil
		}
		if end, _ := ctx.Deadline(); time.Until(end) < wait {
			return &TooManyError{wait}
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return &TooManyError{wait}
		}
	}
}

// enter returns nil if too many of the caller's requests are inside.
func (g *Gate) enter(name string) *caller {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.callers[name]
	if c == nil {
		c = &caller{turns: semaphore.NewWeighted(g.each)}
		g.callers[name] = c
	}
	if c.inside >= maxInside {
		return nil
	}
	c.inside++
	return c
}

func (g *Gate) leave(name string, c *caller) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.inside--; c.inside == 0 {
		delete(g.callers, name)
	}
}
