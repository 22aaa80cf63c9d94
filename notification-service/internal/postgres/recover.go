package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const (
	// endedSQL are the deliveries to an endpoint that a recovery sends again. The
	// parameters after it are webhook.TestType and the window.
	endedSQL = `
		channel = 'webhook' and target = $1 and state in ('dead', 'cancelled')
		and kind <> $2 and created_at >= $3 and created_at < $4`
	// stillEndedSQL are those that have not been sent since the recovery was asked for,
	// which is one more parameter.
	stillEndedSQL = endedSQL + ` and (done_at is null or done_at <= $5)`
)

// missedSQL are the notifications of a time whose event an endpoint was never sent.
// Each event is kept by the notification that it brought about, whose id begins with
// the time. An event without a value that a filter asks for does not match.
var missedSQL = `
	from notifications n
	where id >= $2 and id < $3 and not type = any('` + privateKinds() + `')
	  and (cardinality($4::text[]) = 0 or type = any($4))
	  and (cardinality($5::int[]) = 0 or (data->>'category_id')::int = any($5))
	  and (not data ? 'private' or data->>'action' = '` + string(event.Restricted) + `' or exists (
	    select from webhook_endpoints w where w.id::text = $1 and '` + webhook.PrivateScope + `' = any(w.scopes)))
	  and not exists (
	    select from deliveries d
	    where d.channel = 'webhook' and d.target = $1 and d.message_id = n.message_id and d.kind = n.type)`

// privateKinds returns notification.Private as PostgreSQL writes an array of text.
func privateKinds() string {
	kinds := column(notification.Private, func(key event.Key) string { return string(key) })
	return "{" + strings.Join(kinds, ",") + "}"
}

// Recover puts what an enabled endpoint did not get in the window back to wait, and
// writes deliveries of the events that it was never sent, in portions: see Settle. The
// result is how many there are. A dry run only counts them.
func (s *Deliveries) Recover(ctx context.Context, actor string, id uuid.UUID, window webhook.Window, dryRun bool) (webhook.Recovery, error) {
	var recovery webhook.Recovery
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		e, err := readWebhook(ctx, tx, `where id = $1 for no key update`, id)
		if err != nil {
			return err
		}
		if e.State == webhook.Disabled {
			return webhook.ErrDisabled
		}
		if recovery, err = countRecovery(ctx, tx, &e, window); err != nil || dryRun {
			return err
		}
		err = pgpool.Exec(ctx, tx, "note recovery", `
			insert into webhook_recoveries (endpoint_id, since, until, after) values ($1, $2, least($3, now()), $4)`,
			id, window.Since, window.Until, firstID(window.Since))
		if err != nil {
			return err
		}
		if _, err := recoverPortion(ctx, tx, id); err != nil {
			return err
		}
		return auditWebhook(ctx, tx, actor, audit.WebhookRecover, id, map[string]any{
			"since": window.Since, "until": window.Until, "resent": recovery.Resent, "created": recovery.Created,
		})
	})
	return recovery, err
}

func countRecovery(ctx context.Context, tx pgx.Tx, e *webhook.Endpoint, window webhook.Window) (r webhook.Recovery, err error) {
	err = tx.QueryRow(ctx, `select count(*) from deliveries where `+endedSQL,
		e.ID.String(), webhook.TestType, window.Since, window.Until).Scan(&r.Resent)
	if err != nil {
		return r, fmt.Errorf("count deliveries: %w", err)
	}
	if e.Filter.Area != nil {
		return r, nil // no notification says where its report is
	}
	err = tx.QueryRow(ctx, `select count(*) from (select distinct message_id `+missedSQL+` limit $6) missed`,
		e.ID.String(), firstID(window.Since), firstID(window.Until), orEmpty(e.Filter.Types), orEmpty(e.Filter.Categories),
		webhook.MaxRecovered+1).Scan(&r.Created)
	if err != nil {
		return r, fmt.Errorf("count missed events: %w", err)
	}
	if r.Created > webhook.MaxRecovered {
		return r, webhook.ErrTooManyMissed
	}
	return r, nil
}

