package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// expandSQL is one statement, and so one transaction and one round trip: it
// notes the messages and writes a delivery for each endpoint that asked for one.
//
// It touches no row of lanes and locks none of the endpoints: an endpoint that
// has every event would let one transaction after another wait. So it may see
// an endpoint as it was a moment ago. If the endpoint is disabled or deleted in that
// moment, the dispatcher holds or cancels the delivery; if it is enabled, Settle
// releases it. While an endpoint's held deliveries are being released, new ones
// are held as well, and so keep their place behind them.
//
// A correction goes to the endpoints of the category and the area that the report had
// before, as well: otherwise they would keep it for ever.
//
// Events of reports that only the city sees go to endpoints with the scope alone.
//
// Events from before a report was hidden are not sent, and redacted words are removed
// from the others: see apply.sql.
const expandSQL = consumer.NoteSQL + `, moderated as (
  select a.message_id, m.* from unnest($2::text[], $4::uuid[], $5::bigint[]) as a (message_id, report_id, report_version)
  join moderated_reports m on m.report_id = a.report_id and m.version > a.report_version
  for key share of m
), events as (
  select d.message_id, d.type, d.report_id, d.report_version, d.category_id, d.longitude, d.latitude, d.place,
    d.category_was, d.longitude_was, d.latitude_was, d.trace_id, d.private,
    case when m.version is null then d.body else ` + moderatedBody + ` end as body
  from unnest($2::text[], $3::text[], $4::uuid[], $5::bigint[], $6::int[], $7::double precision[], $8::double precision[], $9::bytea[],
      $10::int[], $11::double precision[], $12::double precision[], $13::uuid[], $14::boolean[])
    with ordinality as d (message_id, type, report_id, report_version, category_id, longitude, latitude, body,
      category_was, longitude_was, latitude_was, trace_id, private, place)
  join fresh using (message_id)
  left join moderated m using (message_id)
  where m.hidden is not true or d.type = 'report.moderated'
), written as (
  insert into deliveries (channel, lane, target, message_id, kind, report_id, report_version, body, trace_id, state)
  select 'webhook', w.id::text, w.id::text, e.message_id, e.type, e.report_id, e.report_version, e.body, e.trace_id,
    case when w.state = 'enabled' and not w.releasing then 'waiting' else 'held' end
  from events e join webhook_endpoints w
    on (not e.private or '` + webhook.PrivateScope + `' = any(w.scopes))
    and (w.event_types = '{}' or e.type = any(w.event_types))
    and (w.category_ids = '{}' or e.category_id = any(w.category_ids) or e.category_was = any(w.category_ids))
    and (w.area is null or e.longitude between w.area[1] and w.area[3] and e.latitude between w.area[2] and w.area[4]
      or e.longitude_was between w.area[1] and w.area[3] and e.latitude_was between w.area[2] and w.area[4])
  order by e.place
  on conflict (channel, target, message_id, kind) do nothing
  returning lane, state
)
select (select count(*) from fresh), array(select distinct lane from written where state = 'waiting')`

// Expand writes the deliveries of the events, which came from queue and whose
// ids are distinct, in one transaction, unless their messages were seen before.
// It returns how many were, and the lanes in which something is due now.
func (s *Endpoints) Expand(ctx context.Context, queue string, events []webhook.Event) (seen int, lanes []string, err error) {
	var fresh int
	err = s.pool.QueryRow(ctx, expandSQL, queue,
		column(events, func(e webhook.Event) string { return e.MessageID }),
		column(events, func(e webhook.Event) string { return e.Type }),
		idColumn(events, func(e webhook.Event) uuid.UUID { return e.ReportID }),
		column(events, func(e webhook.Event) int64 { return e.ReportVersion }),
		column(events, func(e webhook.Event) int32 { return e.CategoryID }),
		column(events, func(e webhook.Event) *float64 { return longitude(e.Position) }),
		column(events, func(e webhook.Event) *float64 { return latitude(e.Position) }),
		column(events, func(e webhook.Event) []byte { return e.Body }),
		column(events, func(e webhook.Event) int32 { return e.PreviousCategoryID }),
		column(events, func(e webhook.Event) *float64 { return longitude(e.PreviousPosition) }),
		column(events, func(e webhook.Event) *float64 { return latitude(e.PreviousPosition) }),
		idColumn(events, traceOf),
		column(events, func(e webhook.Event) bool { return e.Private })).Scan(&fresh, &lanes)
	if err != nil {
		return 0, nil, fmt.Errorf("expand events: %w", err)
	}
	if fresh == 0 { // nothing was written, and messages seen before are acknowledged next
		if err := pgpool.Barrier(ctx, s.pool); err != nil {
			return 0, nil, err
		}
	}
	return len(events) - fresh, lanes, nil
}

func longitude(p *webhook.Position) *float64 {
	if p == nil {
		return nil
	}
	return &p.Longitude
}

func latitude(p *webhook.Position) *float64 {
	if p == nil {
		return nil
	}
	return &p.Latitude
}

// traceOf returns the id of a trace as a column of the type uuid stores it: it has the same
// 16 bytes. It is the zero id if there is none.
func traceOf(e webhook.Event) uuid.UUID {
	id, err := uuid.Parse(e.TraceID)
	if err != nil {
		return uuid.Nil
	}
	return id
}

// Targets returns those of the endpoints that exist, with what sending needs: an earlier
// secret is there only while it still signs.
func (s *Endpoints) Targets(ctx context.Context, ids []uuid.UUID) ([]webhook.Endpoint, error) {
	return pgpool.Collect(ctx, s.pool, "read webhooks", func(row pgx.CollectableRow) (e webhook.Endpoint, err error) {
		return e, row.Scan(&e.ID, &e.URL, &e.State, &e.Secrets.Sealed, &e.Secrets.Previous, &e.Order, &e.InFlight)
	}, `
		select id, url, state, secret, case when previous_secret_until > now() then previous_secret end, order_policy, in_flight
		from webhook_endpoints where id = any($1)`, ids)
}

// GiveUp disables an enabled endpoint, holds what waits for it in portions (see
// Settle), has the operators mailed and writes the audit log. It reports whether
// it did.
func (s *Endpoints) GiveUp(ctx context.Context, id uuid.UUID, reason webhook.Reason) (bool, error) {
	disabled := false
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var err error
		if disabled, err = disable(ctx, tx, id, reason); err != nil || !disabled {
			return err
		}
		if slices.Contains(s.notices, email.Operators) {
			if err := NoticeOperators(ctx, tx, email.EndpointDisabled, id); err != nil {
				return err
			}
		}
		return auditWebhook(ctx, tx, "delivery-worker", audit.WebhookDisable, id, map[string]any{"reason": reason})
	})
	return disabled, err
}
