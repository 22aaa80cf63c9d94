package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/audit"
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
	return collect(ctx, s.pool, "list deliveries", pgx.RowToStructByPos[webhook.Record], recordSQL+`target = $1 and `+condition+` and ($2 = '' or kind = $2) and ($3::bigint = 0 or id < $3)
		order by id desc limit $4`, endpoint.String(), q.Type, q.Before, q.Limit)
}

// Find returns deliveries of a message, or about a report, to all endpoints, the newest
// first. Without an index by either it reads only the latest of each endpoint.
func (s *Deliveries) Find(ctx context.Context, messageID string, report uuid.UUID, limit int) ([]webhook.Record, error) {
	return collect(ctx, s.pool, "find deliveries", pgx.RowToStructByPos[webhook.Record], recordSQL+`id in (
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
	attempts, err := collect(ctx, s.pool, "read attempts", pgx.RowToStructByPos[webhook.AttemptRecord], `
		select n, at, duration_ms * interval '1 millisecond', status, class, error, response
		from delivery_attempts where delivery_id = $1 order by n`, id)
	if err != nil {
		return webhook.Record{}, nil, err
	}
	return record, attempts, nil
}

func readDelivery(ctx context.Context, q querier, where string, id int64) (webhook.Record, error) {
	rows, err := q.Query(ctx, recordSQL+where, id)
	if err != nil {
		return webhook.Record{}, fmt.Errorf("read delivery: %w", err)
	}
	record, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[webhook.Record])
	if errors.Is(err, pgx.ErrNoRows) {
		return webhook.Record{}, webhook.ErrNoDelivery
	}
	if err != nil {
		return webhook.Record{}, fmt.Errorf("read delivery: %w", err)
	}
	return record, nil
}

// againSQL makes a delivery due now. Its attempts are kept; its schedule starts again, and
// so does its lifetime, which is parameter n.
func againSQL(n int) string {
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
		if _, err := tx.Exec(ctx, `update deliveries set `+againSQL(2)+` where id = $1`, id, webhook.Lifetime); err != nil {
			return fmt.Errorf("resend delivery: %w", err)
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
		var id int64
		err = tx.QueryRow(ctx, `
			insert into deliveries (channel, lane, target, message_id, kind, body, not_after)
			values ('webhook', $1, $1, $2, $3, $4, now() + $5) returning id`,
			endpoint.String(), e.MessageID, e.Type, e.Body, webhook.Lifetime).Scan(&id)
		if err != nil {
			return fmt.Errorf("write test delivery: %w", err)
		}
		if record, err = readDelivery(ctx, tx, `id = $1`, id); err != nil {
			return err
		}
		return auditWebhook(ctx, tx, actor, audit.WebhookTest, endpoint, map[string]any{"delivery_id": id})
	})
	return record, err
}

// missedSQL finds events of a time that an endpoint was never sent. Each is
// kept by the notification that it brought about, whose id begins with the
// time. An event without a value that a filter asks for does not match.
const missedSQL = `
select message_id, data from (
  select distinct on (message_id) id, message_id, data from notifications n
  where id >= $2 and id < $3 and type <> 'report.photo.refused'
    and (cardinality($4::text[]) = 0 or type = any($4))
    and (cardinality($5::int[]) = 0 or (data->>'category_id')::int = any($5))
    and not exists (
      select from deliveries d
      where d.channel = 'webhook' and d.target = $1 and d.message_id = n.message_id and d.kind = n.type)
  order by message_id, id) missed
order by id limit $6`

// Recover puts what an enabled endpoint did not get in the window back to
// wait, and writes deliveries of the events that it was never sent. A dry run
// counts them.
func (s *Deliveries) Recover(ctx context.Context, actor string, id uuid.UUID, window webhook.Window, dryRun bool) (webhook.Recovery, error) {
	var recovery webhook.Recovery
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		e, err := readWebhook(ctx, tx, `where id = $1 for share`, id)
		if err != nil {
			return err
		}
		if e.State == webhook.Disabled {
			return webhook.ErrDisabled
		}
		// Data read here must not be written once officials have taken its words: see
		// moderate.
		if _, err := tx.Exec(ctx, `lock table moderated_reports in row share mode`); err != nil {
			return fmt.Errorf("lock moderated reports: %w", err)
		}
		missed, err := missedEvents(ctx, tx, &e, window)
		if err != nil {
			return err
		}
		const ended = `
			where channel = 'webhook' and target = $1 and state in ('dead', 'cancelled')
			  and kind <> $2 and created_at >= $3 and created_at < $4`
		args := []any{id.String(), webhook.TestType, window.Since, window.Until}
		if dryRun {
			recovery.Created = int64(len(missed))
			err := tx.QueryRow(ctx, `select count(*) from deliveries `+ended, args...).Scan(&recovery.Resent)
			if err != nil {
				return fmt.Errorf("count deliveries: %w", err)
			}
			return nil
		}
		tag, err := tx.Exec(ctx, `update deliveries set `+againSQL(5)+ended, append(args, webhook.Lifetime)...)
		if err != nil {
			return fmt.Errorf("resend deliveries: %w", err)
		}
		recovery.Resent = tag.RowsAffected()
		if recovery.Created, err = addDeliveries(ctx, tx, id, missed); err != nil {
			return err
		}
		return auditWebhook(ctx, tx, actor, audit.WebhookRecover, id, map[string]any{
			"since": window.Since, "until": window.Until, "resent": recovery.Resent, "created": recovery.Created,
		})
	})
	return recovery, err
}

func missedEvents(ctx context.Context, tx pgx.Tx, e *webhook.Endpoint, window webhook.Window) ([]webhook.Event, error) {
	if e.Filter.Area != nil {
		return nil, nil // no notification says where its report is
	}
	rows, err := tx.Query(ctx, missedSQL, e.ID.String(), firstID(window.Since), firstID(window.Until),
		orEmpty(e.Filter.Types), orEmpty(e.Filter.Categories), webhook.MaxRecovered+1)
	if err != nil {
		return nil, fmt.Errorf("find missed events: %w", err)
	}
	var events []webhook.Event
	var messageID string
	var data notification.Data
	_, err = pgx.ForEachRow(rows, []any{&messageID, &data}, func() error {
		event, err := webhook.EventOfData(messageID, &data)
		events = append(events, event)
		data = notification.Data{}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find missed events: %w", err)
	}
	if len(events) > webhook.MaxRecovered {
		return nil, webhook.ErrTooManyMissed
	}
	return events, nil
}

// firstID returns the lowest id that a notification of the moment can have
// (UUIDv7, RFC 9562).
func firstID(at time.Time) (id uuid.UUID) {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(0, at.UnixMilli())))
	copy(id[:], ms[2:])
	return id
}

// addDeliveries writes a delivery of each event to the endpoint, unless there is one
// already, and returns how many it wrote.
func addDeliveries(ctx context.Context, tx pgx.Tx, endpoint uuid.UUID, events []webhook.Event) (int64, error) {
	var ids, types []string
	var reports []uuid.UUID
	var versions []int64
	var bodies [][]byte
	for _, e := range events {
		ids, types, bodies = append(ids, e.MessageID), append(types, e.Type), append(bodies, e.Body)
		reports, versions = append(reports, e.ReportID), append(versions, e.ReportVersion)
	}
	tag, err := tx.Exec(ctx, `
		insert into deliveries (channel, lane, target, message_id, kind, report_id, report_version, body, not_after)
		select 'webhook', $1, $1, e.*, now() + $7
		from unnest($2::text[], $3::text[], $4::uuid[], $5::bigint[], $6::bytea[]) as e
		on conflict do nothing`,
		endpoint.String(), ids, types, reports, versions, bodies, webhook.Lifetime)
	if err != nil {
		return 0, fmt.Errorf("write missed deliveries: %w", err)
	}
	return tag.RowsAffected(), nil
}
