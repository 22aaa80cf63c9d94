package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// A Ledger keeps deliveries and lanes. It is a ledger.Store.
type Ledger struct{ pool *pgxpool.Pool }

// freshPlan lets the server plan a statement each time. There may be nothing that
// waits now and a million rows in a minute: a plan that was made for the empty table
// would read the whole of the full one until autovacuum has noticed.
const freshPlan = pgx.QueryExecModeCacheDescribe

// orderedFor is for how long a delivery holds back the later ones of its report.
const orderedFor = time.Hour

// dueLanesSQL jumps from lane to lane along the index (a loose index scan),
// and so reads one row of each, however many wait there.
const dueLanesSQL = `
with recursive first as (
  (select lane, due_at from deliveries
   where channel = $1 and state = 'waiting' order by channel, lane, due_at limit 1)
  union all
  select next.lane, next.due_at from first cross join lateral (
    select lane, due_at from deliveries
    where channel = $1 and state = 'waiting' and lane > first.lane order by channel, lane, due_at limit 1) next
)
select lane from first where due_at <= now()`

// DueLanes returns the lanes of the channel in which something is due.
func (s *Ledger) DueLanes(ctx context.Context, channel string) ([]string, error) {
	return pgpool.Collect(ctx, s.pool, "find due lanes", pgx.RowTo[string], dueLanesSQL, freshPlan, channel)
}

// Lease leases those of the lanes that no other worker does, and makes the rows
// of new ones. All do so in the same order, so that two never wait for one
// another.
func (s *Ledger) Lease(ctx context.Context, channel string, owner uuid.UUID, lanes []string, ttl time.Duration) ([]ledger.LeasedLane, error) {
	return pgpool.Collect(ctx, s.pool, "lease lanes", pgx.RowToStructByPos[ledger.LeasedLane], `
		insert into lanes as l (channel, lane, owner, lease_until)
		select $1, name, $2, now() + $4 from unnest($3::text[]) as n (name) order by name collate "C"
		on conflict (channel, lane) do update set owner = excluded.owner, lease_until = excluded.lease_until
		where l.owner = excluded.owner or l.lease_until is null or l.lease_until < now()
		returning lane, coalesce(rate, 0), failures, coalesce(now() - failing_since, interval '0'),
		  greatest(open_until - now(), interval '0')`,
		channel, owner, lanes, ttl)
}

// Release gives lanes back.
func (s *Ledger) Release(ctx context.Context, channel string, owner uuid.UUID, lanes []string) error {
	return pgpool.Exec(ctx, s.pool, "release lanes", `
		update lanes set owner = null, lease_until = null
		where channel = $1 and owner = $2 and lane = any($3)`, channel, owner, lanes)
}

const claimSQL = `
select d.id, d.lane, d.target, d.message_id, d.kind, d.body, d.attempts, d.retries,
  d.attempts > 0 and exists (select from delivery_attempts a where a.delivery_id = d.id and a.class = $7),
  greatest(d.not_after - now(), interval '0'), coalesce(replace(d.trace_id::text, '-', ''), '')
from unnest($2::text[], $3::int[], $4::boolean[]) as w (lane, amount, by_report)
cross join lateral (
  select * from deliveries d
  where d.channel = $1 and d.lane = w.lane and d.state = 'waiting' and d.due_at <= now() and d.id <> all($5::bigint[])
    and not (w.by_report and exists (
      select from deliveries e
      where e.report_id = d.report_id and e.channel = $1 and e.lane = w.lane and e.report_version < d.report_version
        and e.state = 'waiting' and e.report_id is not null and e.created_at > now() - $6::interval))
  order by d.due_at, d.id limit w.amount) d`

// Claim returns due deliveries of leased lanes, without those in hand.
func (s *Ledger) Claim(ctx context.Context, channel string, claims []ledger.Claim, inHand []int64) ([]ledger.Delivery, error) {
	if inHand == nil {
		inHand = []int64{} // null is unequal to nothing
	}
	return pgpool.Collect(ctx, s.pool, "claim deliveries", func(row pgx.CollectableRow) (d ledger.Delivery, err error) {
		return d, row.Scan(&d.ID, &d.Lane, &d.Target, &d.MessageID, &d.Kind, &d.Body, &d.Attempts, &d.Retries, &d.Uncertain, &d.Remaining, &d.TraceID)
	}, claimSQL, freshPlan, channel,
		column(claims, func(c ledger.Claim) string { return c.Lane }),
		column(claims, func(c ledger.Claim) int { return c.Limit }),
		column(claims, func(c ledger.Claim) bool { return c.ByReport }),
		inHand, orderedFor, ledger.ClassUncertain)
}

