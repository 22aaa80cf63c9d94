package shards

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// connect opens the connection of the leases, unless it is open.
func (c *Coordinator) connect(ctx context.Context) error {
	if c.conn != nil {
		return nil
	}
	conn, err := pgx.ConnectConfig(ctx, c.cfg.Database)
	if err != nil {
		return fmt.Errorf("connect for leases: %w", err)
	}
	if _, err := conn.Exec(ctx, "listen "+freedChannel); err != nil {
		_ = conn.Close(ctx) // it may be half dead
		return fmt.Errorf("listen for released shards: %w", err)
	}
	c.conn, c.connectedAt, c.holdsLock = conn, time.Now(), false
	c.seenLocked = make(map[uuid.UUID]bool)
	return nil
}

// holdLock takes the advisory lock that shows the others that this process is
// alive. An earlier connection may hold it a little longer: then the next
// renewal tries again.
func (c *Coordinator) holdLock(ctx context.Context) error {
	if c.holdsLock {
		return nil
	}
	err := c.conn.QueryRow(ctx, `select pg_try_advisory_lock($1)`, sessionLock(c.cfg.ID)).Scan(&c.holdsLock)
	if err != nil {
		return fmt.Errorf("lock the session: %w", err)
	}
	return nil
}

// sessionLock returns the number of a member's advisory lock.
func sessionLock(member uuid.UUID) int64 { return int64(binary.BigEndian.Uint64(member[8:])) }

// releaseDead frees the shards of members whose session with the database has
// ended, and reports whether there were any. A living member connects again at
// once: only one that is without its lock for deadAfter is dead. Just after a
// restart of the database that applies only to members that have connected
// again.
func (c *Coordinator) releaseDead(ctx context.Context) (released bool, err error) {
	var unlocked []uuid.UUID
	var member uuid.UUID
	var free bool
	restarted := time.Since(c.connectedAt) < reconnectGrace
	err = pgpool.ForEach(ctx, c.conn, "check for dead replicas", []any{&member, &free}, func() error {
		switch {
		case !free:
			c.seenLocked[member] = true
		case c.seenLocked[member] || !restarted:
			unlocked = append(unlocked, member)
		}
		return nil
	}, `
		select member, pg_try_advisory_xact_lock_shared(session_lock) from relay_members
		where member <> $1 and seen_until > now() and session_lock is not null`, c.cfg.ID)
	if err != nil {
		return false, err
	}
	now, before := time.Now(), c.unlockedSince
	c.unlockedSince = make(map[uuid.UUID]time.Time, len(unlocked))
	for _, member := range unlocked {
		since, seen := before[member]
		if !seen {
			since = now
		}
		if now.Sub(since) < deadAfter {
			c.unlockedSince[member] = since
			continue
		}
		err := c.releaseAndNotify(ctx, `
			with dead as (
				delete from relay_members
				where member = $1 and pg_try_advisory_xact_lock_shared(session_lock)
				returning member
			)
			update relay_shards set owner = null, lease_until = null
			where owner in (select member from dead)`, member)
		if err != nil {
			return released, fmt.Errorf("release the shards of a dead replica: %w", err)
		}
		delete(c.seenLocked, member)
		c.cfg.Log.Warn().Stringer("replica", member).Msg("a replica died, its shards are free")
		released = true
	}
	return released, nil
}

// A membership is the result of a renewal: this replica among the others.
type membership struct {
	leases     []Lease       // this replica's, renewed
	free       int           // shards without an owner, or with an expired lease
	nextExpiry time.Duration // until the first lease of the others ends, 0 without one
	others     int           // other living replicas
	rank       int           // how many of them come before this one
}

// share is how many shards this replica should own. The shares add up to all
// shards: if they do not divide evenly, the first members get one more.
func (m membership) share() int {
	members := m.others + 1
	share := Count / members
	if m.rank < Count%members {
		share++
	}
	return share
}

