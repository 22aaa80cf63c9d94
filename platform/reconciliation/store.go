package reconciliation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// A store keeps the manifests of a group.
type store struct {
	pool  *pgxpool.Pool
	group string
}

// start notes when the group began to compare, for the first time and after each restore
// of the database. A database without database_origin does not notice restores.
func (s *store) start(ctx context.Context) error {
	noticed, err := pgpool.Value[bool](ctx, s.pool, "look for restores", `select to_regclass('database_origin') is not null`)
	if err != nil {
		return err
	}
	restores := 0
	if noticed {
		err := s.pool.QueryRow(ctx, `select restores from database_origin`).Scan(&restores)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("read restores: %w", err)
		}
	}
	return pgpool.Exec(ctx, s.pool, "note the start of comparing", `
		insert into reconciliation_starts (consumer_group, restores) values ($1, $2) on conflict do nothing`, s.group, restores)
}

// receive keeps a manifest. One that is here already stays, unless the publisher has
// used its number again for another time, as after a failover that nobody noticed.
func (s *store) receive(ctx context.Context, m event.Manifest, body []byte, wait time.Duration) error {
	return pgpool.Exec(ctx, s.pool, "keep manifest", `
		insert into reconciliation_manifests as m (consumer_group, epoch, number, starts_at, ends_at, lost_before, body, check_at)
		values ($1, $2, $3, $4, $5, $6, $7, now() + $8::interval)
		on conflict (consumer_group, epoch, number) do update
		set starts_at = excluded.starts_at, ends_at = excluded.ends_at, lost_before = excluded.lost_before, received_at = now(),
		    body = excluded.body, state = 'waiting', checks = 0, check_at = excluded.check_at, expected = 0, missing = '{}', closed = '{}'
		where (m.starts_at, m.ends_at) <> (excluded.starts_at, excluded.ends_at)`,
		s.group, m.Epoch, m.Number, m.From, m.Until, pgpool.OrNull(m.LostBefore), body, wait)
}

// A due is a manifest whose check is due.
type due struct {
	epoch, number int64
	body          []byte
	began         time.Time // the group: nobody knows which of the messages before were for it
	assessment
}

// takeSQL takes the manifest whose check has been due for longest. What is left of it is
// explained if its messages were published before the group's database was restored, or
// while the publisher is publishing again what was published before. The queues of a
// new group may be bound a moment after it began, and clocks differ.
const takeSQL = `
	select m.epoch, m.number, m.body, m.state, m.checks,
	       now() - m.check_at, now() - m.ends_at,
	       coalesce(m.starts_at < (select nullif(max(started_at), min(started_at)) from reconciliation_starts where consumer_group = $1), false)
	       or coalesce(m.starts_at < (
			select lost_before from reconciliation_manifests
			where consumer_group = $1 order by epoch desc, number desc limit 1), false),
	       coalesce((select min(started_at) from reconciliation_starts where consumer_group = $1) + interval '10 seconds', '-infinity')
	from reconciliation_manifests m
	where m.consumer_group = $1 and m.check_at <= now()
	order by m.check_at limit 1
	for update skip locked`

// take takes a manifest that is due, in tx. There is false if none is.
func (s *store) take(ctx context.Context, tx pgx.Tx) (d due, there bool, err error) {
	err = tx.QueryRow(ctx, takeSQL, s.group).Scan(&d.epoch, &d.number, &d.body, &d.state, &d.checks, &d.overdue, &d.age, &d.explained, &d.began)
	if errors.Is(err, pgx.ErrNoRows) {
		return d, false, nil
	}
	if err != nil {
		return d, false, fmt.Errorf("take a manifest: %w", err)
	}
	return d, true, nil
}

// leftSQL first reads what was handled about when the messages were published, in the
// order in which it was written: that has nearly all of them, and costs a tenth of a
// lookup for each. It looks up the rest by id. A message that is a dead letter, or was
// one, is accounted for: an operator sees it, or has dealt with it.
const leftSQL = `
	with recent as materialized (
	  select message_id from processed_messages
	  where consumer = $1 and processed_at >= $3::timestamptz - interval '5 seconds' and processed_at < $4::timestamptz + interval '5 seconds'
	), rest as materialized (
	  select p.id from unnest($2::uuid[]) as p (id)
	  where not exists (select from recent r where r.message_id = p.id::text)
	)
	select id from rest
	where not exists (select from processed_messages m where m.consumer = $1 and m.message_id = rest.id::text)
	  and not exists (select from dead_letters d where d.queue = $1 and d.message_id = rest.id::text)
	  and not exists (select from delayed_messages w where w.queue = $1 and w.message_id = rest.id::text)`

