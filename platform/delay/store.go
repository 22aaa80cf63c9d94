package delay

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// A Store keeps the messages that wait, in the database of their effects. It is
// safe for concurrent use.
type Store struct {
	pool  *pgxpool.Pool
	scrub func(ctx context.Context, letters []deadletter.Letter) error // nil for none
}

// NewStore returns a Store on pool, which stays the caller's to close.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// BeforePark has scrub remove from bodies and headers of messages whatever must not be
// kept. It is the same function as for deadletter.Store.BeforeArchive: if it fails, the
// messages stay in their queue.
func (s *Store) BeforePark(scrub func(ctx context.Context, letters []deadletter.Letter) error) {
	s.scrub = scrub
}

// freshPlan lets the server plan a statement each time, for a table that may be
// empty now and hold a million rows in a minute. A plan that was made for the
// empty table would read the whole of the full one until autovacuum has noticed.
const freshPlan = pgx.QueryExecModeCacheDescribe

// parkSQL leaves processed_messages alone: a message that is noted there would
// be dropped when it comes back. One that is noted there already is a copy of a
// message that had its effect, or that an operator cancelled.
const parkSQL = `
with asked as (
  select * from unnest($2::text[], $3::text[], $4::timestamptz[], $5::bytea[], $6::jsonb[], $7::jsonb[])
    as m (message_id, type, due_at, body, properties, headers)
), judged as (
  select *, case
    when due_at <= now() + $8::interval then 'due'
    when due_at > now() + $9::interval then 'far'
    when exists (select from processed_messages p where p.consumer = $1 and p.message_id = asked.message_id)
      or not $11 and exists (select from delayed_messages d where d.queue = $1 and d.message_id = asked.message_id) then 'known'
    when $10 then 'full'
    else 'parked' end as outcome
  from asked
), parked as (
  insert into delayed_messages (queue, message_id, type, due_at, body, properties, headers)
  select $1, message_id, type, due_at, body, properties, headers from judged where outcome = 'parked' order by message_id
  on conflict (queue, message_id) do update
  set due_at = excluded.due_at, headers = excluded.headers, owner = null, lease_until = null where $11
)
select message_id, outcome from judged`

