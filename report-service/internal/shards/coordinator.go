package shards

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const (
	// unevenInterval is how often a replica renews while it owns more or fewer
	// shards than its share: those who own too many need a moment to drain.
	unevenInterval = time.Second
	// disconnectedGrace is how long a replica without a broker keeps its
	// shards, so that a mere reconnect moves no shards. Then others may try.
	disconnectedGrace = 10 * time.Second
	// renewTimeout bounds one exchange with the database. A later answer would
	// not extend the lease by much.
	renewTimeout = 3 * time.Second
	// retryPause is the pause after a renewal that failed.
	retryPause = 500 * time.Millisecond
	// deathCheckInterval is how often a replica checks whether another has died.
	deathCheckInterval = 400 * time.Millisecond
	// deadAfter is how long a replica must be without its session with the
	// database to count as dead. A living one has a new session before.
	deadAfter = 700 * time.Millisecond
	// reconnectGrace is how long after its own connection a replica counts no
	// other as dead that it has not seen since: a restart of the database ends all
	// sessions at once.
	reconnectGrace = 5 * time.Second
	// sessionGrace is how long a replica publishes without its session. It is
	// below deadAfter: after that another may own its shards.
	sessionGrace = 500 * time.Millisecond
	// freedChannel is where a replica notifies the others of shards that it
	// released. A NOTIFY takes a lock at commit that all sessions share; there
	// are as few of these as replicas come and go. Where a pooler swallows them,
	// the others see the shards at their next renewal.
	freedChannel = "relay_shards_freed"
)

// A Config is what a Coordinator needs.
type Config struct {
	Database *pgx.ConnConfig
	ID       uuid.UUID     // of this replica
	Lease    time.Duration // how long a lease lasts in the database
	Margin   time.Duration // how much earlier this replica regards it as expired
	Log      zerolog.Logger
}

// A Coordinator keeps this replica's share of the shards: as many as are fair
// among the living replicas that have a broker. The rows of relay_shards are
// the only truth, and the server's clock alone ends a lease there; here, a
// lease counts from the moment before it was requested.
type Coordinator struct {
	cfg    Config
	leases *Leases
	wakeUp chan struct{} // holds a value when a renewal is due at once
	// disconnectedSince is when the broker was lost, in Unix nanoseconds; 0 while
	// there is one.
	disconnectedSince atomic.Int64

	// The fields below belong to Run.
	conn          *pgx.Conn // its own: a busy pool must not cost a lease
	connectedAt   time.Time
	holdsLock     bool
	others        int                     // other living members at the last renewal
	seenLocked    map[uuid.UUID]bool      // members seen with the lock of their session since connectedAt
	unlockedSince map[uuid.UUID]time.Time // members seen without it
}

// NewCoordinator returns a coordinator that writes what it owns to leases. It
// acquires nothing before SetConnected(true).
func NewCoordinator(cfg Config, leases *Leases) *Coordinator {
	c := &Coordinator{cfg: cfg, leases: leases, wakeUp: make(chan struct{}, 1)}
	c.disconnectedSince.Store(1) // a replica that has never connected owns no shards
	return c
}

// SetConnected records whether there is a connection to publish on.
func (c *Coordinator) SetConnected(connected bool) {
	if connected {
		c.disconnectedSince.Store(0)
	} else {
		c.disconnectedSince.Store(time.Now().UnixNano())
	}
	select {
	case c.wakeUp <- struct{}{}:
	default:
	}
}

// Run keeps the share until ctx ends, and then releases everything at once: no
// row may be in progress then.
func (c *Coordinator) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		next, err := c.renewOnce(ctx)
		if err != nil && ctx.Err() == nil {
			c.cfg.Log.Warn().Str("error", pgpool.LogText(err)).Msg("renewing the leases failed, will retry")
			next = retryPause
		}
		for due := time.Now().Add(next); ctx.Err() == nil && time.Now().Before(due); {
			if c.waitUntilDue(ctx, min(time.Until(due), deathCheckInterval)) || c.freedByDeath(ctx) {
				break
			}
		}
	}
	c.deregister(context.WithoutCancel(ctx))
	return nil
}

