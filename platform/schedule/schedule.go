// Package schedule does work that is due at times: the same every minute, or
// when the clocks of a city show seven.
//
// Any number of replicas run the same jobs, and none of them leads. The
// database's rows are the whole state, and its clock is the only one. The
// package promises that each period of a job is run once, and that each step of
// a run has its effect once, whatever dies: a period is a key, and a step is one
// transaction with its effect and the run's new position. Where a replica dies,
// another goes on within the lease. Runs that were due while no replica ran are
// caught up with as the job asks for.
//
//	next_at ──(due)──► running ──(last step)──► done
//	                   │  ▲  │                   │
//	  a step fails:    └──┘  └─(too often)─► failed
//	  again, later           ▲                   │
//	                         └─(run again)───────┘
//
// A job has one run at a time: a run that becomes due during another begins after
// it, or is skipped, as after a downtime.
package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const (
	// lookEvery is how late a replica may notice a run that is to go on, or an
	// operator's run. Runs that are due by themselves begin at their time.
	lookEvery = time.Second
	// lease is how long a replica may be silent before another goes on with its
	// run. A step is shorter, and holds its row: no two replicas are in one.
	lease       = 30 * time.Second
	stepTimeout = 20 * time.Second
	lookTimeout = 5 * time.Second
	// A step that fails is tried again after retryFirst, doubling up to retryMax.
	// After maxFailures in a row, which is more than an hour, the run has failed,
	// and the next period takes its turn.
	retryFirst  = time.Second
	retryMax    = 5 * time.Minute
	maxFailures = 22
	// late is how long after its time a job that does not catch up still begins:
	// longer than the pauses of a replica that works.
	late = time.Minute
	// Ended runs are kept for so long; those that found nothing to do for less,
	// because jobs of every minute make many of them.
	keepRuns, keepIdle = 90 * 24 * time.Hour, 24 * time.Hour
	longestError       = 500 // bytes of an error's text that are kept
)

// A CatchUp says what becomes of the periods that were due while no replica ran,
// the job was paused, or its run before was not done.
type CatchUp string

// The ways to catch up.
const (
	Last CatchUp = ""     // the latest of them is run, in place of all; the zero value
	Each CatchUp = "each" // each is run, one after the other
	None CatchUp = "none" // none is run
)

// A Job is work that is due at times.
type Job struct {
	Name    string // of its rows, such as "digests": lower case and underscores
	When    When
	CatchUp CatchUp
	// Step does the next part of a run: as much as takes a second or two. It
	// writes by tx and has no other effect; its rows are there if, and only if, the
	// cursor is that it returns. It must not wait for anything but the database for
	// longer than a few seconds, or loses tx. An error takes it all back, and the
	// step is repeated.
	Step func(ctx context.Context, tx pgx.Tx, run Run) (Progress, error)
}

// A Progress is what a step did.
type Progress struct {
	Cursor json.RawMessage // where the next step goes on; it names nobody
	Done   int64           // what this step did, in the unit of the job
	Total  int64           // what the whole run has to do, as far as it is known; 0 keeps what was said before
	Pause  time.Duration   // before the next step, to leave time to others
	Last   bool            // whether nothing is left to do
	// AfterCommit, unless it is nil, is called once the step's transaction is
	// committed: to wake the readers of its rows. It must not block. If the
	// process dies before, nobody calls it.
	AfterCommit func()
}

// A State is how far a run is.
type State string

// The states.
const (
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed" // it was given up; an operator may have it go on
)

// A Run is the work of one period. A step gets it as the step before left it.
type Run struct {
	Job, Period string
	State       State
	Due         time.Time
	Cursor      json.RawMessage // nil in the first step
	Done, Total int64           // Total is 0 while it is not known
	Failures    int             // of the step in hand in a row: it may take less at once
	Error       string          // the last one since the last success
	Times       int             // how often it was begun: more than once only by operators
	StartedAt   *time.Time
	EndedAt     *time.Time
}

// Ends returns when the run will have ended if it goes on as fast as it did until
// now, or nil if that is unknown.
func (r Run) Ends(now time.Time) *time.Time {
	if r.State != Running || r.StartedAt == nil || r.Done <= 0 || r.Total < r.Done {
		return nil
	}
	took := float64(now.Sub(*r.StartedAt))
	return new(r.StartedAt.Add(time.Duration(took * float64(r.Total) / float64(r.Done))))
}

// Dependencies is what a Scheduler works with.
type Dependencies struct {
	Pool    *pgxpool.Pool // of the database with the tables schedules and schedule_runs
	Audit   Audit
	Log     zerolog.Logger
	Metrics prometheus.Registerer
}

