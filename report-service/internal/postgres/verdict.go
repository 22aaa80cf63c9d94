package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
)

// GiveVerdict keeps what the reporter of a resolved report says about it, and returns it as
// it is kept. Everybody else gets ErrNotFound. A dispute of a duplicate is one of its
// original; if that is open again, only the duplicate's history says so.
func (s *Reports) GiveVerdict(ctx context.Context, id uuid.UUID, reporter string, v report.Verdict) (report.Verdict, error) {
	categories, err := s.db.city.CategoriesByID(ctx)
	if err != nil {
		return v, err
	}
	err = s.db.transaction(ctx, func(tx pgx.Tx, w *writeBatch) error {
		l, original, err := lockWithOriginal(ctx, tx, id)
		if err != nil {
			return err
		}
		if reporter == "" || l.Reporter.ID != reporter {
			return report.ErrNotFound
		}
		if err := l.check(true); err != nil {
			return err
		}
		for _, locked := range []*lockedReport{l, original} { // the name in messages
			locked.Category = categories[locked.Category.ID]
		}
		v, err = dispute{tx, w, l, original}.give(ctx, v)
		return err
	})
	return v, err
}

// lockWithOriginal locks a report and its original, in the order in which Duplicates.Set
// does. A report that duplicates none is its own original.
func lockWithOriginal(ctx context.Context, tx pgx.Tx, id uuid.UUID) (l, original *lockedReport, err error) {
	locked, err := pgpool.Collect(ctx, tx, "lock reports", pgx.RowTo[uuid.UUID], `
		select id from reports where id = $1 or id = (select duplicate_of from reports where id = $1) order by id for no key update`, id)
	if err != nil {
		return nil, nil, err
	}
	if l, err = lockReport(ctx, tx, id, report.Scope{}); err != nil {
		return nil, nil, err
	}
	originalID, err := pgpool.Value[uuid.UUID](ctx, tx, "select original", `select coalesce(duplicate_of, id) from reports where id = $1`, id)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case originalID == id:
		return l, l, nil
	case !slices.Contains(locked, originalID): // it became a duplicate in this moment
		return nil, nil, fault.New(fault.Unavailable, "the report is being changed")
	}
	original, err = lockReport(ctx, tx, originalID, report.Scope{})
	return l, original, err
}

// A dispute is a verdict on its way into the database, in a transaction that has locked the
// report and its original.
type dispute struct {
	tx          pgx.Tx
	w           *writeBatch
	l, original *lockedReport
}

// give keeps v if the reporter is asked for it, and queues what follows from it.
func (d dispute) give(ctx context.Context, v report.Verdict) (report.Verdict, error) {
	var version int64
	var fixed *bool
	var text string
	var given *time.Time
	var changes int
	err := d.tx.QueryRow(ctx, `
		select version, until, fixed, text, given_at, jsonb_array_length(earlier) from verdicts
		where report_id = $1 and ended_at is null and until > $2 order by version desc limit 1`, d.l.ID, v.GivenAt).
		Scan(&version, utc{&v.Until}, &fixed, &text, &given, &changes)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && d.l.Status != report.Resolved {
		return v, report.ErrNoVerdict
	}
	if err != nil {
		return v, fmt.Errorf("select verdict: %w", err)
	}
	if fixed != nil && *fixed == v.Fixed && text == v.Text {
		v.GivenAt, d.w.doneBefore = given.UTC(), true
		return v, nil
	}
	if fixed != nil && *fixed == v.Fixed && changes >= maxWordings {
		return v, fault.NewInvalid("/text", fmt.Sprintf("must stay: it was changed %d times", maxWordings))
	}
	// A tap that words follow is the same verdict.
	d.w.others.Queue(`
		update verdicts set fixed = $3, text = $4, given_at = $5,
			earlier = case when fixed is null or fixed = $3 and text = '' then earlier
				else earlier || jsonb_build_object('fixed', fixed, 'text', text, 'given_at', given_at) end
		where report_id = $1 and version = $2`,
		d.l.ID, version, v.Fixed, v.Text, v.GivenAt)
	switch {
	case fixed != nil && *fixed == v.Fixed:
		return v, nil // with another text, which is announced to nobody
	case v.Fixed:
		return v, d.confirm(ctx, v.GivenAt)
	default:
		return v, d.open(ctx, v.GivenAt)
	}
}

// maxConfirmed is how often a history says of a resolution that it is confirmed: a reporter may
// change their mind, and not fill the history.
const maxConfirmed = 2

// maxWordings is how often the words of a verdict may be changed: all of them are kept.
const maxWordings = 20

