package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// A Shard is the backlog of one shard, and which replica publishes it.
type Shard struct {
	Shard      int16
	Pending    int64
	Delayed    int64 // pending, after a failed attempt
	Failed     int64
	OldestAge  time.Duration // of the oldest pending row, 0 without one
	Owner      *uuid.UUID    // the replica of the relay, nil if the shard is free
	Epoch      int64
	LeaseUntil *time.Time
}

// Stats are the figures of the whole outbox.
type Stats struct {
	Pending   int64
	Delayed   int64
	Failed    int64
	OldestAge time.Duration
	Members   int64 // living replicas of the relay
	Shards    []Shard
}

// Stats counts the outbox, in one pass over the pending rows.
func (s *Store) Stats(ctx context.Context) (Stats, error) {
	var stats Stats
	var err error
	stats.Shards, err = pgpool.Collect(ctx, s.pool, "count outbox", func(row pgx.CollectableRow) (shard Shard, err error) {
		return shard, row.Scan(&shard.Shard, &shard.Pending, &shard.Delayed, &shard.Failed, &shard.OldestAge,
			&shard.Owner, &shard.Epoch, &shard.LeaseUntil, &stats.Members)
	}, `
		select s.shard, coalesce(p.pending, 0), coalesce(d.delayed, 0), coalesce(f.failed, 0),
		       greatest(interval '0', now() - o.created_at),
		       s.owner, s.epoch, s.lease_until,
		       (select count(*) from relay_members where seen_until > now())
		from relay_shards s
		left join (
			select shard, count(*) as pending from outbox_messages where status = 'pending' group by shard
		) p on p.shard = s.shard
		left join (
			select shard, count(*) as delayed from outbox_messages
			where status = 'pending' and retry_count > 0 group by shard
		) d on d.shard = s.shard
		left join (
			select shard, count(*) as failed from outbox_messages where status = 'failed' group by shard
		) f on f.shard = s.shard
		left join lateral (
			select created_at from outbox_messages
			where status = 'pending' and shard = s.shard order by seq limit 1
		) o on true
		order by s.shard`)
	if err != nil {
		return Stats{}, err
	}
	for _, shard := range stats.Shards {
		stats.Pending += shard.Pending
		stats.Delayed += shard.Delayed
		stats.Failed += shard.Failed
		stats.OldestAge = max(stats.OldestAge, shard.OldestAge)
	}
	return stats, nil
}

// recentShare is the part of the time that Recent may spend on counting.
const recentShare = 50

// Recent returns the last count until it is older than recentShare times its
// duration, and then a new one. While the broker is away the outbox may have
// millions of rows: periodic readers, such as charts and metrics, cost the
// database a fiftieth of its time at most.
func (s *Store) Recent(ctx context.Context) (Stats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Before(s.recentUntil) {
		return s.recent, nil
	}
	stats, err := s.Stats(ctx)
	if err != nil {
		return Stats{}, err
	}
	s.recent, s.recentUntil = stats, time.Now().Add(recentShare*time.Since(now))
	return stats, nil
}