// A Scheduler runs the jobs of a process. Rows of other jobs are left alone.
type Scheduler struct {
	pool             *pgxpool.Pool
	audit            Audit
	jobs             map[string]Job
	names            []string
	log              zerolog.Logger
	lease, lookEvery time.Duration // the constants, except in tests

	ended   *prometheus.CounterVec
	failed  *prometheus.CounterVec
	lastEnd *prometheus.GaugeVec
}

var validName = regexp.MustCompile(`^[a-z][a-z_]{0,62}$`)

// New returns a Scheduler of jobs. Its error says which of them is wrong.
func New(d Dependencies, jobs ...Job) (*Scheduler, error) {
	factory := promauto.With(d.Metrics)
	s := &Scheduler{
		pool: d.Pool, audit: d.Audit, jobs: make(map[string]Job, len(jobs)), log: d.Log,
		lease: lease, lookEvery: lookEvery,
		ended: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "schedule_runs_total", Help: "Runs of scheduled jobs that ended here, by state.",
		}, []string{"schedule", "state"}),
		failed: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "schedule_step_failures_total", Help: "Steps of scheduled jobs that failed here, and are tried again.",
		}, []string{"schedule"}),
		lastEnd: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "schedule_done_timestamp_seconds", Help: "When this replica last brought a run of the job to its end, in Unix seconds.",
		}, []string{"schedule"}),
	}
	for _, job := range jobs {
		_, twice := s.jobs[job.Name]
		every, periodic := job.When.(Every)
		local, daily := job.When.(Local)
		switch {
		case !validName.MatchString(job.Name) || twice:
			return nil, fmt.Errorf("job %q: must have a name of its own, of lower case letters and underscores", job.Name)
		case job.When == nil || job.Step == nil:
			return nil, fmt.Errorf("job %q: must have times and a step", job.Name)
		case periodic && time.Duration(every) < time.Second:
			return nil, fmt.Errorf("job %q: must run every second or less often, got %s", job.Name, time.Duration(every))
		case daily && (local.Zone == nil || slices.ContainsFunc(local.Days, func(d time.Weekday) bool { return d < time.Sunday || d > time.Saturday })):
			return nil, fmt.Errorf("job %q: must have a time zone, and days of the week", job.Name)
		case job.CatchUp != Last && job.CatchUp != Each && job.CatchUp != None:
			return nil, fmt.Errorf("job %q: must have a way to catch up, got %q", job.Name, job.CatchUp)
		}
		s.jobs[job.Name] = job
		s.names = append(s.names, job.Name)
		s.failed.WithLabelValues(job.Name)
		for _, state := range []State{Done, Failed} {
			s.ended.WithLabelValues(job.Name, string(state))
		}
	}
	return s, nil
}

// Run runs the jobs until ctx ends, and the steps in hand with it.
func (s *Scheduler) Run(ctx context.Context) error {
	pauses := backoff.Backoff{First: lookEvery, Max: 10 * time.Second}
	for {
		err := s.register(ctx)
		if err == nil {
			break
		}
		if ctx.Err() == nil {
			s.log.Warn().Str("error", pgpool.LogText(err)).Msg("registering the schedules failed, will retry")
		}
		if backoff.Sleep(ctx, pauses.Next()) != nil {
			return nil
		}
	}
	pauses.Reset()
	var working sync.WaitGroup
	defer working.Wait()
	busy := make(map[string]bool)
	idle := make(chan string, len(s.jobs)) // never full: a job is busy once
	for {
		due, wait, err := s.look(ctx)
		if err != nil {
			if ctx.Err() == nil {
				s.log.Warn().Str("error", pgpool.LogText(err)).Msg("looking for due runs failed, will retry")
			}
			wait = pauses.Next()
		} else {
			pauses.Reset()
		}
		for _, name := range due {
			if busy[name] {
				continue
			}
			busy[name] = true
			working.Go(func() {
				s.work(ctx, s.jobs[name])
				idle <- name
			})
		}
		timer := time.NewTimer(wait)
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				timer.Stop()
				return nil
			case name := <-idle:
				delete(busy, name)
			case <-timer.C:
				waiting = false
			}
		}
	}
}

// register writes a row for each job that has none. The next due time is calculated
// again from the last one: the rules of the zones, or the job, may have changed.
func (s *Scheduler) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	for _, name := range s.names {
		job := s.jobs[name]
		err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `
				insert into schedules (name, spec, catch_up, last_due, next_at) values ($1, $2, $3, now(), 'infinity')
				on conflict do nothing`, name, job.When.String(), catchUpText(job.CatchUp))
			if err != nil {
				return err
			}
			var lastDue time.Time
			err = tx.QueryRow(ctx, `select last_due from schedules where name = $1 for update`, name).Scan(&lastDue)
			if err != nil {
				return err
			}
			next, _ := job.When.Next(lastDue)
			_, err = tx.Exec(ctx, `
				update schedules set spec = $2, catch_up = $3, next_at = $4 where name = $1`,
				name, job.When.String(), catchUpText(job.CatchUp), next)
			return err
		})
		if err != nil {
			return fmt.Errorf("register %s: %w", name, err)
		}
	}
	return nil
}

