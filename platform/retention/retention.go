// Package retention removes what a database has kept for long enough.
//
// It promises to do so unnoticed: in transactions of few rows and of two
// seconds at most, one at a time over all replicas, with pauses that leave four
// fifths of the time to others. It is a job of platform/schedule, due every hour.
package retention

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/schedule"
)

const (
	every = time.Hour
	// A transaction that takes longer than timeout is ended, and the next one
	// is half as large. It is small enough that even one that holds up a writer
	// is not noticed.
	timeout          = 2 * time.Second
	minRows, maxRows = 50, 1000
	shortestPause    = 50 * time.Millisecond
	pausesPerWork    = 4
)

// A Task removes one kind of thing.
type Task struct {
	Kind string // the label of the metric, such as "notifications"
	Keep Period // younger rows stay; all do if it is zero
	// Remove works on up to limit rows of tx that lie after a place, which is 0
	// at first, and returns where to go on; 0 says that nothing is left.
	Remove func(ctx context.Context, tx pgx.Tx, keep time.Duration, after int64, limit int) (next, removed int64, err error)
}

// Removal returns the task of a statement that removes rows older than the interval
// $1, and at most $2 of them.
func Removal(kind string, keep Period, sql string) Task {
	return Task{Kind: kind, Keep: keep, Remove: func(ctx context.Context, tx pgx.Tx, keep time.Duration, _ int64, limit int) (next, removed int64, err error) {
		tag, err := tx.Exec(ctx, sql, keep, limit)
		if err != nil {
			return 0, 0, fmt.Errorf("remove %s: %w", kind, err)
		}
		if removed = tag.RowsAffected(); removed == int64(limit) {
			next = 1 // removed rows are not found again
		}
		return next, removed, nil
	}}
}

// A sweeper works on the tasks of a database.
type sweeper struct {
	tasks   []Task // with a period
	removed *prometheus.CounterVec
	ended   prometheus.Gauge
}

// Job returns the job that works on tasks, one after the other.
func Job(tasks []Task, metrics prometheus.Registerer) schedule.Job {
	factory := promauto.With(metrics)
	s := &sweeper{
		removed: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "retention_removed_total", Help: "Rows removed after their retention.",
		}, []string{"kind"}),
		ended: factory.NewGauge(prometheus.GaugeOpts{
			Name: "retention_completed_timestamp_seconds", Help: "When this replica last found nothing left to remove, in Unix seconds.",
		}),
	}
	for _, t := range tasks {
		s.removed.WithLabelValues(t.Kind)
		if t.Keep != 0 {
			s.tasks = append(s.tasks, t)
		}
	}
	return schedule.Job{Name: "retention", When: schedule.Every(every), Step: s.step}
}

// A place is how far a run is.
type place struct {
	Kind  string `json:"kind"`
	After int64  `json:"after"`
	Rows  int    `json:"rows"` // for the next transaction
}

// step removes some rows of one task.
func (s *sweeper) step(ctx context.Context, tx pgx.Tx, run schedule.Run) (schedule.Progress, error) {
	began := time.Now()
	at := place{Rows: maxRows}
	if run.Cursor != nil {
		if err := json.Unmarshal(run.Cursor, &at); err != nil {
			return schedule.Progress{}, fmt.Errorf("read cursor: %w", err)
		}
	}
	// Another version's replica may have begun with other tasks: those that are
	// not known here are another run's.
	i := max(0, slices.IndexFunc(s.tasks, func(t Task) bool { return t.Kind == at.Kind }))
	if i == len(s.tasks) {
		return schedule.Progress{Last: true}, nil // there is none
	}
	task := s.tasks[i]
	if task.Kind != at.Kind {
		at.After = 0
	}
	rows := max(minRows, at.Rows>>min(run.Failures, 8)) // most likely it took too long
	// The server's own timeout: cancelling from here would cost the connection.
	err := pgpool.Exec(ctx, tx, "set timeout", `select set_config('statement_timeout', $1, true)`, fmt.Sprint(timeout.Milliseconds()))
	if err != nil {
		return schedule.Progress{}, err
	}
	next, removed, err := task.Remove(ctx, tx, time.Duration(task.Keep), at.After, rows)
	if err != nil {
		return schedule.Progress{}, fmt.Errorf("remove %s: %w", task.Kind, err)
	}
	s.removed.WithLabelValues(task.Kind).Add(float64(removed))
	at = place{Kind: task.Kind, After: next, Rows: min(maxRows, rows+rows/4)}
	if next == 0 {
		if i++; i == len(s.tasks) {
			s.ended.SetToCurrentTime()
			return schedule.Progress{Done: removed, Last: true}, nil
		}
		at.Kind = s.tasks[i].Kind
	}
	cursor, err := json.Marshal(at)
	if err != nil {
		return schedule.Progress{}, fmt.Errorf("write cursor: %w", err)
	}
	return schedule.Progress{Cursor: cursor, Done: removed, Pause: max(shortestPause, pausesPerWork*time.Since(began))}, nil
}
