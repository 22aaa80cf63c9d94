package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
)

// A census is what a renewal saw.
type census struct {
	mine     []claim
	free     int           // shards that nobody owns or whose lease ended
	firstEnd time.Duration // until the first of the others' leases ends, 0 if none
	members  int           // other living replicas
	rank     int           // how many of them come before this one
}

// share is how many shards this replica should own. Together the shares are
// all shards: where they do not divide evenly, the first members get one more.
func (c census) share() int {
	members := c.members + 1
	share := outbox.ShardCount / members
	if c.rank < outbox.ShardCount%members {
		share++
	}
	return share
}

// renew says that we live, extends the leases that have not ended, and looks
// at all shards, in one statement. An expired lease is not extended, even if
// nobody took it: it needs a new epoch.
//
// What a statement changes is not visible to the select beside it. So the
// leases that were kept are told by returning, and this replica, which may not
// stand among the members yet, is left out of their number and added in share.
func (l *leases) renew(ctx context.Context) (census, error) {
	rows, err := l.conn.Query(ctx, `
		with alive as (
			insert into relay_members (member, seen_until) values ($1, now() + $2::interval)
			on conflict (member) do update set seen_until = excluded.seen_until
		), gone as (
			delete from relay_members where seen_until < now() - interval '1 hour' and member <> $1
		), kept as (
			update relay_shards set lease_until = now() + $2::interval
			where owner = $1 and lease_until > now()
			returning shard
		)
		select s.shard, s.epoch, k.shard is not null,
		       coalesce(extract(epoch from s.lease_until - now()), 0)::float8,
		       (select count(*) from relay_members where seen_until > now() and member <> $1),
		       (select count(*) from relay_members where seen_until > now() and member < $1)
		from relay_shards s left join kept k on k.shard = s.shard`, l.id, l.length)
	if err != nil {
		return census{}, fmt.Errorf("renew leases: %w", err)
	}
	var seen census
	var c claim
	var mine bool
	var left float64
	_, err = pgx.ForEachRow(rows, []any{&c.shard, &c.epoch, &mine, &left, &seen.members, &seen.rank}, func() error {
		ends := time.Duration(left * float64(time.Second))
		switch {
		case mine:
			seen.mine = append(seen.mine, c)
		case ends <= 0:
			seen.free++
		case seen.firstEnd == 0 || ends < seen.firstEnd:
			seen.firstEnd = ends
		}
		return nil
	})
	if err != nil {
		return census{}, fmt.Errorf("renew leases: %w", err)
	}
	return seen, nil
}

// take claims up to n shards that are nobody's, each in a new epoch. Those that
// another is taking in this moment are left to it.
func (l *leases) take(ctx context.Context, n int) ([]claim, error) {
	rows, err := l.conn.Query(ctx, `
		update relay_shards set owner = $1, epoch = epoch + 1, lease_until = now() + $2::interval
		where shard in (
			select shard from relay_shards where owner is null or lease_until <= now()
			order by shard limit $3 for update skip locked
		)
		returning shard, epoch`, l.id, l.length, n)
	if err != nil {
		return nil, fmt.Errorf("take shards: %w", err)
	}
	taken, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c claim, err error) {
		return c, row.Scan(&c.shard, &c.epoch)
	})
	if err != nil {
		return nil, fmt.Errorf("take shards: %w", err)
	}
	if len(taken) > 0 {
		l.log.Info().Int("shards", len(taken)).Msg("shards taken")
	}
	return taken, nil
}

// handOver gives drained shards back, so that another may take them at once.
// Only what is still ours: after a lease that ended, it may be another's.
func (l *leases) handOver(ctx context.Context, shards []int16) error {
	if len(shards) == 0 {
		return nil
	}
	err := l.free(ctx, `
		update relay_shards set owner = null, lease_until = null
		where owner = $1 and shard = any($2)`, l.id, shards)
	if err != nil {
		return fmt.Errorf("hand shards over: %w", err)
	}
	l.log.Info().Ints16("shards", shards).Msg("shards handed over")
	return nil
}

// free does what makes shards nobody's and tells the other replicas, in one
// transaction.
func (l *leases) free(ctx context.Context, sql string, args ...any) error {
	var both pgx.Batch // without a begin of its own, it is one transaction and one round trip
	both.Queue(sql, args...)
	both.Queue("notify " + shardsFreed)
	return l.conn.SendBatch(ctx, &both).Close()
}