// since counts the entries of a kind in a report's history since its last status.
func (d dispute) since(ctx context.Context, id uuid.UUID, kind report.ChangeKind) (n int, err error) {
	return pgpool.Value[int](ctx, d.tx, "look into the history", `
		select count(*) from status_history where report_id = $1 and kind = $2 and id > (
			select max(id) from status_history where report_id = $1 and from_status is distinct from to_status)`, id, string(kind))
}

// open makes the original disputed, if it is resolved and not disputed already.
func (d dispute) open(ctx context.Context, now time.Time) error {
	if n, err := d.since(ctx, d.l.ID, report.Confirmed); err != nil || n >= maxConfirmed {
		return cmp.Or[error](err, report.ErrDisputedBefore)
	}
	if d.original.Status == report.Resolved && !d.original.disputed {
		if n, err := d.since(ctx, d.original.ID, report.Disputed); err != nil || n > 0 {
			return cmp.Or[error](err, report.ErrDisputedBefore)
		}
		if err := d.announce(ctx, d.original.Dispute(now), false); err != nil {
			return err
		}
		if err := d.assign(ctx); err != nil {
			return err
		}
		days, err := settings.ReadCalendar(ctx, d.tx)
		if err != nil {
			return err
		}
		queueDeadline(&d.w.others, d.original.ID, days.Begin(d.original.Category.Target, now))
		d.w.others.Queue(`update reports set disputed_at = $2 where id = $1`, d.original.ID, now)
	}
	if d.l != d.original {
		d.w.history = append(d.w.history, historyRow{d.l.ID, d.l.Note(report.Disputed, now)})
	}
	return nil
}

// confirm ends the dispute of the original, unless another reporter's is left.
func (d dispute) confirm(ctx context.Context, now time.Time) error {
	others, err := pgpool.Value[bool](ctx, d.tx, "look for other disputes", `
		select exists (select from verdicts v join reports r on r.id = v.report_id
			where (r.id = $1 or r.duplicate_of = $1) and r.id <> $2 and not v.fixed and v.ended_at is null)`, d.original.ID, d.l.ID)
	if err != nil {
		return err
	}
	retracted := d.original.disputed && !others
	if retracted {
		if err := d.announce(ctx, d.original.Retract(now), true); err != nil {
			return err
		}
		stopClock(&d.w.others, d.original.ID)
	}
	if d.l != d.original || !retracted {
		d.w.history = append(d.w.history, historyRow{d.l.ID, d.l.Note(report.Confirmed, now)})
	}
	return nil
}

// announce adds the entry to the history of the original, and its event, which has no
// recipient: all officials get it.
func (d dispute) announce(ctx context.Context, entry report.Change, retracted bool) error {
	if err := d.w.enqueueFor(reportDisputed(&d.original.Filing, entry, retracted), "", service.TraceFrom(ctx)); err != nil {
		return err
	}
	d.w.history = append(d.w.history, historyRow{d.original.ID, entry})
	d.w.update(d.original)
	return nil
}

// assign gives an original that nobody has to the official who resolved it.
func (d dispute) assign(ctx context.Context) error {
	var by string
	var department int32
	err := d.tx.QueryRow(ctx, `
		select o.id, coalesce(r.department_id, 0) from reports r
		join lateral (
			select changed_by from status_history where report_id = r.id and from_status <> to_status order by id desc limit 1
		) h on true
		join officials o on o.id = h.changed_by
		where r.id = $1 and r.assignee_id is null`, d.original.ID).Scan(&by, &department)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("select who resolved it: %w", err)
	}
	d.w.others.Queue(`update reports set assignee_id = $2 where id = $1`, d.original.ID, by)
	d.w.record(actRow{reportID: d.original.ID, by: system, kind: report.Assigned, assignee: by, department: department})
	return nil
}

// Uphold keeps a disputed report resolved, with a note for everybody, which is announced as a
// reply.
func (s *Reports) Uphold(ctx context.Context, id uuid.UUID, k report.Uphold) error {
	return s.db.act(ctx, id, k.By, report.Handle, func(_ pgx.Tx, l *lockedReport, w *writeBatch) error {
		if err := l.check(true); err != nil {
			return err
		}
		entry, err := l.Filing.Uphold(k, l.disputed, time.Now())
		if err != nil {
			return err
		}
		if err := w.enqueue(statusUpdate(&l.Filing, entry, l.status), service.TraceFrom(ctx)); err != nil {
			return err
		}
		l.status = w.announced()
		w.history = append(w.history, historyRow{id, entry})
		w.update(l)
		stopClock(&w.others, id)
		endVerdicts(&w.others, id)
		queueOfficials(&w.others, k.By)
		return nil
	})
}
