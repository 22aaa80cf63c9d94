// Package story puts together what happened to one message, for operators: each
// thing with its time, its kind and its place.
//
// It reads what is kept anyway, by indexes that are there anyway: nothing is written
// for it on a message's way. It promises that nobody is named: no entry has a
// reporter, a voter, a reader, an operator, an address or a part of a body.
package story

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// A Kind is what happened to a message.
type Kind string

// The kinds of entries. Kinds has them all.
const (
	// In the outbox.
	Accepted   Kind = "accepted"    // the request's transaction wrote it
	Requeued   Kind = "requeued"    // an operator retried a failed one, or published one again
	Withdrawn  Kind = "withdrawn"   // an operator discarded a failed one
	PublishDue Kind = "publish_due" // it was refused, and is tried again then
	Published  Kind = "published"   // the broker has confirmed it

	// In the database of a group of consumers.
	FirstFailed  Kind = "first_failed"  // the first attempt that failed
	Restarted    Kind = "restarted"     // it was in hand when a process died, and is tried alone
	Parked       Kind = "parked"        // it waits until a time
	DeadLettered Kind = "dead_lettered" // no attempt was left, or none could help
	Replayed     Kind = "replayed"      // an operator's replay has sent it again
	Resolved     Kind = "resolved"      // its dead letter was closed by its effect
	Discarded    Kind = "discarded"     // an operator gave its dead letter up
	Handled      Kind = "handled"       // its effect is committed
	NotFound     Kind = "not_found"     // it was published, and a group has not found it

	// Consequences of the effect.
	Numbered          Kind = "numbered"           // it has a number in the officials' stream
	DeliveryWritten   Kind = "delivery_written"   // a webhook is to have it
	DeliveryAttempted Kind = "delivery_attempted" // it was sent to the endpoint
	DeliveryEnded     Kind = "delivery_ended"     // it is done, dead or cancelled
)

// Kinds returns all kinds, in the order in which they are shown when they happened at
// the same time.
func Kinds() []Kind {
	return []Kind{
		Accepted, Requeued, Withdrawn, PublishDue, Published,
		FirstFailed, Restarted, Parked, DeadLettered, Replayed, Handled, Resolved, Discarded, NotFound,
		Numbered, DeliveryWritten, DeliveryAttempted, DeliveryEnded,
	}
}

// An Entry is one thing that happened to a message. Facts that do not belong to its
// kind are nil.
type Entry struct {
	At    time.Time
	Kind  Kind
	Place string // outbox, a queue, a group of consumers, an endpoint's id, or a stream

	Attempts   *int32     // how often it was tried until then
	Class      *string    // of the failure
	Reason     *string    // of the failure, or of what an operator did
	Status     *int32     // of an answer over HTTP
	DurationMs *int64     // of the attempt, or of the wait
	Until      *time.Time // when it goes on
	State      *string    // of a delivery
	DeadLetter *int64
	Delivery   *int64
	Replay     *uuid.UUID
	Number     *int64 // in the stream
}

// Sort puts entries into the order of their times.
func Sort(entries []Entry) {
	kinds := Kinds()
	slices.SortStableFunc(entries, func(a, b Entry) int {
		if order := a.At.Compare(b.At); order != 0 {
			return order
		}
		return slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind)
	})
}

// A Store reads what groups of consumers know of a message, in a database with the
// tables of group/schema.sql. It is safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	queues []string
}

// NewStore returns a Store on pool, which stays the caller's to close, for these queues.
func NewStore(pool *pgxpool.Pool, queues ...string) *Store { return &Store{pool, queues} }

// entriesSQL asks each table by its key, which begins with the queue. Of replays the
// last one has a time; of the earlier ones a dead letter that came back has the id.
const entriesSQL = `
with letters as materialized (
  select id, queue, first_failed_at, replay_id, sent_at, state, closed_at, close_reason
  from dead_letters where queue = any($1) and message_id = $2
), attempts as materialized (
  select l.id, l.queue, a.failed_at, a.retries, a.error_class, a.error, a.replay_id
  from letters l join dead_letter_attempts a on a.dead_letter_id = l.id
)
select processed_at, 'handled', consumer, null::int, null, null, null::timestamptz, null::bigint, null::uuid
from processed_messages where consumer = any($1) and message_id = $2
union all
select started_at, 'restarted', queue, starts, null, null, null, null, null
from message_starts where queue = any($1) and message_id = $2 and starts > 0
union all
select parked_at, 'parked', queue, null, null, null, due_at, null, null
from delayed_messages where queue = any($1) and message_id = $2
union all
select first_failed_at, 'first_failed', queue, null, null, null, null, id, null
from letters l where first_failed_at < (select min(failed_at) from attempts a where a.id = l.id)
union all
select failed_at, 'dead_lettered', queue, retries + 1, error_class, error, null, id, replay_id from attempts
union all
select sent_at, 'replayed', queue, null, null, null, null, id, replay_id from letters where sent_at is not null
union all
select closed_at, state, queue, null, null, nullif(close_reason, ''), null, id, null
from letters where state in ('resolved', 'discarded') and closed_at is not null
union all
select received_at, 'not_found', consumer_group, null, null, state, null, null, null
from reconciliation_manifests where check_at is not null and $2 = any(missing::text[])`

// Entries returns what happened to the message in the groups' queues, in the order of
// the times.
func (s *Store) Entries(ctx context.Context, messageID string) ([]Entry, error) {
	entries, err := pgpool.Collect(ctx, s.pool, "read story of message", func(row pgx.CollectableRow) (e Entry, err error) {
		return e, row.Scan(&e.At, &e.Kind, &e.Place, &e.Attempts, &e.Class, &e.Reason, &e.Until, &e.DeadLetter, &e.Replay)
	}, entriesSQL, s.queues, messageID)
	if err != nil {
		return nil, err
	}
	Sort(entries)
	return entries, nil
}
