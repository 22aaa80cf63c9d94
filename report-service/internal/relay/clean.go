package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// cleanerShard elects the cleaner: whoever owns it.
	cleanerShard = 0
	// cleanEvery is how often the cleaner looks; cleanPause lets others at the
	// disk between two batches. Who is not elected looks again after electEvery.
	cleanEvery = time.Minute
	cleanPause = 100 * time.Millisecond
	electEvery = 2 * time.Second
	// A batch that takes longer than cleanTimeout is given up and halved.
	cleanTimeout = 2 * time.Second
	minClean     = 50
	maxClean     = 5000
)

// runCleaner deletes published rows after their retention until ctx ends.
func (r *Relay) runCleaner(ctx context.Context) {
	// The size is kept from one look to the next: a table that was slow a minute
	// ago most likely still is.
	batch := maxClean
	for ctx.Err() == nil {
		wait := electEvery
		if r.leases.Owns(cleanerShard) {
			var more bool
			wait = cleanEvery
			if batch, more = r.cleanOnce(ctx, batch); more {
				wait = cleanPause
			}
		}
		timer := time.NewTimer(jitter(wait))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// cleanOnce deletes a batch, and returns the size of the next one and whether
// it should follow soon.
func (r *Relay) cleanOnce(ctx context.Context, batch int) (next int, soon bool) {
	deleted, err := r.clean(ctx, batch, cleanTimeout)
	switch {
	case err == nil:
		r.metrics.cleaned.Add(float64(deleted))
		return min(maxClean, batch+batch/4), deleted == int64(batch)
	case isTimeout(err):
		r.cfg.Log.Info().Int("batch", batch).Msg("cleaning is slow, with smaller batches from here")
		return max(minClean, batch/2), true
	case ctx.Err() == nil:
		r.cfg.Log.Warn().Err(err).Msg("cleaning put off")
	}
	return batch, false
}

// clean deletes up to n rows whose retention is over. It is judged by
// published_at: a row may have committed long after created_at. Failed rows
// stay until somebody acts.
func (r *Relay) clean(ctx context.Context, n int, timeout time.Duration) (deleted int64, err error) {
	err = pgx.BeginFunc(ctx, r.cfg.Pool, func(tx pgx.Tx) error {
		// The server's own timeout: cancelling from here would cost the connection.
		_, err := tx.Exec(ctx, `select set_config('statement_timeout', $1, true)`, fmt.Sprint(timeout.Milliseconds()))
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			delete from outbox_messages where id = any(array(
				select id from outbox_messages
				where status = 'published' and published_at < now() - $1::interval
				order by published_at limit $2))`, r.cfg.Retention, n)
		deleted = tag.RowsAffected()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("clean outbox: %w", err)
	}
	return deleted, nil
}

func isTimeout(err error) bool {
	const queryCanceled = "57014"
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == queryCanceled
}
