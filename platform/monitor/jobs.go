package monitor

import (
	"context"
	"time"

	"github.com/cityconnect/cityconnect/platform/schedule"
)

// The causes of jobs.
const (
	Failed  Cause = "failed"
	Overdue Cause = "overdue" // no process runs them
	Paused  Cause = "paused"
)

// jobLate is how long after its time a job is overdue.
const jobLate = 2 * time.Minute

// Jobs reads the scheduled jobs that list returns.
func Jobs(list func(context.Context) ([]schedule.Schedule, error)) func(context.Context) Reading {
	return func(ctx context.Context) Reading {
		schedules, err := list(ctx)
		if err != nil {
			return UnknownFor(NoDatabase)
		}
		return jobs(schedules)
	}
}

func jobs(schedules []schedule.Schedule) Reading {
	var failed, overdue, paused []string
	for _, s := range schedules {
		running := s.Latest != nil && s.Latest.State == schedule.Running
		switch {
		case s.Latest != nil && s.Latest.State == schedule.Failed:
			failed = append(failed, s.Name)
		case s.Paused:
			paused = append(paused, s.Name)
		case !running && s.Now.Sub(s.NextAt) > jobLate:
			overdue = append(overdue, s.Name)
		}
	}
	switch {
	case failed != nil:
		return Reading{State: Bad, Cause: Failed, Names: failed, Count: int64(len(failed))}
	case overdue != nil:
		return Reading{State: Bad, Cause: Overdue, Names: overdue, Count: int64(len(overdue))}
	case paused != nil:
		return Reading{State: Warning, Cause: Paused, Names: paused, Count: int64(len(paused))}
	default:
		return Reading{State: Good}
	}
}
