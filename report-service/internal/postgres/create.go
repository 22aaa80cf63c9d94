package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/calendar"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
)

// Create saves f together with the event that announces it. With idempotent, it
// does so at most once per key: a repetition changes nothing, and returns the
// answer of the first request.
func (s *Reports) Create(ctx context.Context, f *report.Filing, idempotent *report.Idempotent) (earlier report.StoredResponse, err error) {
	c := &createChange{trace: service.TraceFrom(ctx), filing: f, earlier: s.db.earlierThan(idempotent)}
	if f.Category.Target > 0 {
		days, err := s.db.city.Calendar(ctx)
		if err != nil {
			return nil, err
		}
		c.deadline = days.Begin(f.Category.Target, f.CreatedAt)
	}
	if err := s.db.do(ctx, f.Reporter.ID, f.Reporter.Guest, c); err != nil {
		if pgpool.Constraint(err) == "reports_category_fk" { // it was deleted after it was looked up
			return nil, settings.ErrNoCategory
		}
		return nil, err
	}
	return c.earlier.response, nil
}

type createChange struct {
	trace    string
	filing   *report.Filing
	deadline calendar.Deadline
	earlier  earlier
}

// scope keeps requests with the same key apart: the lock on the key does not
// work within one transaction.
func (c *createChange) scope() scope {
	if c.earlier.Idempotent == nil {
		return scope{}
	}
	return scope{subject: uuid.UUID(c.earlier.hash[:16])}
}

func (c *createChange) read(r *readBatch) { c.earlier.read(&r.others) }

func (c *createChange) write(w *writeBatch) error {
	if done, err := c.earlier.done(w); err != nil || done {
		return err
	}
	if i := c.earlier.Idempotent; i != nil && i.Refusal != nil {
		return i.Refusal
	}
	f := c.filing
	if err := w.enqueue(reportCreated(f), c.trace); err != nil {
		return err
	}
	c.earlier.keep(&w.others)
	if f.Application != uuid.Nil {
		w.others.Queue(`insert into open311_reports (report_id, key_id) values ($1, $2)`, f.ID, f.Application)
	}
	if f.Intake != nil {
		queueOfficials(&w.others, f.Intake.By)
		w.others.Queue(`insert into counter_reports (report_id, source, entered_by) values ($1, $2, $3)`, f.ID, f.Intake.Source, f.Intake.By.ID)
	}
	w.filings = append(w.filings, newFiling{f, c.deadline, w.announced()})
	w.history = append(w.history, historyRow{f.ID, report.Change{To: f.Status, Version: f.Version, At: f.CreatedAt}})
	return nil
}
