// Package outbox lets operators inspect the outbox, retry or discard the rows that
// the relay could not publish, and publish others again.
//
// It promises that a failed row leaves its state only by an operator's act,
// and that every such act leaves an audit row in the same transaction.
package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// A Status is the state of an outbox row.
type Status string

// The statuses of an outbox row.
const (
	Pending   Status = "pending"
	Published Status = "published"
	Failed    Status = "failed" // out of attempts; waits for an operator
)

// NotFailed is the kind of error of Retry and Discard for a row in another
// state. For a row that does not exist it is fault.NotFound.
const NotFailed fault.Kind = "not failed"

// A Store is the outbox in the reports database, as operators see it.
type Store struct {
	pool *pgxpool.Pool
	wake func(shards.Set)

	mu          sync.Mutex
	recent      Stats // the last count for Recent
	recentUntil time.Time
}

// NewStore returns a Store on the reports database. It calls wake with the
// shards of rows that are pending again, for the relay to read. Wake must not
// block.
func NewStore(pool *pgxpool.Pool, wake func(shards.Set)) *Store {
	return &Store{pool: pool, wake: wake}
}

// Retry makes a failed row pending again, at the end of the outbox and with all
// its attempts. Later rows of its report have been published already: a retried
// row is out of order, and readers drop it if they have shown a newer version.
func (s *Store) Retry(ctx context.Context, actor string, id uuid.UUID) error {
	shard, err := s.change(ctx, `
		with row as (
			update outbox_messages
			set status = 'pending', retry_count = 0, next_attempt_at = null, seq = default
			where id = $1 and status = 'failed'
			returning id, routing_key, shard
		), audited as (
			insert into outbox_audit (actor, action, message_id, routing_key)
			select $2, 'retry', id, routing_key from row
		)
		select shard from row`, id, actor)
	if err != nil {
		return err
	}
	s.wake(shards.Set(0).Add(shard))
	return nil
}

// retryRows is how many failed rows are made pending in one transaction: after an
// outage there may be as many as messages in an hour, and a statement has 8 s.
const retryRows = 500

// RetryAll makes every failed row with a routing key pending again, the oldest
// first, and returns their number. What was retried before an error stays so.
func (s *Store) RetryAll(ctx context.Context, actor, routingKey string) (retried int64, err error) {
	for {
		n, err := s.retrySome(ctx, actor, routingKey)
		if retried += n; err != nil || n < retryRows {
			return retried, err
		}
	}
}

func (s *Store) retrySome(ctx context.Context, actor, routingKey string) (retried int64, err error) {
	var woken shards.Set
	var shard int16
	var n int64
	err = pgpool.ForEach(ctx, s.pool, "retry failed outbox messages", []any{&shard, &n}, func() error {
		woken, retried = woken.Add(shard), retried+n
		return nil
	}, `
		with rows as (
			update outbox_messages
			set status = 'pending', retry_count = 0, next_attempt_at = null, seq = default
			where id = any(array(
				select id from outbox_messages where status = 'failed' and routing_key = $1
				order by seq limit $3 for update skip locked))
			returning id, routing_key, shard
		), audited as (
			insert into outbox_audit (actor, action, message_id, routing_key)
			select $2, 'retry', id, routing_key from rows
		)
		select shard, count(*) from rows group by shard`, routingKey, actor, retryRows)
	if err != nil {
		return 0, err
	}
	if retried > 0 {
		s.wake(woken)
	}
	return retried, nil
}

// Discard deletes a failed row: its change is never announced.
func (s *Store) Discard(ctx context.Context, actor string, id uuid.UUID, reason string) error {
	_, err := s.change(ctx, `
		with row as (
			delete from outbox_messages where id = $1 and status = 'failed'
			returning id, routing_key, shard
		), audited as (
			insert into outbox_audit (actor, action, message_id, routing_key, reason)
			select $2, 'discard', id, routing_key, $3 from row
		)
		select shard from row`, id, actor, reason)
	return err
}

// change runs a statement that changes one failed row and audits it, and returns
// the shard of the row.
func (s *Store) change(ctx context.Context, sql string, id uuid.UUID, args ...any) (shard int16, err error) {
	err = s.pool.QueryRow(ctx, sql, append([]any{id}, args...)...).Scan(&shard)
	if err == nil {
		return shard, nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("change outbox message: %w", err)
	}
	exists, err := pgpool.Value[bool](ctx, s.pool, "look up outbox message", `select exists (select from outbox_messages where id = $1)`, id)
	switch {
	case err != nil:
		return 0, err
	case exists:
		return 0, fault.New(NotFailed, "the outbox message has not failed")
	default:
		return 0, fault.New(fault.NotFound, "there is no such outbox message")
	}
}

// An AuditEntry is an operator's act on a row, and its reason.
type AuditEntry struct {
	At         time.Time
	Actor      string
	Action     string // "retry", "discard", "republish" or "close"
	MessageID  uuid.UUID
	RoutingKey string
	Reason     string
}

// Audit returns the latest acts, newest first.
func (s *Store) Audit(ctx context.Context, limit int) ([]AuditEntry, error) {
	return pgpool.Collect(ctx, s.pool, "read outbox audit", pgx.RowToStructByPos[AuditEntry], `
		select at, actor, action, message_id, routing_key, reason
		from outbox_audit order by id desc limit $1`, limit)
}
