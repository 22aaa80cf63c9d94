package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// MailFirm writes the delivery of a message, in the lane of the firm's mail host.
func MailFirm(ctx context.Context, tx pgx.Tx, messageID string, notice *event.FirmNotice, lane string) error {
	body, err := json.Marshal(notice)
	if err != nil {
		return fmt.Errorf("encode mail to a firm: %w", err)
	}
	return pgpool.Exec(ctx, tx, "write delivery", `
		insert into deliveries (channel, lane, target, message_id, kind, report_id, body, not_after)
		values ($1, $2, $3, $4, $5, $6, $7, now() + $8::interval) on conflict (channel, target, message_id, kind) do nothing`,
		email.Channel, lane, notice.JobID.String(), messageID, email.FirmKind(notice.Kind), notice.ReportID, body, email.Lifetime)
}

// draftFirm returns what a mail to a firm says, with the title that the report has now. No mail
// is about a hidden report.
func (s *Mails) draftFirm(ctx context.Context, d *ledger.Delivery) (draft email.Draft, err error) {
	notice := new(event.FirmNotice)
	if err := json.Unmarshal(d.Body, notice); err != nil {
		return draft, fmt.Errorf("read mail to a firm: %w", err)
	}
	var hidden bool
	err = s.pool.QueryRow(ctx, `
		select now(), coalesce(m.hidden, false), coalesce(case when not $3 then m.title end, $2)
		from (values (1)) one (row) left join moderated_reports m on m.report_id = $1`, notice.ReportID, notice.ReportTitle, notice.Private).
		Scan(&draft.Now, &hidden, &notice.ReportTitle)
	if err != nil {
		return draft, fmt.Errorf("read moderation: %w", err)
	}
	if hidden {
		return draft, ledger.ErrUnwanted
	}
	draft.Firm = notice
	return draft, nil
}
