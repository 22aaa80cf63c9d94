package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Create saves f together with the event that announces it. With once, it
// does so at most once per key: a repetition returns the answer of the first
// and changes nothing.
func (s *Store) Create(ctx context.Context, f *report.Filing, once *Once) (repeated *Answer, err error) {
	c := &creation{ctx: ctx, store: s, filing: f, once: once}
	if err := s.run(ctx, c); err != nil {
		return nil, err
	}
	if c.earlier.found {
		return &c.earlier.answer, nil
	}
	s.committed()
	return nil, nil
}

// A creation is the change that Create makes.
type creation struct {
	ctx     context.Context // for the trace
	store   *Store
	filing  *report.Filing
	once    *Once
	earlier earlier
}

func (c *creation) read(b *pgx.Batch) {
	if c.once != nil {
		c.earlier.read(b, c.once)
	}
}

func (c *creation) write(b *pgx.Batch) error {
	if c.once != nil {
		if err := c.earlier.check(c.once); err != nil || c.earlier.found {
			return err
		}
		c.once.write(b)
	}
	f := c.filing
	b.Queue(`
		insert into reports (id, title, description, category_id, latitude, longitude, address,
			privacy_level, status, score, version, created_at, updated_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
		f.ID, f.Title, f.Description, f.Category.ID, latitude(f), longitude(f), f.Address,
		string(f.Privacy), string(f.Status), f.Score, f.Version, f.CreatedAt, f.UpdatedAt)
	b.Queue(`insert into reporters (report_id, reporter_id, reporter_name) values ($1, $2, $3)`,
		f.ID, f.Reporter.ID, f.Reporter.Name)
	record(b, f.ID, report.Change{To: f.Status, Version: f.Version, At: f.CreatedAt})
	return c.store.enqueue(c.ctx, b, created(f), f.Reporter.ID)
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
