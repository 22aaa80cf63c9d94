// Package scheduletest runs scheduled jobs in tests, without their times.
package scheduletest

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/schedule"
)

// Run brings one run of a job to its end, each step in a transaction of its own
// and without pauses. It keeps no rows: any number may be run at once.
func Run(ctx context.Context, pool *pgxpool.Pool, job schedule.Job) error {
	run := schedule.Run{Job: job.Name, Period: "test", State: schedule.Running}
	for {
		var p schedule.Progress
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) {
			p, err = job.Step(ctx, tx, run)
			return err
		})
		if err != nil {
			return err
		}
		if p.AfterCommit != nil {
			p.AfterCommit()
		}
		if p.Last {
			return nil
		}
		run.Cursor, run.Done = p.Cursor, run.Done+p.Done
	}
}
