package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/story"
)

// Stories are what happened to messages, for operators.
type Stories struct {
	pool     *pgxpool.Pool
	groups   *story.Store
	webhooks string // the queue of their events; empty for none
}

// explained is for how long it is said why a webhook was not sent. Deliveries are kept for
// 14 days and more, so that none is missing because it was removed.
const explained = 7 * 24 * time.Hour

// NewStories returns Stories of messages in these queues.
func NewStories(pool *pgxpool.Pool, queues ...string) *Stories {
	s := &Stories{pool: pool, groups: story.NewStore(pool, queues...)}
	if i := slices.IndexFunc(queues, func(q string) bool { return strings.HasSuffix(q, webhook.Queue) }); i >= 0 {
		s.webhooks = queues[i]
	}
	return s
}

// effectsSQL has no notifications of readers, no mails and no pushes, not even how many:
// that would be the number of a report's followers, and would show whether somebody has
// an address. The officials' stream has a notification or none, whoever reads it.
//
// Deliveries are asked by their key, endpoint by endpoint. Of a deleted endpoint there are
// none, as in the console's search.
//
// An endpoint without a delivery has a reason: see expandSQL, of which this is the other
// side, with the filter as it is now. What kind of message it was, and about what, is known
// from the officials' stream and from other deliveries alone.
const effectsSQL = `
with sent as materialized (
  select d.id, d.target, d.kind, d.created_at, d.state, d.attempts, d.due_at, d.done_at, d.last_class
  from webhook_endpoints e cross join lateral (
    select * from deliveries where channel = 'webhook' and target = e.id::text and message_id = $1) d
), numbered as materialized (
  select n.* from notifications n
  where n.stream_id = (select id from streams where name = $3) and n.report_id = $2 and n.message_id = $1
), known as (
  select coalesce((select type from numbered), (select min(kind) from sent)) as type, (select (data ->> 'category_id')::int from numbered) as category_id,
    (select data ? 'private' from numbered) as private
)
select n.created_at, 'numbered', 'officials', null::int, null, null::int, null::bigint, null::timestamptz, null, null::bigint, n.seq, null
from numbered n
union all
select created_at, 'delivery_written', target, null, null, null, null, case when state = 'waiting' then due_at end, state, id, null, null from sent
union all
select a.at, 'delivery_attempted', target, a.n, a.class, a.status, a.duration_ms, null, null, d.id, null, null
from sent d join delivery_attempts a on a.delivery_id = d.id
union all
select done_at, 'delivery_ended', target, attempts, nullif(last_class, ''), null, null, null, state, id, null, null
from sent where done_at is not null and state in ('done', 'dead', 'cancelled')
union all
select p.processed_at, 'delivery_ended', e.id::text, null, null, null, null, null, 'cancelled', null, null, case
  when e.created_at > p.processed_at then 'not sent: the endpoint was registered later'
  when e.event_types <> '{}' and not k.type = any(e.event_types) then 'not sent: the endpoint takes other events'
  when k.private and not '` + webhook.PrivateScope + `' = any(e.scopes) then 'not sent: the endpoint has no scope for reports that only the city sees'
  when e.category_ids <> '{}' and e.area is null and not k.category_id = any(e.category_ids) then 'not sent: the endpoint takes other categories'
  when e.event_types <> '{}' or e.category_ids <> '{}' or e.area is not null then 'not sent: the filter of the endpoint by event, category or area did not match'
  else 'not sent: the report was hidden, or only the city sees it' end
from processed_messages p cross join webhook_endpoints e cross join known k
where p.consumer = $4 and p.message_id = $1 and p.processed_at > now() - $5::interval
  and not exists (select from sent s where s.target = e.id::text)`

// Entries returns what happened to a message about the report, from its queues to its
// effect and the webhooks, in the order of the times.
func (s *Stories) Entries(ctx context.Context, messageID string, report uuid.UUID) ([]story.Entry, error) {
	entries, err := s.groups.Entries(ctx, messageID)
	if err != nil {
		return nil, err
	}
	effects, err := pgpool.Collect(ctx, s.pool, "read effects of message", func(row pgx.CollectableRow) (e story.Entry, err error) {
		return e, row.Scan(&e.At, &e.Kind, &e.Place, &e.Attempts, &e.Class, &e.Status, &e.DurationMs, &e.Until, &e.State, &e.Delivery, &e.Number, &e.Reason)
	}, effectsSQL, messageID, report, string(notification.Officials), s.webhooks, explained)
	if err != nil {
		return nil, fmt.Errorf("tell story: %w", err)
	}
	entries = append(entries, effects...)
	story.Sort(entries)
	return entries, nil
}
