package postgres

import (
	"context"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Create saves f together with the event that announces it. With once, it
// does so at most once per key: a repetition returns the answer of the first
// and changes nothing.
func (s *Store) Create(ctx context.Context, f *report.Filing, once *Once) (repeated *Answer, err error) {
	c := &createChange{trace: service.TraceFrom(ctx), filing: f, once: once}
	if err := s.committer.do(ctx, c); err != nil {
		return nil, err
	}
	if c.earlier.found {
		return &c.earlier.answer, nil
	}
	return nil, nil
}

type createChange struct {
	trace   string
	filing  *report.Filing
	once    *Once
	earlier storedResponse
}

// scope keeps requests with the same key apart: the lock on the key does not
// keep a transaction from itself.
func (c *createChange) scope() scope {
	if c.once == nil {
		return scope{}
	}
	return scope{subject: uuid.UUID(c.once.Key[:16])}
}

func (c *createChange) read(r *readBatch) {
	c.earlier = storedResponse{}
	if c.once != nil {
		c.earlier.read(&r.batch, c.once)
	}
}

func (c *createChange) write(w *writeBatch) error {
	if c.once != nil {
		if err := c.earlier.check(c.once); err != nil || c.earlier.found {
			return err
		}
	}
	f := c.filing
	if err := w.enqueue(created(f), f.Reporter.ID, c.trace); err != nil {
		return err
	}
	if c.once != nil {
		c.once.write(&w.others)
	}
	w.filings = append(w.filings, f)
	w.history = append(w.history, historyRow{f.ID, report.Change{To: f.Status, Version: f.Version, At: f.CreatedAt}})
	return nil
}

func latitude(f *report.Filing) *float64 {
	if f.Position == nil {
		return nil
	}
	return &f.Position.Latitude
}

func longitude(f *report.Filing) *float64 {
	if f.Position == nil {
		return nil
	}
	return &f.Position.Longitude
}
