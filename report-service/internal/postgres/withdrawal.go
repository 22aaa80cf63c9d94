package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Withdraw takes a pending report back for its reporter, and returns it as the reporter
// sees it. Everybody else gets ErrNotFound. It is hidden, its votes are deleted and its
// clock is stopped. Its duplicates become reports of their own, as it does if it is one.
// notification-service ends the follows when it gets the message.
func (s *Reports) Withdraw(ctx context.Context, id uuid.UUID, reporter string, ifMatch report.Versions) (report.View, error) {
	var view report.View
	err := s.db.transaction(ctx, func(tx pgx.Tx, w *writeBatch) error {
		// Duplicates.Set locks an original and its duplicate in the same order.
		duplicates, err := pgpool.Collect(ctx, tx, "lock duplicates", pgx.RowTo[uuid.UUID],
			`select id from reports where (id = $1 or duplicate_of = $1) order by id for no key update`, id)
		if err != nil {
			return err
		}
		l, err := lockReport(ctx, tx, id, report.Scope{})
		if err != nil {
			return err
		}
		if reporter == "" || l.Reporter.ID != reporter {
			return report.ErrNotFound
		}
		ok, err := l.Withdraw(ifMatch, time.Now())
		switch {
		case err != nil:
			return err
		case !ok:
			w.doneBefore = true
		default:
			if err := s.queueWithdrawal(ctx, tx, l, duplicates, w); err != nil {
				return err
			}
		}
		queueView(&w.others, reporter, id, &view)
		return nil
	})
	return view, err
}

// queueWithdrawal queues what changes with the withdrawal of a report.
func (s *Reports) queueWithdrawal(ctx context.Context, tx pgx.Tx, l *lockedReport, duplicates []uuid.UUID, w *writeBatch) error {
	redacted, err := redactedNotes(ctx, tx, l.ID)
	if err != nil {
		return err
	}
	w.update(l)
	if err := w.enqueueFor(reportModerated(&l.Filing, event.Withdrawn, redacted), "", service.TraceFrom(ctx)); err != nil { // the reporter knows
		return fmt.Errorf("announce withdrawal: %w", err)
	}
	w.others.Queue(`
		update reports set withdrawn_at = $2, hidden_reason = $3, duplicate_of = null, due_at = null where id = $1`, l.ID, l.WithdrawnAt, l.HiddenReason)
	stopClock(&w.others, l.ID)
	w.others.Queue(endQuestionSQL, l.ID, string(report.QuestionWithdrawn))
	w.others.Queue(`delete from votes where report_id = $1`, l.ID)
	w.others.Queue(`delete from verdicts where report_id = $1`, l.ID)
	w.others.Queue(`delete from duplicate_ends where original = $1`, l.ID)
	w.others.Queue(settleSQL, l.ID)
	w.others.Queue(`update reports set duplicate_of = null where duplicate_of = $1`, l.ID)
	for _, d := range duplicates {
		if d != l.ID {
			w.record(actRow{reportID: d, by: system, kind: report.UnmarkedDuplicate})
		}
	}
	return nil
}
