package upkeep

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/retention"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A Retention says how long histories and audits are kept. Reports stay,
// unless they were withdrawn.
type Retention struct {
	History retention.Period `env:"HISTORY_RETENTION" envDefault:"730d"`
	Audit   retention.Period `env:"AUDIT_RETENTION" envDefault:"730d"`
}

// guestsAway is how long rows about a guest are kept who has not come back: as long as a
// token of the guest may be valid, and a day.
const guestsAway = 31 * 24 * time.Hour

// withdrawnLife is for how long officials see a withdrawn report.
const withdrawnLife = 30 * 24 * time.Hour

// Tasks returns what retention has to do.
func (r Retention) Tasks() []retention.Task {
	return []retention.Task{
		{Kind: "history", Keep: r.History, Remove: shortenHistory},
		// Its photos first: their files are deleted before nothing leads to them any more.
		retention.Removal("withdrawn_photos", retention.Period(withdrawnLife), `
			update photos set state = 'removed', changed_at = now() where id in (
				select p.id from photos p join reports r on r.id = p.report_id
				where r.withdrawn_at < now() - $1::interval and p.state <> 'removed' limit $2)`),
		retention.Removal("withdrawn", retention.Period(withdrawnLife), `
			delete from reports where id in (
				select r.id from reports r where r.withdrawn_at < now() - $1::interval
				and not exists (select from photos p where p.report_id = r.id and (p.state <> 'removed' or not p.cleaned or p.upload is not null))
				order by r.withdrawn_at limit $2 for update skip locked)`),
		retention.Removal("acts", r.History, `
			delete from report_acts where id in (
				select a.id from report_acts a join reports r on r.id = a.report_id
				where a.at < now() - $1::interval and r.status in ('resolved', 'rejected') and r.updated_at < now() - $1::interval
				order by a.at limit $2)`),
		retention.Removal("questions", r.History, `
			delete from questions where id in (
				select q.id from questions q join reports r on r.id = q.report_id
				where q.ended_at < now() - $1::interval and r.status in ('resolved', 'rejected') and r.updated_at < now() - $1::interval
				order by q.ended_at limit $2)`),
		retention.Removal("verdicts", r.History, `
			delete from verdicts where ctid = any(array(
				select v.ctid from verdicts v join reports r on r.id = v.report_id
				where coalesce(v.given_at, v.until) < now() - $1::interval
					and r.status in ('resolved', 'rejected') and r.updated_at < now() - $1::interval and r.disputed_at is null limit $2))`),
		retention.Removal("verdict_entries", r.History, `
			delete from status_history where id in (
				select h.id from status_history h join reports r on r.id = h.report_id
				where h.kind is not null and h.changed_by is null and h.changed_at < now() - $1::interval
					and r.status in ('resolved', 'rejected') and r.updated_at < now() - $1::interval
					and exists (select from status_history l where l.report_id = h.report_id and l.id > h.id)
				order by h.changed_at limit $2)`),
		retention.Removal("guests", retention.Period(guestsAway), `
			delete from guests where mac in (
				select mac from guests where seen_at < now() - $1::interval order by seen_at limit $2 for update skip locked)`),
		retention.Removal("guest_codes", retention.Period(report.GuestDay), `
			delete from guest_codes where mac in (
				select mac from guest_codes where expires_at < now() - $1::interval order by expires_at limit $2)`),
		retention.Removal("complaints", r.Audit, `
			delete from abuse_reports where ctid = any(array(
				select ctid from abuse_reports where settled_at < now() - $1::interval order by settled_at limit $2))`),
		// This log grows fastest, and is in the order of time: only its oldest
		// entries are read.
		retention.Removal("audit", r.Audit, `
			delete from outbox_audit where id in (
				select id from (select id, at from outbox_audit order by id limit $2) oldest where at < now() - $1::interval)`),
		retention.Removal("schedule_audit", r.Audit, `
			delete from schedule_audit where id in (
				select id from schedule_audit where at < now() - $1::interval order by id limit $2)`),
		retention.Removal("category_audit", r.Audit, `
			delete from category_audit where id in (
				select id from category_audit where at < now() - $1::interval order by id limit $2)`),
		retention.Removal("settings_audit", r.Audit, `
			delete from settings_audit where id in (
				select id from settings_audit where at < now() - $1::interval order by id limit $2)`),
		retention.Removal("bulk_moves", r.Audit, `
			delete from bulk_moves where id in (
				select id from bulk_moves where at < now() - $1::interval order by id limit $2)`),
		retention.Removal("queue_views", r.Audit, `
			delete from queue_views where (official_id, position) in (
				select official_id, position from queue_views where used_at < now() - $1::interval limit $2)`),
		// A key that another transaction is replacing is skipped.
		retention.Removal("idempotency_keys", retention.Period(postgres.KeyLife), `
			delete from idempotency_keys where key_hash in (
				select key_hash from idempotency_keys
				where created_at <= now() - $1::interval
				limit $2 for update skip locked)`),
	}
}

// shortenHistory shortens the histories of reports that were closed long ago to
// their first and their last entry, and clears which official made the last.
func shortenHistory(ctx context.Context, tx pgx.Tx, keep time.Duration, _ int64, limit int) (next, removed int64, err error) {
	var found int64
	err = tx.QueryRow(ctx, `
		with old as (
			select h.id, exists (select from status_history l where l.report_id = h.report_id and l.id > h.id) as followed
			from status_history h join reports r on r.id = h.report_id
			where h.changed_by is not null and h.changed_at < now() - $1::interval
				and r.status in ('resolved', 'rejected') and r.updated_at < now() - $1::interval
			order by h.changed_at limit $2
		), gone as (
			delete from status_history where id in (select id from old where followed)
		), anonymised as (
			update status_history set changed_by = null where id in (select id from old where not followed)
		)
		select count(*), count(*) filter (where followed) from old`, keep, limit).Scan(&found, &removed)
	if err != nil {
		return 0, 0, fmt.Errorf("shorten histories: %w", err)
	}
	if found == int64(limit) {
		next = 1 // shortened entries are not found again
	}
	return next, removed, nil
}
