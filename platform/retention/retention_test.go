package retention_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/retention"
	"github.com/cityconnect/cityconnect/platform/schedule"
)

// Tasks follow each other; a transaction that failed is tried with fewer rows, and
// the next ones grow again.
func TestJob(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	type call struct {
		kind  string
		after int64
		rows  int
	}
	var calls []call
	task := func(kind string, keep time.Duration, nexts ...int64) retention.Task {
		return retention.Task{Kind: kind, Keep: retention.Period(keep), Remove: func(_ context.Context, _ pgx.Tx, _ time.Duration, after int64, limit int) (next, removed int64, err error) {
			calls = append(calls, call{kind, after, limit})
			next, nexts = nexts[0], nexts[1:]
			return next, 1, nil
		}}
	}
	job := retention.Job([]retention.Task{
		task("kept", 0), task("letters", time.Hour, 7, 9, 0), task("audit", time.Hour, 0),
	}, prometheus.NewRegistry())
	run := schedule.Run{}
	for _, failures := range []int{0, 2, 0, 0} {
		run.Failures = failures
		var p schedule.Progress
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
			p, err = job.Step(t.Context(), tx, run)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if last := len(calls) == 4; p.Last != last || p.Done != 1 || (p.Pause == 0) != last {
			t.Errorf("after %d steps: %+v", len(calls), p)
		}
		run.Cursor = p.Cursor
	}
	want := []call{{"letters", 0, 1000}, {"letters", 7, 250}, {"letters", 9, 312}, {"audit", 0, 390}}
	if !slices.Equal(calls, want) {
		t.Errorf("removed by %+v, want %+v", calls, want)
	}
}
