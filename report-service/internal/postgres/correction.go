package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Correct puts a report into another category or to another place, or changes its words for
// its reporter, and returns it as who asks for it sees it afterwards. Everybody else but
// officials gets ErrNotFound. A report that is there already stays as it is,
// without an event. The department of a new category gets the report, and its target
// counts from when the clock of the report began.
func (s *Reports) Correct(ctx context.Context, id uuid.UUID, c report.Correction) (report.View, error) {
	categories, err := s.db.city.CategoriesByID(ctx)
	if err != nil {
		return report.View{}, err
	}
	var view report.View
	err = s.db.change(ctx, id, c.By.Scope, func(tx pgx.Tx, l *lockedReport, w *writeBatch) error {
		own := c.Own(&l.Filing)
		if !own {
			by := c.By.User()
			by.Official = c.Official
			if err := report.May(by, report.Handle, &l.Filing); err != nil {
				return err
			}
		}
		if err := l.check(true); err != nil {
			return err
		}
		var redacted bool
		err := tx.QueryRow(ctx, `
			select address, description, created_at, exists (select from report_acts where report_id = $1 and action = $2)
			from reports where id = $1`, id, report.RedactedWords).Scan(&l.Address, &l.Description, &l.CreatedAt, &redacted)
		if err != nil {
			return fmt.Errorf("select report: %w", err)
		}
		if redacted && (c.Title != nil || c.Description != nil) {
			return report.ErrRedacted
		}
		position, recipient := l.Position, l.Reporter.ID
		if own {
			recipient = "" // they know
		}
		entry, ok, err := l.Correct(c, time.Now())
		switch {
		case err != nil:
			return err
		case !ok:
			w.doneBefore = true
		default:
			if l.Category.Name == "" { // it stays in its category
				l.Category = categories[l.Category.ID]
			}
			if err := w.enqueueFor(reportCorrected(&l.Filing, entry), recipient, service.TraceFrom(ctx)); err != nil {
				return err
			}
			w.history = append(w.history, historyRow{id, entry})
			w.update(l)
			if err := s.queueCorrection(ctx, tx, l, entry, l.Position != position, w); err != nil {
				return err
			}
			if !own {
				queueOfficials(&w.others, c.By)
			}
		}
		queueView(&w.others, c.By.ID, id, &view)
		return nil
	})
	return view, err
}

// queueCorrection queues what the entry changes in the row of its report; moved says whether
// it has another position.
func (s *Reports) queueCorrection(ctx context.Context, tx pgx.Tx, l *lockedReport, entry report.Change, moved bool, w *writeBatch) error {
	w.others.Queue(`update reports set latitude = $2, longitude = $3, address = $4, asset_id = $5 where id = $1`,
		l.ID, latitude(l.Position), longitude(l.Position), l.Address, l.Asset.ID)
	if entry.Corrected.Words {
		queueWords(&w.others, l.ID, l.Title, &l.Description)
	}
	if moved {
		w.others.Queue(`update reports set area_id = $2 where id = $1`, l.ID, l.Area.ID)
	}
	if entry.Corrected.Category != nil {
		w.others.Queue(`update reports set category_id = $2, department_id = null where id = $1`, l.ID, l.Category.ID)
	}
	w.others.Queue(endJobElsewhereSQL, l.ID)
	if entry.Corrected.Category == nil {
		return nil
	}
	if l.Status.Closed() && !l.disputed {
		return nil // its clock has stopped; a new one begins when it is reopened
	}
	days, d, _, err := readDeadline(ctx, tx, l.ID)
	if err != nil {
		return err
	}
	queueDeadline(&w.others, l.ID, days.Retarget(d, l.Category.Target, l.CreatedAt))
	return nil
}
