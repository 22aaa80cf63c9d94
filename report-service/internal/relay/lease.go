package relay

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
)

const (
	// shortOfShare is how often a replica that is owed shards asks for them:
	// those who own too many need a moment to drain.
	shortOfShare = time.Second
	// awayGrace is how long a replica without a broker keeps its shards, so
	// that a mere reconnect moves nothing. Then others may try.
	awayGrace = 10 * time.Second
	// leaseTimeout bounds one visit to the database. A late answer would not
	// extend the lease by much.
	leaseTimeout = 3 * time.Second
	// shardsFreed is the channel on which a replica that gave shards back tells
	// the others. A NOTIFY takes a lock that all of them share; there are as few
	// of these as replicas come and go. Where a pooler swallows them, the others
	// see it at their next visit.
	shardsFreed = "relay_shards_freed"
	// leaseRetry is the pause after a visit that failed.
	leaseRetry = 500 * time.Millisecond
)

// leases keeps this replica's share of the shards: as many as are fair among
// the living replicas. The rows in relay_shards are the only truth, and the
// server's clock the only one that ends a lease there; here, a lease counts
// from the moment before it was asked for.
type leases struct {
	url    *pgx.ConnConfig
	log    zerolog.Logger
	id     uuid.UUID
	length time.Duration
	margin time.Duration
	own    *ownership
	note   *metrics
	kick   chan struct{}
	away   atomic.Int64 // since when there is no broker, in Unix nanoseconds; 0 if there is

	conn *pgx.Conn // its own: a busy pool must not cost a lease
}

func newLeases(cfg Config, id uuid.UUID, own *ownership, note *metrics) *leases {
	l := &leases{
		url: cfg.Pool.Config().ConnConfig, log: cfg.Log, id: id,
		length: cfg.Lease, margin: cfg.margin(), own: own, note: note,
		kick: make(chan struct{}, 1),
	}
	l.away.Store(1) // for ages: whoever never met the broker owns nothing
	return l
}

// reach tells whether there is a connection to publish on.
func (l *leases) reach(connected bool) {
	if connected {
		l.away.Store(0)
	} else {
		l.away.Store(time.Now().UnixNano())
	}
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// run keeps the share until ctx ends, and then gives everything back at once.
func (l *leases) run(ctx context.Context) {
	for ctx.Err() == nil {
		wait, err := l.visit(ctx)
		if err != nil && ctx.Err() == nil {
			l.log.Warn().Err(err).Msg("lease not renewed")
			wait = leaseRetry
		}
		l.rest(ctx, wait)
	}
	l.leave(context.WithoutCancel(ctx))
}

// rest returns when the next visit is due: after wait, when the broker comes or
// goes, or when another replica has given shards back, which would otherwise
// lie idle until then.
func (l *leases) rest(ctx context.Context, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if l.conn == nil {
		select {
		case <-ctx.Done():
		case <-l.kick:
		}
		return
	}
	var kicked sync.WaitGroup
	defer kicked.Wait()
	defer cancel()
	kicked.Go(func() {
		defer cancel()
		select {
		case <-ctx.Done():
		case <-l.kick:
		}
	})
	for {
		// The end of ctx leaves the connection as it is; if it is broken, the
		// next visit finds out.
		told, err := l.conn.WaitForNotification(ctx)
		if err != nil || told.PID != l.conn.PgConn().PID() {
			return
		}
	}
}

// visit renews, hands over or takes what is due, and returns when to come
// again.
func (l *leases) visit(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	if err := l.connect(ctx); err != nil {
		return 0, err
	}
	wait, err := l.settle(ctx)
	if err != nil {
		_ = l.conn.Close(ctx) // it may be half dead
		l.conn = nil
	}
	return wait, err
}

func (l *leases) connect(ctx context.Context) error {
	if l.conn != nil {
		return nil
	}
	conn, err := pgx.ConnectConfig(ctx, l.url)
	if err != nil {
		return fmt.Errorf("connect for leases: %w", err)
	}
	if _, err := conn.Exec(ctx, "listen "+shardsFreed); err != nil {
		_ = conn.Close(ctx) // it may be half dead
		return fmt.Errorf("listen for freed shards: %w", err)
	}
	l.conn = conn
	return nil
}

func (l *leases) settle(ctx context.Context) (time.Duration, error) {
	if since := l.away.Load(); since != 0 && time.Since(time.Unix(0, since)) > awayGrace {
		return l.length / 3, l.giveUp(ctx)
	}
	before := time.Now() // the server extends later than this, so we end before it does
	seen, err := l.renew(ctx)
	if err != nil {
		return 0, err
	}
	l.own.renew(seen.mine, before.Add(l.length-l.margin))
	share := seen.share()
	l.own.release(max(0, len(seen.mine)-share))
	if err := l.handOver(ctx, l.own.drained()); err != nil {
		return 0, err
	}
	owned := len(seen.mine)
	if missing := share - len(seen.mine); missing > 0 && seen.free > 0 {
		taken, err := l.take(ctx, missing)
		if err != nil {
			return 0, err
		}
		owned += len(taken)
		l.own.add(taken)
	}
	l.note.owned(l.own)
	return l.next(owned, share, seen.firstEnd), nil
}

// next is due a third into the lease; sooner while the shares are uneven, and
// at the moment when another's lease ends unrenewed.
func (l *leases) next(owned, share int, firstEnd time.Duration) time.Duration {
	wait := l.length / 3
	if owned != share {
		wait = min(wait, shortOfShare)
	}
	if firstEnd > 0 {
		wait = min(wait, firstEnd+time.Millisecond)
	}
	return wait
}

// giveUp returns everything that is not under way, because others may reach
// the broker that this replica cannot reach.
func (l *leases) giveUp(ctx context.Context) error {
	l.own.release(outbox.ShardCount)
	if err := l.handOver(ctx, l.own.drained()); err != nil {
		return err
	}
	l.note.owned(l.own)
	if _, err := l.conn.Exec(ctx, `delete from relay_members where member = $1`, l.id); err != nil {
		return fmt.Errorf("leave the members: %w", err)
	}
	return nil
}

// leave gives everything back; nothing is under way any more.
func (l *leases) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	l.own.clear() // before the shards can be another's
	err := l.connect(ctx)
	if err == nil {
		defer l.conn.Close(ctx) // the end
		// In one statement: a deadline between two would leave a member without
		// shards, for whom the others keep a share free.
		err = l.free(ctx, `
			with gone as (delete from relay_members where member = $1)
			update relay_shards set owner = null, lease_until = null where owner = $1`, l.id)
	}
	if err != nil {
		l.log.Warn().Err(err).Msg("leases not given back, they will end by themselves")
	}
	l.note.owned(l.own)
}