// left returns those of the ids, published from one time until another, that are not
// accounted for in queue.
func (s *store) left(ctx context.Context, tx pgx.Tx, queue string, ids []uuid.UUID, from, until time.Time) ([]uuid.UUID, error) {
	packed := make([]pgtype.UUID, len(ids)) // pgx would encode uuid.UUID through its text
	for i, id := range ids {
		packed[i] = pgtype.UUID{Bytes: id, Valid: true}
	}
	// Planned each time: a plan that was made while the tables were empty would read the
	// whole of them.
	return pgpool.Collect(ctx, tx, "look for messages", pgx.RowTo[uuid.UUID], leftSQL, pgx.QueryExecModeCacheDescribe, queue, packed, from, until)
}

// waits reports whether the consumer of queue has put off one of the ids a moment ago.
func (s *store) waits(ctx context.Context, tx pgx.Tx, queue string, ids []uuid.UUID) (waits bool, err error) {
	return pgpool.Value[bool](ctx, tx, "look for messages that wait", `
		select exists (select from message_starts
		  where queue = $1 and message_id = any($2::uuid[]::text[]) and started_at > now() - $3::interval)`,
		queue, ids, putOffFor)
}

// A result is what a check leaves behind.
type result struct {
	state    State
	checks   int
	next     time.Duration
	expected int
	missing  []uuid.UUID
}

// note keeps the result of a check, without the messages that are closed. The body of a complete manifest goes.
func (s *store) note(ctx context.Context, tx pgx.Tx, d due, r result) error {
	var next *time.Duration
	if r.next > 0 {
		next = &r.next
	}
	if r.missing == nil {
		r.missing = []uuid.UUID{}
	}
	return pgpool.Exec(ctx, tx, "note a check", `
		update reconciliation_manifests
		set state = $4, checks = $5, check_at = now() + $6::interval, expected = $7,
		    missing = array(select id from unnest($8::uuid[]) as left_over (id) where id <> all (closed)),
		    body = case when $4 = 'complete' then null else body end
		where consumer_group = $1 and epoch = $2 and number = $3`,
		s.group, d.epoch, d.number, r.state, r.checks, next, r.expected, r.missing)
}

// forget deletes manifests that are too old to be of interest.
func (s *store) forget(ctx context.Context) error {
	return pgpool.Exec(ctx, s.pool, "forget manifests", `
		delete from reconciliation_manifests where consumer_group = $1 and received_at < now() - interval '30 days'`, s.group)
}

// Figures are the sums over the manifests of a group of the last three days.
type Figures struct {
	Missing int64 // messages that got lost
	Deleted int64 // rows that were deleted by hand, instead of all others
	Unknown int64 // messages that may have got lost, with an explanation
	Gap     int64 // manifests that got lost
	// Late is the time since the end of the last manifest, or since the group began to wait
	// for one. It is negative if the publisher's clock is ahead.
	Late    time.Duration
	Awaited int64 // messages that were not found yet, and may be on their way
	// Compared is the end of the last manifest that was compared, or the zero time.
	Compared time.Time
}

// figuresSQL counts a gap between two manifests of an epoch once the second is here for a
// while. It is explained if the group's database was restored after it, or its broker has
// lost its disk.
const figuresSQL = `
	with started as (
	  select coalesce(max(started_at), now()) as at from reconciliation_starts where consumer_group = $1
	), recent as (
	  select *, lag(number) over w as before, lag(ends_at) over w as ended,
	         max(lost_before) over () as lost_before_at
	  from reconciliation_manifests
	  where consumer_group = $1 and received_at > now() - $2::interval
	  window w as (partition by epoch order by number)
	)
	select coalesce(sum(cardinality(missing)) filter (where state = 'missing'), 0)::bigint,
	       coalesce(sum(cardinality(missing)) filter (where state = 'unknown'), 0)::bigint,
	       coalesce(sum(number - before - 1) filter (
	         where received_at < now() - $3::interval and ended >= started.at and ended >= coalesce(lost_before_at, '-infinity')), 0)::bigint,
	       now() - greatest((array_agg(ends_at order by epoch desc, number desc))[1], max(started.at)),
	       coalesce(sum(cardinality(missing)) filter (where state = 'waiting'), 0)::bigint,
	       max(ends_at) filter (where checks > 0 or state <> 'waiting')
	from started left join recent on true`

// figures returns the sums.
func (s *store) figures(ctx context.Context) (f Figures, err error) {
	var compared *time.Time
	err = s.pool.QueryRow(ctx, figuresSQL, s.group, lookBack, gapGrace).
		Scan(&f.Missing, &f.Unknown, &f.Gap, &f.Late, &f.Awaited, &compared)
	if err != nil {
		return f, fmt.Errorf("read the results of comparing: %w", err)
	}
	if compared != nil {
		f.Compared = *compared
	}
	return f, nil
}