// waitUntilDue returns after wait, or true as soon as the next renewal is due:
// the broker came or went, another replica has released shards, or the
// connection broke.
func (c *Coordinator) waitUntilDue(ctx context.Context, wait time.Duration) (due bool) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if c.conn == nil {
		select {
		case <-ctx.Done():
			return false
		case <-c.wakeUp:
			return true
		}
	}
	var woken atomic.Bool
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	waiting.Go(func() {
		defer cancel()
		select {
		case <-ctx.Done():
		case <-c.wakeUp:
			woken.Store(true)
		}
	})
	for {
		freed, err := c.conn.WaitForNotification(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			c.disconnect(ctx)
			return true
		case err != nil: // as the last step of ctx leaves the connection as it is
			return woken.Load()
		case freed.PID != c.conn.PgConn().PID():
			return true
		}
	}
}

// freedByDeath frees the shards of replicas that have died, and reports whether
// a renewal is due for it. A replica that is alone does not check: an idle
// relay should cost the database next to nothing.
func (c *Coordinator) freedByDeath(ctx context.Context) bool {
	if c.conn == nil || c.others == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	released, err := c.releaseDead(ctx)
	if err != nil && ctx.Err() == nil {
		c.cfg.Log.Warn().Str("error", pgpool.LogText(err)).Msg("checking for dead replicas failed, will retry")
		c.disconnect(ctx)
	}
	return released || err != nil
}

// disconnect closes the connection, which may be half dead. The lock of its
// session is lost with it, so that the leases end soon, too: if the next
// connection takes longer, the others count this replica as dead.
func (c *Coordinator) disconnect(ctx context.Context) {
	_ = c.conn.Close(ctx)
	c.conn = nil
	c.leases.endBy(time.Now().Add(sessionGrace))
}

// renewOnce renews the leases, releases surplus shards and acquires missing
// ones, and returns when to do so again.
func (c *Coordinator) renewOnce(ctx context.Context) (next time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	if err := c.connect(ctx); err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			c.disconnect(ctx)
		}
	}()
	if err := c.holdLock(ctx); err != nil {
		return 0, err
	}

	next = c.cfg.Lease / 3
	if since := c.disconnectedSince.Load(); since != 0 && time.Since(time.Unix(0, since)) > disconnectedGrace {
		return next, c.releaseAll(ctx)
	}
	before := time.Now() // the server extends later than this, so we end before it does
	seen, err := c.renew(ctx)
	if err != nil {
		return 0, err
	}
	c.leases.Renew(seen.leases, before.Add(c.cfg.Lease-c.cfg.Margin))
	c.others = seen.others
	owned, share := len(seen.leases), seen.share()
	c.leases.setReleasing(owned - share)
	if err := c.releaseShards(ctx, c.leases.takeDrained()); err != nil {
		return 0, err
	}
	if owned < share && seen.free > 0 {
		acquired, err := c.acquire(ctx, share-owned)
		if err != nil {
			return 0, err
		}
		c.leases.add(acquired)
		owned += len(acquired)
	}
	if owned != share {
		next = min(next, unevenInterval)
	}
	if seen.nextExpiry > 0 { // the lease of another replica may end without being renewed
		next = min(next, seen.nextExpiry+time.Millisecond)
	}
	return next, nil
}

// releaseAll releases every shard that has no row in progress, because other
// replicas may reach the broker that this one cannot reach.
func (c *Coordinator) releaseAll(ctx context.Context) error {
	c.leases.setReleasing(Count)
	if err := c.releaseShards(ctx, c.leases.takeDrained()); err != nil {
		return err
	}
	return pgpool.Exec(ctx, c.conn, "leave the members", `delete from relay_members where member = $1`, c.cfg.ID)
}

// deregister releases every shard and leaves the members. No row is in
// progress.
func (c *Coordinator) deregister(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	c.leases.clear() // before another can own the shards
	err := c.connect(ctx)
	if err == nil {
		defer c.conn.Close(ctx) // as the last step
		// In one statement: a deadline between two would leave a member without
		// shards, for which the others keep a share free.
		err = c.releaseAndNotify(ctx, `
			with gone as (delete from relay_members where member = $1)
			update relay_shards set owner = null, lease_until = null where owner = $1`, c.cfg.ID)
	}
	if err != nil {
		c.cfg.Log.Warn().Str("error", pgpool.LogText(err)).Msg("releasing the leases failed, they will expire")
	}
}
