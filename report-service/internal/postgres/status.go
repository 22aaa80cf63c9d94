package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Move brings a report to another status, and returns it as the official sees
// it then. A report that is there already stays as it is, and no event is
// written.
func (s *Store) Move(ctx context.Context, id uuid.UUID, m report.Move) (report.View, error) {
	c := &move{ctx: ctx, store: s, id: id, move: m}
	if err := s.run(ctx, c); err != nil {
		return report.View{}, err
	}
	if c.moved {
		s.committed()
	}
	return c.view, nil
}

// A move is the change that Move makes.
type move struct {
	ctx    context.Context // for the trace
	store  *Store
	id     uuid.UUID
	move   report.Move
	locked locked
	moved  bool
	view   report.View
}

func (c *move) read(b *pgx.Batch) { c.locked.read(b, c.id) }

func (c *move) write(b *pgx.Batch) error {
	if err := c.locked.check(); err != nil {
		return err
	}
	entry, ok, err := c.locked.Move(c.move, time.Now())
	if err != nil {
		return err
	}
	c.moved = ok
	if ok {
		c.locked.update(b)
		record(b, c.id, entry)
		err = c.store.enqueue(c.ctx, b, moved(&c.locked.Filing, entry), c.locked.Reporter.ID)
	}
	queueView(b, c.id, c.move.By, &c.view)
	return err
}

// record queues an entry of a report's history.
func record(b *pgx.Batch, id uuid.UUID, c report.Change) {
	b.Queue(`
		insert into status_history (report_id, from_status, to_status, note, changed_by, report_version, changed_at)
		values ($1, nullif($2, ''), $3, $4, nullif($5, ''), $6, $7)`,
		id, string(c.From), string(c.To), c.Note, c.By, c.Version, c.At)
}
