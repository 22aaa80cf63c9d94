package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/story"
)

// Stories are what happened to messages, for operators.
type Stories struct {
	pool   *pgxpool.Pool
	groups *story.Store
}

// NewStories returns Stories of messages in these queues.
func NewStories(pool *pgxpool.Pool, queues ...string) *Stories {
	return &Stories{pool, story.NewStore(pool, queues...)}
}

// effectsSQL has no notifications of readers, no mails and no pushes, not even how many:
// that would be the number of a report's followers, and would show whether somebody has
// an address. The officials' stream has a notification or none, whoever reads it.
//
// Deliveries are asked by their key, endpoint by endpoint. Of a deleted endpoint there are
// none, as in the console's search.
const effectsSQL = `
with sent as materialized (
  select d.id, d.target, d.created_at, d.state, d.attempts, d.due_at, d.done_at, d.last_class
  from webhook_endpoints e cross join lateral (
    select * from deliveries where channel = 'webhook' and target = e.id::text and message_id = $1) d
)
select n.created_at, 'numbered', 'officials', null::int, null, null::int, null::bigint, null::timestamptz, null, null::bigint, n.seq
from notifications n
where n.stream_id = (select id from streams where name = $3) and n.report_id = $2 and n.message_id = $1
union all
select created_at, 'delivery_written', target, null, null, null, null, case when state = 'waiting' then due_at end, state, id, null from sent
union all
select a.at, 'delivery_attempted', target, a.n, a.class, a.status, a.duration_ms, null, null, d.id, null
from sent d join delivery_attempts a on a.delivery_id = d.id
union all
select done_at, 'delivery_ended', target, attempts, nullif(last_class, ''), null, null, null, state, id, null
from sent where done_at is not null and state in ('done', 'dead', 'cancelled')`

// Entries returns what happened to a message about the report, from its queues to its
// effect and the webhooks, in the order of the times.
func (s *Stories) Entries(ctx context.Context, messageID string, report uuid.UUID) ([]story.Entry, error) {
	entries, err := s.groups.Entries(ctx, messageID)
	if err != nil {
		return nil, err
	}
	effects, err := pgpool.Collect(ctx, s.pool, "read effects of message", func(row pgx.CollectableRow) (e story.Entry, err error) {
		return e, row.Scan(&e.At, &e.Kind, &e.Place, &e.Attempts, &e.Class, &e.Status, &e.DurationMs, &e.Until, &e.State, &e.Delivery, &e.Number)
	}, effectsSQL, messageID, report, string(notification.Officials))
	if err != nil {
		return nil, fmt.Errorf("tell story: %w", err)
	}
	entries = append(entries, effects...)
	story.Sort(entries)
	return entries, nil
}
