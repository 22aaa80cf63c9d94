// Package retention removes what a database has kept for long enough.
//
// It promises to do so unnoticed: in transactions of few rows and of two
// seconds at most, one at a time over all replicas, with pauses that leave four
// fifths of the time to others. It starts by itself, goes on by itself after a
// failure, and runs again every hour.
package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const (
	// every is how often the tasks begin anew; the first time comes after the
	// start has calmed down.
	every      = time.Hour
	firstAfter = 10 * time.Second
	// A transaction that takes longer than timeout is ended, and the next one
	// is half as large. It is small enough that even one that holds up a writer
	// is not noticed.
	timeout                = 2 * time.Second
	minRows, maxRows       = 50, 1000
	shortestPause          = 50 * time.Millisecond
	pausesPerWork          = 4
	advisoryLock     int64 = 0x72657465 // one number for all tasks: one transaction at a time
)

// A Task removes one kind of thing.
type Task struct {
	Kind string // the label of the metric, such as "notifications"
	Keep Period // what is younger stays; everything does if it is zero
	// Remove works on up to limit rows of tx that lie after a place, which is 0
	// at first, and returns where to go on; 0 says that nothing is left.
	Remove func(ctx context.Context, tx pgx.Tx, keep time.Duration, after int64, limit int) (next, removed int64, err error)
}

// A Sweeper works on the tasks of a database.
type Sweeper struct {
	pool    *pgxpool.Pool
	tasks   []Task
	log     zerolog.Logger
	removed *prometheus.CounterVec
	ended   prometheus.Gauge
}

// New returns a Sweeper of the database behind pool.
func New(pool *pgxpool.Pool, tasks []Task, log zerolog.Logger, metrics prometheus.Registerer) *Sweeper {
	factory := promauto.With(metrics)
	s := &Sweeper{
		pool: pool, tasks: tasks, log: log,
		removed: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "retention_removed_total", Help: "Rows that were kept for long enough and are removed.",
		}, []string{"kind"}),
		ended: factory.NewGauge(prometheus.GaugeOpts{
			Name: "retention_completed_timestamp_seconds", Help: "When this replica last found nothing left to remove, in Unix seconds.",
		}),
	}
	for _, t := range tasks {
		s.removed.WithLabelValues(t.Kind)
	}
	return s
}

// Run works until ctx ends.
func (s *Sweeper) Run(ctx context.Context) error {
	for wait := firstAfter; backoff.Sleep(ctx, backoff.Jitter(wait)) == nil; wait = every {
		switch err := s.Sweep(ctx); {
		case err == nil:
			s.ended.SetToCurrentTime()
		case errors.Is(err, errElsewhere):
			s.log.Debug().Msg("another replica removes what is old, will look again")
		case ctx.Err() == nil:
			s.log.Warn().Str("error", pgpool.LogText(err)).Msg("removing what is old failed, will retry")
		}
	}
	return nil
}

// errElsewhere says that another replica is at work.
var errElsewhere = errors.New("another replica is at work")

// Sweep works on all tasks once, until nothing is left.
func (s *Sweeper) Sweep(ctx context.Context) error {
	for _, task := range s.tasks {
		if task.Keep == 0 {
			continue
		}
		if err := s.work(ctx, task); err != nil {
			return fmt.Errorf("remove %s: %w", task.Kind, err)
		}
	}
	return nil
}

// work brings one task to its end.
func (s *Sweeper) work(ctx context.Context, task Task) error {
	after, limit := int64(0), maxRows
	for {
		began := time.Now()
		next, removed, err := s.step(ctx, task, after, limit)
		switch {
		case pgpool.Classify(err) == pgpool.Busy && limit > minRows:
			limit, next = max(minRows, limit/2), after
			s.log.Info().Str("kind", task.Kind).Int("rows", limit).Msg("removing what is old took too long, will go on with fewer rows at once")
		case err != nil:
			return err
		case next == 0:
			s.removed.WithLabelValues(task.Kind).Add(float64(removed))
			return nil
		default:
			s.removed.WithLabelValues(task.Kind).Add(float64(removed))
			limit = min(maxRows, limit+limit/4)
		}
		after = next
		if err := backoff.Sleep(ctx, max(shortestPause, pausesPerWork*time.Since(began))); err != nil {
			return err
		}
	}
}

// step is one transaction.
func (s *Sweeper) step(ctx context.Context, task Task, after int64, limit int) (next, removed int64, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// The server's own timeout: cancelling from here would cost the connection.
		var alone bool
		err := tx.QueryRow(ctx, `
			select set_config('statement_timeout', $1, true) <> '' and pg_try_advisory_xact_lock($2)`,
			fmt.Sprint(timeout.Milliseconds()), advisoryLock).Scan(&alone)
		if err != nil {
			return err
		}
		if !alone {
			return errElsewhere
		}
		next, removed, err = task.Remove(ctx, tx, time.Duration(task.Keep), after, limit)
		return err
	})
	return next, removed, err
}
