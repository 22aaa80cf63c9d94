package pgpool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/backoff"
)

const (
	// turnTimeout is how long a connection may wait until it is tried. After that its
	// caller gets the error that the server is away.
	turnTimeout = time.Second
	// The pauses after attempts that failed.
	firstPause, maxPause = 50 * time.Millisecond, time.Second
)

// connects says how many connections a pool makes at a time: one after an attempt
// that failed, and twice as many after each that did not.
//
// A server that comes back starts a process for each connection, in the order in
// which they came. If every caller that needs one connects, and connects again after a
// timeout, then the server starts processes for clients that have long given up, and
// a slow machine never gets to the others.
type connects struct {
	mu       sync.Mutex
	underWay int
	limit    int       // of those under way
	most     int       // of the limit
	failure  error     // the last one, until the limit is at its most
	notUntil time.Time // the next attempt
	pauses   backoff.Backoff
	changed  chan struct{} // closed at the end of each attempt
}

func newConnects(most int32) *connects {
	return &connects{
		limit: int(most), most: int(most), changed: make(chan struct{}),
		pauses: backoff.Backoff{First: firstPause, Max: maxPause},
	}
}

// before waits for the turn of a connection that is about to be made. It is
// pgxpool's hook of that name. Where others go on failing its error is theirs.
func (c *connects) before(ctx context.Context, cfg *pgx.ConnConfig) error {
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	for {
		begun, pause, changed := c.begin()
		if begun {
			cfg.Tracer = attempt{c}
			return nil
		}
		select {
		case <-time.After(pause):
		case <-changed:
		case <-ctx.Done():
			return c.refusal(ctx)
		}
	}
}

// begin begins an attempt, if it may, or returns how long to wait before asking
// again, if nothing changes before.
func (c *connects) begin() (begun bool, pause time.Duration, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.underWay >= c.limit {
		return false, turnTimeout, c.changed
	}
	if pause = time.Until(c.notUntil); pause > 0 {
		return false, pause, c.changed
	}
	c.underWay++
	return true, 0, nil
}

// refusal says why the turn of a connection did not come.
func (c *connects) refusal(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil {
		return ctx.Err()
	}
	return fmt.Errorf("wait to connect again after: %w", c.failure)
}

// end ends an attempt.
func (c *connects) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.underWay--
	switch {
	case err == nil:
		c.limit = min(2*c.limit, c.most)
		c.pauses.Reset()
		if c.limit == c.most {
			c.failure = nil
		}
	case errors.Is(err, context.Canceled): // the pool is closed
	default:
		c.limit, c.failure = 1, err
		if now := time.Now(); now.After(c.notUntil) { // else it began with one that has failed already
			c.notUntil = now.Add(c.pauses.Next())
		}
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// An attempt records how the making of a connection has ended.
type attempt struct{ connects *connects }

// TraceConnectStart implements pgx.ConnectTracer.
func (attempt) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return ctx
}

// TraceConnectEnd implements pgx.ConnectTracer.
func (a attempt) TraceConnectEnd(_ context.Context, data pgx.TraceConnectEndData) {
	a.connects.end(data.Err)
}

// TraceQueryStart implements pgx.QueryTracer, as a tracer has to.
func (attempt) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer, as a tracer has to.
func (attempt) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
