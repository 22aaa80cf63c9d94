package schedule

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// A Schedule is what operators see of a job.
type Schedule struct {
	Name    string
	Spec    string // When, in words
	CatchUp string
	NextAt  time.Time // of the next period
	Paused  bool
	Latest  *Run      // under way, or else the last one; nil before the first
	Now     time.Time // of the database, to compare the others with
}

// Overruns reports whether the run that is under way will not have ended when
// the next period is due.
func (s Schedule) Overruns() bool {
	if s.Latest == nil || s.Latest.State != Running {
		return false
	}
	ends := s.Latest.Ends(s.Now)
	return s.NextAt.Before(s.Now) || ends != nil && ends.After(s.NextAt)
}

// An Action is something that operators do to a job.
type Action string

// The actions.
const (
	Pause    = Action(audit.SchedulePause)
	Resume   = Action(audit.ScheduleResume)
	RunAgain = Action(audit.ScheduleRun)
)

// An Act is an Action with who did it, to what, and why.
type Act struct {
	At     time.Time // of one that is read from an audit
	Actor  string
	Action Action
	Job    string
	Period string // of RunAgain
	Reason string
}

// An Audit writes an act in the transaction of its effect.
type Audit func(ctx context.Context, tx pgx.Tx, act Act) error

// ErrNotFound is the failure that there is no such job.
var ErrNotFound = fault.New(fault.NotFound, "there is no such schedule")

const runSQL = `
	select r.job, r.period, r.state, r.due_at, r.cursor, r.done, r.total, r.failures, r.error, r.times, r.started_at, r.ended_at
	from schedule_runs r`

func scanRun(row pgx.CollectableRow) (r Run, err error) {
	var cursor []byte
	err = row.Scan(&r.Job, &r.Period, &r.State, &r.Due, &cursor, &r.Done, &r.Total, &r.Failures, &r.Error, &r.Times, &r.StartedAt, &r.EndedAt)
	r.Cursor = cursor
	return r, err
}

// List returns all jobs of the database, of this process and of others, by name.
func (s *Scheduler) List(ctx context.Context) ([]Schedule, error) {
	list, err := pgpool.Collect(ctx, s.pool, "list schedules", func(row pgx.CollectableRow) (l Schedule, err error) {
		return l, row.Scan(&l.Name, &l.Spec, &l.CatchUp, &l.NextAt, &l.Paused, &l.Now)
	}, `select name, spec, catch_up, next_at, paused, now() from schedules order by name`)
	if err != nil {
		return nil, err
	}
	runs, err := pgpool.Collect(ctx, s.pool, "list latest runs", scanRun, `
		select r.* from schedules s cross join lateral (`+runSQL+`
			where r.job = s.name order by r.state = 'running' desc, r.due_at desc limit 1) r`)
	if err != nil {
		return nil, err
	}
	latest := make(map[string]*Run, len(runs))
	for i := range runs {
		latest[runs[i].Job] = &runs[i]
	}
	for i := range list {
		list[i].Latest = latest[list[i].Name]
	}
	return list, nil
}

// Runs returns the runs of a job that were due before a time, the latest first.
// The zero time begins at the latest.
func (s *Scheduler) Runs(ctx context.Context, name string, before time.Time, limit int) ([]Run, error) {
	known, err := pgpool.Value[bool](ctx, s.pool, "look for schedule", `select exists (select from schedules where name = $1)`, name)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, ErrNotFound
	}
	return pgpool.Collect(ctx, s.pool, "list runs", scanRun, runSQL+`
		where r.job = $1 and ($2::timestamptz is null or r.due_at < $2) order by r.due_at desc limit $3`,
		name, pgpool.OrNull(before), limit)
}

// Operate performs an operator's act, and audits it.
//
// A job that is paused begins no run, and one that is under way rests after the
// step in hand. When it is resumed, it catches up as the job says.
//
// RunAgain resumes a failed run where it failed, and starts a run that is done over.
// Without a period it begins a run of its own now. It is refused while a run is under
// way, or the job is paused.
func (s *Scheduler) Operate(ctx context.Context, act Act) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var paused bool
		err := tx.QueryRow(ctx, `select paused from schedules where name = $1 for update`, act.Job).Scan(&paused)
		if err = pgpool.Found(err, "lock schedule", ErrNotFound); err != nil {
			return err
		}
		switch act.Action {
		case Pause, Resume:
			if paused == (act.Action == Pause) {
				return nil // it is so already
			}
			_, err = tx.Exec(ctx, `update schedules set paused = $2 where name = $1`, act.Job, act.Action == Pause)
		case RunAgain:
			if paused {
				return fault.New(fault.Conflict, "the schedule is paused: resume it first")
			}
			act.Period, err = runAgain(ctx, tx, act.Job, act.Period)
		}
		if err != nil {
			return err
		}
		return s.audit(ctx, tx, act)
	})
}

// runAgain has a run begin that is due now, and returns its period.
func runAgain(ctx context.Context, tx pgx.Tx, job, period string) (string, error) {
	running, err := pgpool.Value[bool](ctx, tx, "look for a run", `select exists (select from schedule_runs where job = $1 and state = 'running')`, job)
	if err != nil {
		return "", err
	}
	if running {
		return "", fault.New(fault.Conflict, "a run is under way: wait for its end")
	}
	if period == "" {
		now, err := pgpool.Value[time.Time](ctx, tx, "ask the time", `select now()`)
		if err != nil {
			return "", err
		}
		period = "operator " + now.UTC().Format(time.RFC3339Nano) // no time of a job has this key
		err = pgpool.Exec(ctx, tx, "begin run", `insert into schedule_runs (job, period, due_at) values ($1, $2, $3)`, job, period, now)
		if err != nil {
			return "", err
		}
		return period, nil
	}
	tag, err := tx.Exec(ctx, `
		update schedule_runs set
			cursor = case when state = 'done' then null else cursor end,
			done = case when state = 'done' then 0 else done end,
			total = case when state = 'done' then 0 else total end,
			started_at = case when state = 'done' then null else started_at end,
			times = times + 1, state = 'running', failures = 0, error = '',
			resume_at = now(), owner = null, lease_until = null, ended_at = null
		where job = $1 and period = $2`, job, period)
	if err != nil {
		return "", fmt.Errorf("begin run again: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return "", fault.NewInvalid("/period", "must be one of the schedule's runs")
	}
	return period, nil
}
