package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/retention"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A Retention says how long what is kept here is kept. Reports stay.
type Retention struct {
	History retention.Period `env:"HISTORY_RETENTION" envDefault:"730d"`
	Audit   retention.Period `env:"AUDIT_RETENTION" envDefault:"730d"`
}

// Tasks returns what retention has to do.
func (r Retention) Tasks() []retention.Task {
	return []retention.Task{
		{Kind: "history", Keep: r.History, Remove: removeHistory},
		{Kind: "acts", Keep: r.History, Remove: removeActs},
		{Kind: "complaints", Keep: r.Audit, Remove: removeComplaints},
		{Kind: "audit", Keep: r.Audit, Remove: removeAudit},
		{Kind: "schedule_audit", Keep: r.Audit, Remove: removeScheduleAudit},
		{Kind: "bulk_moves", Keep: r.Audit, Remove: removeBulkMoves},
		{Kind: "idempotency_keys", Keep: retention.Period(keyLife), Remove: removeKeys},
	}
}

// removeHistory shortens the histories of reports that were closed long ago to
// how they began and how they ended, and forgets which official ended them.
func removeHistory(ctx context.Context, tx pgx.Tx, keep time.Duration, _ int64, limit int) (next, removed int64, err error) {
	closed := []string{string(report.Resolved), string(report.Rejected)}
	var found int64
	err = tx.QueryRow(ctx, `
		with old as (
			select h.id, exists (select from status_history l where l.report_id = h.report_id and l.id > h.id) as followed
			from status_history h join reports r on r.id = h.report_id
			where h.changed_by is not null and h.changed_at < now() - $1::interval
				and r.status = any($2) and r.updated_at < now() - $1::interval
			order by h.changed_at limit $3
		), gone as (
			delete from status_history where id in (select id from old where followed)
		), forgotten as (
			update status_history set changed_by = null where id in (select id from old where not followed)
		)
		select count(*), count(*) filter (where followed) from old`, keep, closed, limit).Scan(&found, &removed)
	if err != nil {
		return 0, 0, fmt.Errorf("shorten histories: %w", err)
	}
	if found == int64(limit) {
		next = 1 // what was found is not found again
	}
	return next, removed, nil
}

// removeActs removes what officials did to reports that were closed long ago.
func removeActs(ctx context.Context, tx pgx.Tx, keep time.Duration, _ int64, limit int) (next, removed int64, err error) {
	tag, err := tx.Exec(ctx, `
		delete from report_acts where id in (
			select a.id from report_acts a join reports r on r.id = a.report_id
			where a.at < now() - $1::interval and r.status = any($2) and r.updated_at < now() - $1::interval
			order by a.at limit $3)`, keep, []string{string(report.Resolved), string(report.Rejected)}, limit)
	if err != nil {
		return 0, 0, fmt.Errorf("delete acts: %w", err)
	}
	if tag.RowsAffected() == int64(limit) {
		next = 1 // what was removed is not found again
	}
	return next, tag.RowsAffected(), nil
}

// removeBulkMoves removes who moved many reports long ago.
func removeBulkMoves(ctx context.Context, tx pgx.Tx, keep time.Duration, _ int64, limit int) (next, removed int64, err error) {
	tag, err := tx.Exec(ctx, `
		delete from bulk_moves where id in (
			select id from bulk_moves where at < now() - $1::interval order by id limit $2)`, keep, limit)
	if err != nil {
		return 0, 0, fmt.Errorf("delete bulk moves: %w", err)
	}
	if tag.RowsAffected() == int64(limit) {
		next = 1 // what was removed is not found again
	}
	return next, tag.RowsAffected(), nil
}

// removeAudit removes what operators did long ago. The log is in the order of
// time, so that the first entry that stays ends the work.
func removeAudit(ctx context.Context, tx pgx.Tx, keep time.Duration, after int64, limit int) (next, removed int64, err error) {
	err = tx.QueryRow(ctx, `
		with oldest as (
			select id, at < now() - $2::interval as old from outbox_audit where id > $1 order by id limit $3
		), gone as (
			delete from outbox_audit where id in (select id from oldest where old) returning id
		)
		select (select count(*) from gone), case when bool_and(old) and count(*) = $3 then max(id) else 0 end from oldest`,
		after, keep, limit).Scan(&removed, &next)
	if err != nil {
		return 0, 0, fmt.Errorf("delete audit: %w", err)
	}
	return next, removed, nil
}

// removeScheduleAudit removes what operators did to schedules long ago.
func removeScheduleAudit(ctx context.Context, tx pgx.Tx, keep time.Duration, _ int64, limit int) (next, removed int64, err error) {
	tag, err := tx.Exec(ctx, `
		delete from schedule_audit where id in (
			select id from schedule_audit where at < now() - $1::interval order by id limit $2)`, keep, limit)
	if err != nil {
		return 0, 0, fmt.Errorf("delete audit of schedules: %w", err)
	}
	if tag.RowsAffected() == int64(limit) {
		next = 1 // what was removed is not found again
	}
	return next, tag.RowsAffected(), nil
}

// removeKeys removes idempotency keys by which no repetition is recognised any
// more. One that is just replaced is left alone.
func removeKeys(ctx context.Context, tx pgx.Tx, keep time.Duration, _ int64, limit int) (next, removed int64, err error) {
	tag, err := tx.Exec(ctx, `
		delete from idempotency_keys where key_hash in (
			select key_hash from idempotency_keys
			where created_at <= now() - $1::interval
			limit $2 for update skip locked)`, keep, limit)
	if err != nil {
		return 0, 0, fmt.Errorf("delete idempotency keys: %w", err)
	}
	if tag.RowsAffected() == int64(limit) {
		next = 1 // what was removed is not found again
	}
	return next, tag.RowsAffected(), nil
}