// renew registers this replica as living, extends its leases that have not
// ended, and reads all shards, in one statement. A lease that has ended is not
// extended, even if the shard is still free: it needs a new epoch.
//
// Each time it reads from pg_locks whether this session holds the lock: a pooler
// may run a statement in another session than the one before.
//
// A statement's changes are not visible to the select beside it. So the renewed
// leases come from returning, and this replica, which may not be among the
// members yet, is left out of their number and added in share.
func (c *Coordinator) renew(ctx context.Context) (membership, error) {
	var seen membership
	var lease Lease
	var renewed bool
	var left float64
	err := pgpool.ForEach(ctx, c.conn, "renew leases", []any{&lease.Shard, &lease.Epoch, &renewed, &left, &seen.others, &seen.rank}, func() error {
		expiry := time.Duration(left * float64(time.Second))
		switch {
		case renewed:
			seen.leases = append(seen.leases, lease)
		case expiry <= 0:
			seen.free++
		case seen.nextExpiry == 0 || expiry < seen.nextExpiry:
			seen.nextExpiry = expiry
		}
		return nil
	}, `
		with alive as (
			insert into relay_members (member, seen_until, session_lock)
			values ($1, now() + $2::interval, (
				select $3::bigint where exists (
					select from pg_locks where pid = pg_backend_pid() and locktype = 'advisory' and granted
				)
			))
			on conflict (member) do update set seen_until = excluded.seen_until, session_lock = excluded.session_lock
		), gone as (
			delete from relay_members where seen_until < now() - interval '1 hour' and member <> $1
		), renewed as (
			update relay_shards set lease_until = now() + $2::interval
			where owner = $1 and lease_until > now()
			returning shard
		)
		select s.shard, s.epoch, r.shard is not null,
		       coalesce(extract(epoch from s.lease_until - now()), 0)::float8,
		       (select count(*) from relay_members where seen_until > now() and member <> $1),
		       (select count(*) from relay_members where seen_until > now() and member < $1)
		from relay_shards s left join renewed r on r.shard = s.shard`, c.cfg.ID, c.cfg.Lease, sessionLock(c.cfg.ID))
	if err != nil {
		return membership{}, err
	}
	return seen, nil
}

// acquire leases up to n free shards, each in a new epoch. Shards that another
// replica acquires at the same moment are left to it.
func (c *Coordinator) acquire(ctx context.Context, n int) ([]Lease, error) {
	acquired, err := pgpool.Collect(ctx, c.conn, "acquire shards", pgx.RowToStructByPos[Lease], `
		update relay_shards set owner = $1, epoch = epoch + 1, lease_until = now() + $2::interval
		where shard in (
			select shard from relay_shards where owner is null or lease_until <= now()
			order by shard limit $3 for update skip locked
		)
		returning shard, epoch`, c.cfg.ID, c.cfg.Lease, n)
	if err != nil {
		return nil, err
	}
	if len(acquired) > 0 {
		c.cfg.Log.Info().Int("shards", len(acquired)).Msg("shards acquired")
	}
	return acquired, nil
}

// releaseShards frees drained shards, so that another replica may acquire them
// at once. It frees only shards that this replica still owns: after its lease
// ended, another may own a shard.
func (c *Coordinator) releaseShards(ctx context.Context, drained []int16) error {
	if len(drained) == 0 {
		return nil
	}
	err := c.releaseAndNotify(ctx, `
		update relay_shards set owner = null, lease_until = null
		where owner = $1 and shard = any($2)`, c.cfg.ID, drained)
	if err != nil {
		return fmt.Errorf("release shards: %w", err)
	}
	c.cfg.Log.Info().Ints16("shards", drained).Msg("shards released")
	return nil
}

// releaseAndNotify runs a statement that frees shards and notifies the other
// replicas, in one transaction.
func (c *Coordinator) releaseAndNotify(ctx context.Context, sql string, args ...any) error {
	var both pgx.Batch // without a begin of its own, it is one transaction and one round trip
	both.Queue(sql, args...)
	both.Queue("notify " + freedChannel)
	return c.conn.SendBatch(ctx, &both).Close()
}
