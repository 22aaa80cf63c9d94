package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

const (
	// leaderShard elects the replica that cleans, and republishes to a new broker:
	// the one that owns it.
	leaderShard = 0
	// cleanEvery is how often the cleaner runs; cleanPause leaves the disk to
	// others between two batches. Other replicas check after electEvery whether
	// they own the shard.
	cleanEvery = time.Minute
	cleanPause = 100 * time.Millisecond
	electEvery = 2 * time.Second
	// A batch that takes longer than cleanTimeout is ended and halved.
	cleanTimeout = 2 * time.Second
	minClean     = 50
	maxClean     = 5000
)

// A cleaner deletes published rows when their retention is over.
type cleaner struct {
	pool      *pgxpool.Pool
	leases    *shards.Leases
	retention time.Duration
	log       zerolog.Logger
	deleted   prometheus.Counter
}

// run cleans until ctx ends, while this replica is the cleaner.
func (c *cleaner) run(ctx context.Context) error {
	// The size is kept for the next run: a slow table most likely stays slow.
	batch := maxClean
	for ctx.Err() == nil {
		wait := electEvery
		if c.leases.Owns(leaderShard) {
			wait = cleanEvery
			deleted, err := c.deleteExpired(ctx, batch)
			switch {
			case err == nil:
				c.deleted.Add(float64(deleted))
				if deleted == int64(batch) {
					wait = cleanPause
				}
				batch = min(maxClean, batch+batch/4)
			case pgpool.Classify(err) == pgpool.Busy:
				c.log.Info().Int("batch", batch).Msg("deleting published rows took too long, will retry with fewer at once")
				wait, batch = cleanPause, max(minClean, batch/2)
			case ctx.Err() == nil:
				c.log.Warn().Str("error", pgpool.LogText(err)).Msg("deleting published rows failed, will retry")
			}
		}
		_ = backoff.Sleep(ctx, backoff.Jitter(wait)) // the loop ends with ctx
	}
	return nil
}

// deleteExpired deletes up to n rows whose retention is over. It compares
// published_at: a row may have committed long after created_at. Failed rows
// stay until an operator acts.
func (c *cleaner) deleteExpired(ctx context.Context, n int) (deleted int64, err error) {
	err = pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		// The server's own timeout: cancelling from here would cost the connection.
		_, err := tx.Exec(ctx, `select set_config('statement_timeout', $1, true)`, fmt.Sprint(cleanTimeout.Milliseconds()))
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			delete from outbox_messages where id = any(array(
				select id from outbox_messages
				where status = 'published' and published_at < now() - $1::interval
				order by published_at limit $2))`, c.retention, n)
		deleted = tag.RowsAffected()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("delete published rows: %w", err)
	}
	return deleted, nil
}
