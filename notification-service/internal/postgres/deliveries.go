package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const recordSQL = `
select id, target::uuid, message_id, kind, report_id, report_version, body, state, due_at, attempts,
  last_class, last_status, last_error, created_at, done_at
from deliveries where channel = 'webhook' and `

// stateConditions name states as constants, by which the planner finds the
// partial index of each.
var stateConditions = map[webhook.DeliveryState]string{
	"":          "true",
	"waiting":   "state = 'waiting'",
	"held":      "state = 'held'",
	"done":      "state = 'done'",
	"dead":      "state = 'dead'",
	"cancelled": "state = 'cancelled'",
}

// Deliveries are the log of what endpoints were sent, and will be.
type Deliveries struct {
	pool *pgxpool.Pool
}

// List returns deliveries to an endpoint, newest first.
func (s *Deliveries) List(ctx context.Context, endpoint uuid.UUID, q webhook.RecordQuery) ([]webhook.Record, error) {
	condition, ok := stateConditions[q.State]
	if !ok {
		return nil, fmt.Errorf("list deliveries: no state %q", q.State)
	}
	return pgpool.Collect(ctx, s.pool, "list deliveries", pgx.RowToStructByPos[webhook.Record], recordSQL+`target = $1 and `+condition+` and ($2 = '' or kind = $2) and ($3::bigint = 0 or id < $3)
		order by id desc limit $4`, endpoint.String(), q.Type, q.Before, q.Limit)
}

// Find returns deliveries of a message, or about a report, to all endpoints, the newest
// first. Without an index by either it reads only the latest of each endpoint.
func (s *Deliveries) Find(ctx context.Context, messageID string, report uuid.UUID, limit int) ([]webhook.Record, error) {
	return pgpool.Collect(ctx, s.pool, "find deliveries", pgx.RowToStructByPos[webhook.Record], recordSQL+`id in (
		  select d.id from webhook_endpoints e cross join lateral (
		    select id, message_id, report_id from deliveries
		    where channel = 'webhook' and target = e.id::text order by id desc limit 10000) d
		  where ($1 = '' or d.message_id = $1) and ($2 = '00000000-0000-0000-0000-000000000000'::uuid or d.report_id = $2))
		order by id desc limit $3`, messageID, report, limit)
}

// Get returns a delivery with its attempts, the first one first.
func (s *Deliveries) Get(ctx context.Context, id int64) (webhook.Record, []webhook.AttemptRecord, error) {
	record, err := readDelivery(ctx, s.pool, `id = $1`, id)
	if err != nil {
		return webhook.Record{}, nil, err
	}
	attempts, err := pgpool.Collect(ctx, s.pool, "read attempts", pgx.RowToStructByPos[webhook.AttemptRecord], `
		select n, at, duration_ms * interval '1 millisecond', status, class, error, response
		from delivery_attempts where delivery_id = $1 order by n`, id)
	if err != nil {
		return webhook.Record{}, nil, err
	}
	return record, attempts, nil
}

func readDelivery(ctx context.Context, q pgpool.Querier, where string, id int64) (webhook.Record, error) {
	return pgpool.One(ctx, q, "read delivery", webhook.ErrNoDelivery, pgx.RowToStructByPos[webhook.Record], recordSQL+where, id)
}

// AgainSQL makes a delivery due now. Its attempts are kept; its schedule starts again, and
// so does its lifetime, which is parameter n.
func AgainSQL(n int) string {
	return fmt.Sprintf(`state = 'waiting', due_at = now(), not_after = now() + $%d, retries = 0, done_at = null`, n)
}

// Resend puts a delivery back to wait, under the same message id, unless
// its endpoint is disabled. One that waits already is due at once.
func (s *Deliveries) Resend(ctx context.Context, actor string, id int64) (webhook.Record, error) {
	var record webhook.Record
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var err error
		if record, err = readDelivery(ctx, tx, `id = $1 for update`, id); err != nil {
			return err
		}
		// No operator disables the endpoint before this commits.
		e, err := readWebhook(ctx, tx, `where id = $1 for share`, record.Endpoint)
		if err != nil {
			return err
		}
		if e.State == webhook.Disabled {
			return webhook.ErrDisabled
		}
		if err := pgpool.Exec(ctx, tx, "resend delivery", `update deliveries set `+AgainSQL(2)+` where id = $1`, id, webhook.Lifetime); err != nil {
			return err
		}
		detail := map[string]any{"delivery_id": id, "was": record.State}
		if record, err = readDelivery(ctx, tx, `id = $1`, id); err != nil {
			return err
		}
		return auditWebhook(ctx, tx, actor, audit.WebhookResend, record.Endpoint, detail)
	})
	return record, err
}

// AddTest writes a delivery of the event, which is a test, to an enabled
// endpoint.
func (s *Deliveries) AddTest(ctx context.Context, actor string, endpoint uuid.UUID, e webhook.Event) (webhook.Record, error) {
	var record webhook.Record
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		target, err := readWebhook(ctx, tx, `where id = $1 for share`, endpoint)
		if err != nil {
			return err
		}
		if target.State == webhook.Disabled {
			return webhook.ErrDisabled
		}
		id, err := pgpool.Value[int64](ctx, tx, "write test delivery", `
			insert into deliveries (channel, lane, target, message_id, kind, body, not_after)
			values ('webhook', $1, $1, $2, $3, $4, now() + $5) returning id`,
			endpoint.String(), e.MessageID, e.Type, e.Body, webhook.Lifetime)
		if err != nil {
			return err
		}
		if record, err = readDelivery(ctx, tx, `id = $1`, id); err != nil {
			return err
		}
		return auditWebhook(ctx, tx, actor, audit.WebhookTest, endpoint, map[string]any{"delivery_id": id})
	})
	return record, err
}