// recoverPortion does a portion of the first recovery of an enabled endpoint, whose row
// tx has locked, and reports whether more may be left.
func recoverPortion(ctx context.Context, tx pgx.Tx, id uuid.UUID) (more bool, err error) {
	var recovery int64
	var since, until, asked time.Time
	var after uuid.UUID
	err = tx.QueryRow(ctx, `
		select id, since, until, asked_at, after from webhook_recoveries where endpoint_id = $1 order by id limit 1`, id).
		Scan(&recovery, &since, &until, &asked, &after)
	if err != nil { // or there is none
		return false, pgpool.Found(err, "read recovery", nil)
	}
	args := []any{freshPlan, id.String(), webhook.TestType, since, until, asked}
	// Rows that somebody else has locked are left for the next portion: see settle.
	tag, err := tx.Exec(ctx, `update deliveries set `+AgainSQL(6)+` where id = any(array(
		select id from deliveries where `+stillEndedSQL+` order by id limit $7 for update skip locked))`,
		append(args, webhook.Lifetime, portion)...)
	if err != nil {
		return false, fmt.Errorf("resend deliveries: %w", err)
	}
	room := portion - int(tag.RowsAffected())
	if room == 0 {
		return true, nil
	}
	next, events, err := missedEvents(ctx, tx, id, after, firstID(until), room)
	if err != nil {
		return false, err
	}
	if err := addDeliveries(ctx, tx, id, events); err != nil {
		return false, err
	}
	if next != after {
		err := pgpool.Exec(ctx, tx, "note what was recovered", `update webhook_recoveries set after = $2 where id = $1`, recovery, next)
		if err != nil {
			return false, err
		}
		return true, nil
	}
	tag, err = tx.Exec(ctx, `delete from webhook_recoveries where id = $6 and not exists (
		select from deliveries where `+stillEndedSQL+`)`, append(args, recovery)...)
	if err != nil {
		return false, fmt.Errorf("end recovery: %w", err)
	}
	return tag.RowsAffected() > 0, nil // there may be another
}

// missedEvents returns up to limit of the events that an endpoint was never sent, of
// notifications after one and before another, and the last of these.
func missedEvents(ctx context.Context, tx pgx.Tx, id, after, before uuid.UUID, limit int) (last uuid.UUID, events []webhook.Event, err error) {
	e, err := readWebhook(ctx, tx, `where id = $1`, id)
	if err != nil {
		return after, nil, err
	}
	if e.Filter.Area != nil {
		return after, nil, nil
	}
	// Data read here must not be written once officials have taken its words: see
	// moderate.
	if err := pgpool.Exec(ctx, tx, "lock moderated reports", `lock table moderated_reports in row share mode`); err != nil {
		return after, nil, err
	}
	last = after
	var messageID string
	var data notification.Data
	err = pgpool.ForEach(ctx, tx, "find missed events", []any{&last, &messageID, &data}, func() error {
		event, err := webhook.EventOfData(messageID, &data)
		events = append(events, event)
		data = notification.Data{}
		return err
	}, `select id, message_id, data `+missedSQL+` and id <> $2 order by id limit $6`,
		freshPlan, e.ID.String(), after, before, orEmpty(e.Filter.Types), orEmpty(e.Filter.Categories), limit)
	if err != nil {
		return after, nil, err
	}
	return last, events, nil
}

// firstID returns the lowest id that a notification of the moment can have
// (UUIDv7, RFC 9562). None has it: its version is 0.
func firstID(at time.Time) (id uuid.UUID) {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(0, at.UnixMilli())))
	copy(id[:], ms[2:])
	return id
}

// addDeliveries writes a delivery of each event to the endpoint, unless there is one
// already.
func addDeliveries(ctx context.Context, tx pgx.Tx, endpoint uuid.UUID, events []webhook.Event) error {
	if len(events) == 0 {
		return nil
	}
	return pgpool.Exec(ctx, tx, "write missed deliveries", `
		insert into deliveries (channel, lane, target, message_id, kind, report_id, report_version, body, not_after)
		select 'webhook', $1, $1, e.*, now() + $7
		from unnest($2::text[], $3::text[], $4::uuid[], $5::bigint[], $6::bytea[]) as e
		on conflict do nothing`,
		endpoint.String(),
		column(events, func(e webhook.Event) string { return e.MessageID }),
		column(events, func(e webhook.Event) string { return e.Type }),
		idColumn(events, func(e webhook.Event) uuid.UUID { return e.ReportID }),
		column(events, func(e webhook.Event) int64 { return e.ReportVersion }),
		column(events, func(e webhook.Event) []byte { return e.Body }), webhook.Lifetime)
}