// catchUpText returns c as operators read it.
func catchUpText(c CatchUp) string {
	if c == Last {
		return "last"
	}
	return string(c)
}

// look returns the jobs that have something to do, and when to look again.
func (s *Scheduler) look(ctx context.Context) (due []string, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if err := s.rewind(ctx); err != nil {
		return nil, 0, err
	}
	var next *time.Duration
	err = s.pool.QueryRow(ctx, `
		select
			coalesce(array_agg(s.name) filter (where case when r.job is null then s.next_at <= now() else
				r.resume_at <= now() and (r.lease_until is null or r.lease_until < now()) end), '{}'),
			min(s.next_at) filter (where s.next_at > now() and s.next_at < now() + interval '1 hour') - now()
		from schedules s left join schedule_runs r on r.job = s.name and r.state = 'running'
		where s.name = any($1) and not s.paused`, s.names).Scan(&due, &next)
	if err != nil {
		return nil, 0, fmt.Errorf("look for what is due: %w", err)
	}
	wait = backoff.Jitter(s.lookEvery)
	if next != nil && *next < wait {
		wait = *next
	}
	return due, wait, nil
}

// rewind makes jobs due by the present time again whose last time is in the future: the
// server's clock was ahead, and they would wait until it is there again.
func (s *Scheduler) rewind(ctx context.Context) error {
	var ahead []string
	var now time.Time
	err := s.pool.QueryRow(ctx, `
		select coalesce(array_agg(name), '{}'), now() from schedules where name = any($1) and last_due > now() + interval '1 minute'`, s.names).
		Scan(&ahead, &now)
	if err != nil {
		return fmt.Errorf("look for times in the future: %w", err)
	}
	for _, name := range ahead {
		next, _ := s.jobs[name].When.Next(now)
		_, err := s.pool.Exec(ctx, `
			update schedules set last_due = $2, next_at = $3 where name = $1 and last_due > now() + interval '1 minute'`, name, now, next)
		if err != nil {
			return fmt.Errorf("make %s due again: %w", name, err)
		}
		s.log.Warn().Str("job", name).Time("next_at", next).Msg("the database's clock was ahead, the job is due again")
	}
	return nil
}

// work begins due runs of a job and brings them to their end, as far as this
// replica gets them.
func (s *Scheduler) work(ctx context.Context, job Job) {
	for ctx.Err() == nil {
		err := s.begin(ctx, job)
		var taken *claim
		if err == nil {
			taken, err = s.claim(ctx, job)
		}
		if err == nil && taken != nil {
			err = s.run(ctx, job, taken)
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn().Str("job", job.Name).Str("error", pgpool.LogText(err)).Msg("running a scheduled job failed, will retry")
		}
		if err != nil || taken == nil {
			return
		}
	}
}

// begin writes the run of the period that is due, if there is one and no run is
// under way. The lock on the schedule's row makes it one replica's.
func (s *Scheduler) begin(ctx context.Context, job Job) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var lastDue, now time.Time
		err := tx.QueryRow(ctx, `
			select last_due, now() from schedules
			where name = $1 and not paused and next_at <= now()
			for update skip locked`, job.Name).Scan(&lastDue, &now)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("lock schedule: %w", err)
		}
		// A statement of its own: it sees what was committed before the lock.
		running, err := pgpool.Value[bool](ctx, tx, "look for a run", `select exists (select from schedule_runs where job = $1 and state = 'running')`, job.Name)
		if err != nil {
			return err
		}
		if running {
			return nil
		}
		due, period := job.When.Next(lastDue)
		for job.CatchUp != Each {
			at, key := job.When.Next(due)
			if at.After(now) {
				break
			}
			due, period = at, key
		}
		var writes pgx.Batch
		next := due
		if !due.After(now) { // it is not when the job's times are others than those of the row
			next, _ = job.When.Next(due)
			writes.Queue(`
				insert into schedule_runs (job, period, due_at)
				select $1::text, $2::text, $3::timestamptz where $4::boolean on conflict do nothing`, job.Name, period, due, job.CatchUp != None || now.Sub(due) <= late)
			lastDue = due
		}
		writes.Queue(`update schedules set last_due = $2, next_at = $3 where name = $1`, job.Name, lastDue, next)
		writes.Queue(`
			delete from schedule_runs where job = $1 and
				(ended_at < now() - $2::interval or ended_at < now() - $3::interval and state = 'done' and done = 0)`,
			job.Name, keepRuns, keepIdle)
		if err := tx.SendBatch(ctx, &writes).Close(); err != nil {
			return fmt.Errorf("begin run: %w", err)
		}
		return nil
	})
}