// Park keeps those of messages from queue whose time has not come, and returns
// what became of each, by its id. If full, it keeps none. A message that waits
// already stays as it is; with again, it waits until the new time. Again also takes it
// from the releaser that has just published it, which would delete it otherwise.
func (s *Store) Park(ctx context.Context, queue string, messages []Message, full, again bool) (map[string]Outcome, error) {
	n := len(messages)
	letters := make([]deadletter.Letter, n)
	for i, m := range messages {
		letters[i] = deadletter.Letter{Body: m.Body, Headers: m.Headers}
	}
	if s.scrub != nil {
		if err := s.scrub(ctx, letters); err != nil {
			return nil, err
		}
	}
	ids, types, due, bodies := make([]string, n), make([]string, n), make([]time.Time, n), make([][]byte, n)
	properties, headers := make([]deadletter.Properties, n), make([]json.RawMessage, n)
	for i, m := range messages {
		ids[i], types[i], due[i], bodies[i], properties[i], headers[i] = m.ID, m.Type, m.DueAt, letters[i].Body, m.Properties, letters[i].Headers
	}
	outcomes := make(map[string]Outcome, n)
	var id string
	var outcome Outcome
	known := false
	err := pgpool.ForEach(ctx, s.pool, "park messages", []any{&id, &outcome}, func() error {
		if outcome == "known" {
			outcome, known = Parked, true
		}
		outcomes[id] = outcome
		return nil
	}, parkSQL, freshPlan, queue, ids, types, due, bodies, properties, headers, slack, MaxAhead, full, again)
	if err != nil {
		return nil, err
	}
	if known { // those are acknowledged next, though nothing was written for them
		if err := pgpool.Barrier(ctx, s.pool); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// A claimed message is leased to a Releaser, to be published.
type claimed struct {
	Queue string
	Message
	Late time.Duration // when it was claimed, by the database's clock
}

// claim leases to owner up to limit messages that are due, the oldest first.
func (s *Store) claim(ctx context.Context, owner uuid.UUID, lease time.Duration, limit int) ([]claimed, error) {
	return pgpool.Collect(ctx, s.pool, "claim delayed messages", func(row pgx.CollectableRow) (c claimed, err error) {
		err = row.Scan(&c.Queue, &c.ID, &c.Type, &c.DueAt, &c.Body, &c.Properties, &c.Headers, &c.Late)
		return c, err
	}, `
		update delayed_messages set owner = $1, lease_until = now() + $2
		where (queue, message_id) in (
		  select queue, message_id from delayed_messages
		  where due_at <= now() and (lease_until is null or lease_until < now())
		  order by due_at limit $3 for update skip locked)
		returning queue, message_id, type, due_at, body, properties, headers, clock_timestamp() - due_at`,
		freshPlan, owner, lease, limit)
}

// untilNext returns how long the next message that nobody has claimed waits
// yet, at most limit.
func (s *Store) untilNext(ctx context.Context, limit time.Duration) (time.Duration, error) {
	return pgpool.Value[time.Duration](ctx, s.pool, "look for the next delayed message", `
		select least($1::interval, greatest(interval '0', coalesce((
		  select due_at - clock_timestamp() from delayed_messages
		  where lease_until is null or lease_until < now() order by due_at limit 1), $1::interval)))`, freshPlan, limit)
}

// remove deletes messages that the broker has confirmed. One whose lease has
// passed to another is left to that one. One that was parked again has another time,
// and stays: its delivery is acknowledged, so that the row is all that is left of it.
func (s *Store) remove(ctx context.Context, owner uuid.UUID, messages []claimed) error {
	queues, ids, due := keysOf(messages)
	return pgpool.Exec(ctx, s.pool, "remove released messages", `
		delete from delayed_messages d using unnest($2::text[], $3::text[], $4::timestamptz[]) as m (queue, message_id, due_at)
		where d.queue = m.queue and d.message_id = m.message_id and d.due_at = m.due_at and d.owner = $1`,
		freshPlan, owner, queues, ids, due)
}

// postpone lets messages that could not be published wait a while, so that
// they hold up no other.
func (s *Store) postpone(ctx context.Context, owner uuid.UUID, messages []claimed, wait time.Duration) error {
	queues, ids, due := keysOf(messages)
	return pgpool.Exec(ctx, s.pool, "postpone delayed messages", `
		update delayed_messages d set lease_until = now() + $5
		from unnest($2::text[], $3::text[], $4::timestamptz[]) as m (queue, message_id, due_at)
		where d.queue = m.queue and d.message_id = m.message_id and d.due_at = m.due_at and d.owner = $1`,
		freshPlan, owner, queues, ids, due, wait)
}

func keysOf(messages []claimed) (queues, ids []string, due []time.Time) {
	for _, m := range messages {
		queues, ids, due = append(queues, m.Queue), append(ids, m.ID), append(due, m.DueAt)
	}
	return queues, ids, due
}

// counts returns how many messages wait for each queue.
func (s *Store) counts(ctx context.Context) (map[string]int, error) {
	counts := make(map[string]int)
	var queue string
	var n int
	err := pgpool.ForEach(ctx, s.pool, "count delayed messages", []any{&queue, &n}, func() error { counts[queue] = n; return nil }, `select queue, count(*) from delayed_messages group by queue`)
	if err != nil {
		return nil, err
	}
	return counts, nil
}

// Entries returns up to limit messages that wait, the next one first, after
// position; nil begins at the next.
func (s *Store) Entries(ctx context.Context, selection Selection, after *Position, limit int) ([]Entry, error) {
	if after == nil {
		after = new(Position) // before which no message is
	}
	return pgpool.Collect(ctx, s.pool, "list delayed messages", pgx.RowToStructByPos[Entry], `
		select queue, message_id, type, due_at, parked_at, properties, headers, body from delayed_messages
		where (due_at, queue, message_id) > ($1, $2, $3)
		  and ($4 = '' or queue = $4) and ($5::timestamptz is null or due_at >= $5) and ($6::timestamptz is null or due_at < $6)
		order by due_at, queue, message_id limit $7`,
		after.DueAt, after.Queue, after.MessageID, selection.Queue, pgpool.OrNull(selection.From), pgpool.OrNull(selection.To), limit)
}

// Release makes a message due now, and notes who asked for it.
func (s *Store) Release(ctx context.Context, actor, queue, messageID string) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var was time.Time
		err := tx.QueryRow(ctx, `
			update delayed_messages d set due_at = least(d.due_at, now())
			from delayed_messages o
			where d.queue = $1 and d.message_id = $2 and o.queue = d.queue and o.message_id = d.message_id
			returning o.due_at`, queue, messageID).Scan(&was)
		if err = pgpool.Found(err, "release delayed message", ErrNotFound); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Actor: actor, Action: audit.ReleaseDelayed, Queue: &queue},
			map[string]any{"message_id": messageID, "due_at": was})
	})
}

// Cancel deletes a message that waits, permanently, and notes who asked for it
// and why. Any other copy of the message counts as handled, also one that is on
// its way to the queue: it will have no effect. Cancel returns ErrHandled if
// the message has had it already.
func (s *Store) Cancel(ctx context.Context, actor, queue, messageID, reason string) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var due time.Time
		err := tx.QueryRow(ctx, `
			delete from delayed_messages where queue = $1 and message_id = $2 returning due_at`, queue, messageID).Scan(&due)
		if err = pgpool.Found(err, "cancel delayed message", ErrNotFound); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			insert into processed_messages (consumer, message_id) values ($1, $2) on conflict do nothing`, queue, messageID)
		if err != nil {
			return fmt.Errorf("cancel delayed message: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return ErrHandled
		}
		return audit.Write(ctx, tx, audit.Entry{Actor: actor, Action: audit.CancelDelayed, Queue: &queue},
			map[string]any{"message_id": messageID, "due_at": due, "reason": reason})
	})
}
