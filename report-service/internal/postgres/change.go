package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// change changes a report, hidden or not, in a transaction of its own: it locks
// the report, waiting for it, lets decide add what is to be written, writes
// that, commits, and wakes the relay. Whatever the committer does not write goes
// this way, so that no change forgets one of them.
func (s *Store) change(ctx context.Context, id uuid.UUID, decide func(tx pgx.Tx, l *lockedReport, w *writeBatch) error) error {
	return s.transact(ctx, func(tx pgx.Tx, w *writeBatch) error {
		l, err := lockReport(ctx, tx, id)
		if err != nil {
			return err
		}
		return decide(tx, l, w)
	})
}

// transact is change for a decision that finds and locks its reports itself.
func (s *Store) transact(ctx context.Context, decide func(tx pgx.Tx, w *writeBatch) error) error {
	w := s.newWrites()
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := decide(tx, w); err != nil {
			return err
		}
		return w.send(ctx, tx)
	})
	if err == nil {
		w.wake(s.committer.committed)
	}
	return err
}

// newWrites returns an empty batch for a transaction that somebody else commits,
// who has to send it before and to wake the relay afterwards.
func (s *Store) newWrites() *writeBatch { return &writeBatch{keys: s.committer.keys} }

// lockReport locks the row of a report, hidden or not, and waits for it.
func lockReport(ctx context.Context, tx pgx.Tx, id uuid.UUID) (*lockedReport, error) {
	r := newReadBatch(true)
	l := r.lock(id)
	var b pgx.Batch
	r.queue(&b)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("lock report: %w", err)
	}
	if !l.found {
		return nil, report.ErrNotFound
	}
	return l, nil
}

// send writes the rows in a transaction that was begun elsewhere.
func (w *writeBatch) send(ctx context.Context, tx pgx.Tx) error {
	var b pgx.Batch
	w.queue(&b)
	if b.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return fmt.Errorf("write changes: %w", err)
	}
	return nil
}

// wake calls committed, once the rows are, with the shards that have messages.
func (w *writeBatch) wake(committed func(shards.Set)) {
	var written shards.Set
	for _, r := range w.outbox {
		written = written.Add(r.shard)
	}
	if written != 0 {
		committed(written)
	}
}
