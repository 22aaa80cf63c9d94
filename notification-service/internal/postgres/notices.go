package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// draftOverdue returns how many reports of each category are overdue on the highest
// level, of those that a notice is about.
func (s *Mails) draftOverdue(ctx context.Context, d *ledger.Delivery) (draft email.Draft, err error) {
	var window email.Window
	if err := json.Unmarshal(d.Body, &window); err != nil {
		return draft, fmt.Errorf("read window of a notice: %w", err)
	}
	if err := s.pool.QueryRow(ctx, `select now()`).Scan(&draft.Now); err != nil {
		return draft, fmt.Errorf("read the time: %w", err)
	}
	counts, err := pgpool.Collect(ctx, s.pool, "count overdue reports", pgx.RowToStructByPos[email.OverdueCount], `
		select (n.data->>'category_id')::int, min(n.data->>'category_name'), count(distinct n.report_id)
		from notifications n join streams s on s.id = n.stream_id
		where s.name = $1 and n.seq > $2 and n.seq <= $3 and n.type = $4 and (n.data->>'overdue_level')::int >= $5
		group by 1 order by 3 desc, 1`,
		notification.Officials, window.After, window.To, string(event.ReportOverdueKey), email.OverdueLevel)
	if err != nil {
		return draft, err
	}
	if len(counts) == 0 { // a restored database
		return draft, ledger.ErrEmpty
	}
	draft.Notice = &email.Notice{Overdue: counts}
	return draft, nil
}

// hostSQL is what operators call an endpoint: of the URL the host alone, because the rest
// may contain a secret.
const hostSQL = `coalesce(nullif(description, ''), substring(url from '^[a-z]+://([^/?#]+)'))`

// noticedSQL finds what operators call an endpoint or a target, why it is disabled, and in how
// many hours it is about to be, if what a notice of the kind says still is so.
var noticedSQL = map[string]string{
	email.EndpointDisabled: `select ` + hostSQL + `, state_reason, 0, now() from webhook_endpoints where id = $1 and state = 'disabled'`,
	email.EndpointFailing: `
		select ` + hostSQL + `, '', greatest(round(extract(epoch from disable_at - now()) / 3600), 0)::int, now()
		from webhook_endpoints where id = $1 and disable_at is not null`,
	email.TargetDiffers: `select name, '', 0, now() from open311_targets where id = $1 and mailed`,
}

// draftEndpoint returns the notice of an endpoint or a target.
func (s *Mails) draftEndpoint(ctx context.Context, d *ledger.Delivery) (draft email.Draft, err error) {
	var body email.NoticedEndpoint
	if err := json.Unmarshal(d.Body, &body); err != nil {
		return draft, fmt.Errorf("read endpoint of a notice: %w", err)
	}
	var notice email.Notice
	err = s.pool.QueryRow(ctx, noticedSQL[d.Kind], body.ID).Scan(&notice.Endpoint, &notice.Reason, &notice.Hours, &draft.Now)
	if err = pgpool.Found(err, "read webhook of a notice", ledger.ErrEmpty); err != nil {
		return draft, err
	}
	draft.Notice = &notice
	return draft, nil
}