// A claim is a run that this replica has leased.
type claim struct {
	period string
	owner  uuid.UUID // of this claim alone: an earlier claimant of the run is fenced off
}

// claim leases the run of a job that nobody has, or returns nil.
func (s *Scheduler) claim(ctx context.Context, job Job) (*claim, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	c := &claim{owner: uuid.New()}
	err := s.pool.QueryRow(ctx, `
		update schedule_runs r
		set owner = $2, lease_until = now() + $3::interval, started_at = coalesce(r.started_at, now())
		from (
			select job, period from schedule_runs
			where job = $1 and state = 'running' and resume_at <= now() and (lease_until is null or lease_until < now())
			for update skip locked
		) free
		where r.job = free.job and r.period = free.period
			and exists (select from schedules where name = $1 and not paused)
		returning r.period`, job.Name, c.owner, s.lease).Scan(&c.period)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("claim run: %w", err)
	}
	return c, nil
}

// errLost says that the run is no longer this claim's: the job was paused, or
// the lease was over and another replica has taken the run.
var errLost = errors.New("the run is another's")

// run steps through a run until it has ended, or ctx has.
func (s *Scheduler) run(ctx context.Context, job Job, c *claim) error {
	for {
		p, err := s.step(ctx, job, c)
		switch {
		case errors.Is(err, errLost):
			return s.release(ctx, job, c)
		case err != nil:
			return errors.Join(err, s.fail(ctx, job, c, err))
		case p.Last:
			s.ended.WithLabelValues(job.Name, string(Done)).Inc()
			s.lastEnd.WithLabelValues(job.Name).SetToCurrentTime()
			return nil
		}
		if ctx.Err() != nil || p.Pause > 0 && backoff.Sleep(ctx, p.Pause) != nil {
			return s.release(ctx, job, c)
		}
	}
}

// step is one transaction: the job's effect, the cursor, and the lease.
func (s *Scheduler) step(ctx context.Context, job Job, c *claim) (p Progress, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// The row stays locked until the commit: nobody else can be in a step of it.
		run, err := pgpool.One(ctx, tx, "lock run", errLost, scanRun, runSQL+`
			where r.job = $1 and r.period = $2 and r.owner = $3 and r.state = 'running'
				and exists (select from schedules s where s.name = r.job and not s.paused)
			for update`, job.Name, c.period, c.owner)
		if err != nil {
			return err
		}
		if p, err = job.Step(ctx, tx, run); err != nil {
			return err
		}
		return pgpool.Exec(ctx, tx, "note progress", `
			update schedule_runs set
				cursor = $3, done = done + $4, total = coalesce(nullif($5::bigint, 0), total),
				failures = 0, error = '',
				lease_until = clock_timestamp() + $6::interval,
				state = case when $7 then 'done' else state end,
				ended_at = case when $7 then clock_timestamp() end
			where job = $1 and period = $2`,
			job.Name, c.period, p.Cursor, p.Done, p.Total, s.lease+p.Pause, p.Last)
	})
	if err == nil && p.AfterCommit != nil {
		p.AfterCommit()
	}
	return p, err
}

// fail notes that a step failed, and leaves the run to the replica that tries next.
func (s *Scheduler) fail(ctx context.Context, job Job, c *claim, cause error) error {
	s.failed.WithLabelValues(job.Name).Inc()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	text := pgpool.LogText(cause)
	var state State
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var failures int
		err := tx.QueryRow(ctx, `
			select failures + 1 from schedule_runs where job = $1 and period = $2 and owner = $3 and state = 'running' for update`,
			job.Name, c.period, c.owner).Scan(&failures)
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, `
			update schedule_runs set
				failures = $3, error = $4, owner = null, lease_until = null, resume_at = now() + $5::interval,
				state = case when $6 then 'failed' else state end, ended_at = case when $6 then now() end
			where job = $1 and period = $2 returning state`,
			job.Name, c.period, failures, strings.ToValidUTF8(text[:min(len(text), longestError)], ""),
			backoff.Delay(retryFirst, retryMax, failures), failures >= maxFailures).Scan(&state)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows): // another has the run, or it is done and the commit's confirmation was lost
		return nil
	case err != nil: // the lease will end
		return fmt.Errorf("note failure: %w", err)
	case state == Failed:
		s.ended.WithLabelValues(job.Name, string(Failed)).Inc()
		s.log.Error().Str("job", job.Name).Str("period", c.period).Str("error", text).
			Msg("a scheduled run failed too often, an operator may run it again")
	}
	return nil
}

// release lets another replica go on at once.
func (s *Scheduler) release(ctx context.Context, job Job, c *claim) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	return pgpool.Exec(ctx, s.pool, "release run", `
		update schedule_runs set owner = null, lease_until = null where job = $1 and period = $2 and owner = $3`,
		job.Name, c.period, c.owner)
}