// recordOutcomesSQL leaves alone deliveries that are cancelled or have this outcome
// already. A delivery that was held while the attempt ran stays so, unless the
// attempt ended it. It is one statement, and so one transaction and one round trip.
const recordOutcomesSQL = `
with o as (
  select * from unnest($1::bigint[], $2::int[], $3::text[], $4::double precision[], $5::boolean[], $6::boolean[],
    $7::text[], $8::int[], $9::text[], $10::text[], $11::timestamptz[], $12::int[])
    as o (id, attempts, state, delay_s, sent, retried, class, status, error, response, at, duration_ms)
), ordered as materialized ( -- see moderateDeliveries
  select id from deliveries where id = any($1) order by id for update
), changed as (
  update deliveries d set
    state = case when o.state = 'waiting' then d.state else o.state end,
    due_at = now() + make_interval(secs => o.delay_s),
    attempts = d.attempts + o.sent::int, retries = d.retries + o.retried::int,
    last_class = o.class, last_status = nullif(o.status, 0), last_error = o.error,
    done_at = case when o.state <> 'waiting' then now() end
  from o join ordered using (id) where d.id = o.id and d.attempts = o.attempts and d.state in ('waiting', 'held')
  returning d.id
), changed_lanes as (
  update lanes l set
    rate = nullif(s.rate, 0), failures = s.failures,
    failing_since = case when s.failing then coalesce(l.failing_since, now()) end,
    open_until = case when s.open_s > 0 then now() + make_interval(secs => s.open_s) end,
    last_success_at = case when s.succeeded then now() else l.last_success_at end,
    last_failure_at = case when s.failed then now() else l.last_failure_at end
  from unnest($15::text[], $16::double precision[], $17::int[], $18::boolean[], $19::double precision[], $20::boolean[], $21::boolean[])
    as s (lane, rate, failures, failing, open_s, succeeded, failed)
  where l.channel = $13 and l.owner = $14 and l.lane = s.lane
)
insert into delivery_attempts (delivery_id, n, at, duration_ms, status, class, error, response)
select id, o.attempts + 1, o.at, o.duration_ms, nullif(o.status, 0), o.class, o.error, o.response
from changed join o using (id) where o.sent
on conflict do nothing`

// Record writes outcomes and lanes down, in one transaction.
func (s *Ledger) Record(ctx context.Context, channel string, owner uuid.UUID, outcomes []ledger.Outcome, lanes []ledger.LaneState) error {
	return pgpool.Exec(ctx, s.pool, "record outcomes", recordOutcomesSQL, freshPlan,
		column(outcomes, func(o ledger.Outcome) int64 { return o.ID }),
		column(outcomes, func(o ledger.Outcome) int { return o.Attempts }),
		column(outcomes, func(o ledger.Outcome) string { return string(o.State) }),
		column(outcomes, func(o ledger.Outcome) float64 { return o.Delay.Seconds() }),
		column(outcomes, func(o ledger.Outcome) bool { return o.Sent }),
		column(outcomes, func(o ledger.Outcome) bool { return o.Retried }),
		column(outcomes, func(o ledger.Outcome) string { return o.Answer.Class }),
		column(outcomes, func(o ledger.Outcome) int { return o.Answer.Status }),
		column(outcomes, func(o ledger.Outcome) string { return o.Answer.Error }),
		column(outcomes, func(o ledger.Outcome) string { return o.Answer.Response }),
		column(outcomes, func(o ledger.Outcome) time.Time { return o.Answer.At }),
		column(outcomes, func(o ledger.Outcome) int64 { return o.Answer.Duration.Milliseconds() }),
		channel, owner,
		column(lanes, func(l ledger.LaneState) string { return l.Name }),
		column(lanes, func(l ledger.LaneState) float64 { return l.Rate }),
		column(lanes, func(l ledger.LaneState) int { return l.Failures }),
		column(lanes, func(l ledger.LaneState) bool { return l.Failing }),
		column(lanes, func(l ledger.LaneState) float64 { return l.OpenFor.Seconds() }),
		column(lanes, func(l ledger.LaneState) bool { return l.Succeeded }),
		column(lanes, func(l ledger.LaneState) bool { return l.Failed }))
}

// Withdraw holds or cancels a portion of what waits in the lanes, the last ones
// first, and reports whether more may wait there.
func (s *Ledger) Withdraw(ctx context.Context, channel string, hold ledger.Hold, lanes []string) (more bool, err error) {
	tag, err := s.pool.Exec(ctx, `
		update deliveries set state = $3, done_at = case when $3 = 'cancelled' then now() end
		where id = any(array(
		  select d.id from unnest($2::text[]) as w (lane) cross join lateral (
		    select id from deliveries where channel = $1 and lane = w.lane and state = 'waiting'
		    order by due_at desc, id desc limit $4 for update skip locked) d
		  limit $4))`,
		freshPlan, channel, lanes, map[ledger.Hold]string{ledger.Held: "held", ledger.Closed: "cancelled"}[hold], portion)
	if err != nil {
		return false, fmt.Errorf("withdraw deliveries: %w", err)
	}
	return tag.RowsAffected() == portion, nil
}
