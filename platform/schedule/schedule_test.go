package schedule_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A harness has a database, and notes what operators did there.
type harness struct {
	*testing.T
	pool *pgxpool.Pool
	acts []schedule.Act
}

func newHarness(t *testing.T) *harness { return &harness{T: t, pool: pgtest.Notification(t)} }

// scheduler returns a scheduler of jobs that looks often.
func (h *harness) scheduler(jobs ...schedule.Job) *schedule.Scheduler {
	h.Helper()
	s, err := schedule.New(schedule.Dependencies{
		Pool: h.pool, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry(),
		Audit: func(_ context.Context, _ pgx.Tx, act schedule.Act) error {
			h.acts = append(h.acts, act)
			return nil
		},
	}, jobs...)
	if err != nil {
		h.Fatal(err)
	}
	s.SetPace(time.Second, 10*time.Millisecond)
	return s
}

// start runs s until the test, or the function that it returns, ends it.
func (h *harness) start(s *schedule.Scheduler) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			h.Errorf("Run: %v", err)
		}
	}
	h.Cleanup(stop)
	return stop
}

func (h *harness) exec(sql string, args ...any) {
	h.Helper()
	if _, err := h.pool.Exec(context.WithoutCancel(h.Context()), sql, args...); err != nil {
		h.Fatal(err)
	}
}

func (h *harness) count(sql string, args ...any) (n int) {
	h.Helper()
	if err := h.pool.QueryRow(context.WithoutCancel(h.Context()), sql, args...).Scan(&n); err != nil {
		h.Fatal(err)
	}
	return n
}

// until waits until a query counts n.
func (h *harness) until(n int, sql string, args ...any) {
	h.Helper()
	eventually.True(h, fmt.Sprintf("%s: %d", sql, n), func() bool { return h.count(sql, args...) == n })
}

// seldom is due so seldom that it is not while a test runs.
const seldom = schedule.Every(1000 * time.Hour)

// waited has a schedule's row say that so many periods of seldom were due since
// it last ran.
func (h *harness) waited(name string, periods int) {
	h.Helper()
	next, _ := seldom.Next(time.Now())
	h.exec(`insert into schedules (name, spec, catch_up, last_due, next_at) values ($1, '', '', $2, now())`,
		name, next.Add(-time.Duration(seldom)*time.Duration(periods+1)))
}

func nothing(context.Context, pgx.Tx, schedule.Run) (schedule.Progress, error) {
	return schedule.Progress{Last: true}, nil
}

// Runs that were due while nobody ran are caught up with as the job says.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		catchUp schedule.CatchUp
		want    int
	}{{schedule.Last, 1}, {schedule.Each, 3}, {schedule.None, 0}} {
		t.Run("catch up "+string(tt.catchUp), func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.waited("job", 3)
			h.start(h.scheduler(schedule.Job{Name: "job", When: seldom, CatchUp: tt.catchUp, Step: nothing}))
			h.until(0, `select count(*) from schedules where next_at < now()`)
			h.until(0, `select count(*) from schedule_runs where state <> 'done'`)
			if got := h.count(`select count(*) from schedule_runs`); got != tt.want {
				t.Errorf("%d runs, want %d", got, tt.want)
			}
			if got := h.count(`select count(*) from schedule_runs r join schedules s on r.due_at = s.last_due`); got != min(tt.want, 1) {
				t.Errorf("%d runs of the latest period, want %d", got, min(tt.want, 1))
			}
		})
	}
}

// A job that is new waits for its first time; one that was known does not wait
// again with each start.
func TestRestartsDoNotDelay(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	job := schedule.Job{Name: "job", When: seldom, Step: nothing}
	for range 2 {
		stop := h.start(h.scheduler(job))
		h.until(1, `select count(*) from schedules where next_at > now()`)
		stop()
	}
	if got := h.count(`select count(*) from schedule_runs`); got != 0 {
		t.Errorf("%d runs of a job that is new, want none", got)
	}
	// Its time came while nobody ran. The next start finds it.
	h.exec(`update schedules set last_due = last_due - interval '1000 hours'`)
	h.start(h.scheduler(job))
	h.until(1, `select count(*) from schedule_runs where state = 'done'`)
}

// A clock that was ahead for a moment makes no job wait until that time has come.
func TestClockThatWasAhead(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.start(h.scheduler(schedule.Job{Name: "job", When: schedule.Every(time.Second), Step: nothing}))
	h.until(1, `select least(count(*), 1) from schedule_runs where state = 'done'`)
	h.exec(`update schedules set last_due = now() + interval '1 hour', next_at = now() + interval '1 hour'`)
	at := time.Now()
	h.until(1, `select least(count(*), 1) from schedule_runs where state = 'done' and due_at > '`+at.Format(time.RFC3339Nano)+`'`)
}

// AfterCommit sees what the step wrote, and is not called for a step whose
// transaction failed at its commit.
func TestAfterCommit(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.exec(`create table effects (n int unique deferrable initially deferred)`)
	h.waited("job", 1)
	seen := make(chan int, 2)
	h.start(h.scheduler(schedule.Job{Name: "job", When: seldom,
		Step: func(ctx context.Context, tx pgx.Tx, run schedule.Run) (schedule.Progress, error) {
			rows := 2 - run.Failures // two of the same number fail the commit
			_, err := tx.Exec(ctx, `insert into effects select $1 from generate_series(1, $2)`, run.Failures, rows)
			after := func() { seen <- h.count(`select count(*) from effects`)*10 + run.Failures }
			return schedule.Progress{Last: true, AfterCommit: after}, err
		}}))
	h.until(1, `select count(*) from schedule_runs where failures = 1 and owner is null`)
	h.exec(`update schedule_runs set resume_at = now()`)
	h.until(1, `select count(*) from schedule_runs where state = 'done'`)
	if got := <-seen; got != 11 || len(seen) > 0 {
		t.Errorf("called with %d rows after %d failures, then %d more calls; want once, with the row of the second attempt", got/10, got%10, len(seen))
	}
}

// A failed step is rolled back, and repeated with the number of its failures.
func TestStepFails(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.exec(`create table effects (n int)`)
	h.waited("job", 1)
	var failures []int
	stop := h.start(h.scheduler(schedule.Job{Name: "job", When: seldom,
		Step: func(ctx context.Context, tx pgx.Tx, run schedule.Run) (schedule.Progress, error) {
			failures = append(failures, run.Failures)
			if _, err := tx.Exec(ctx, `insert into effects values ($1)`, run.Failures); err != nil {
				return schedule.Progress{}, err
			}
			if run.Failures < 2 {
				return schedule.Progress{}, errors.New("not yet")
			}
			return schedule.Progress{Last: true}, nil
		}}))
	for n := range 2 { // it would wait for seconds
		h.until(1, `select count(*) from schedule_runs where failures = $1 and error = 'not yet' and owner is null`, n+1)
		h.exec(`update schedule_runs set resume_at = now()`)
	}
	h.until(1, `select count(*) from schedule_runs where state = 'done' and failures = 0 and error = ''`)
	stop()
	if got := h.count(`select sum(n) from effects`); got != 2 || h.count(`select count(*) from effects`) != 1 {
		t.Errorf("effects add up to %d, want that of the third attempt alone", got)
	}
	if want := []int{0, 1, 2}; !slices.Equal(failures, want) {
		t.Errorf("the steps knew of %v failures, want %v", failures, want)
	}
}

// counting returns a step that is to be done so often, and signals each.
func counting(steps int, stepped chan<- int) func(context.Context, pgx.Tx, schedule.Run) (schedule.Progress, error) {
	return func(ctx context.Context, _ pgx.Tx, run schedule.Run) (schedule.Progress, error) {
		n := 0
		if run.Cursor != nil {
			if err := json.Unmarshal(run.Cursor, &n); err != nil {
				return schedule.Progress{}, err
			}
		}
		n++
		select {
		case stepped <- n:
		case <-ctx.Done():
			return schedule.Progress{}, ctx.Err()
		}
		return schedule.Progress{Cursor: fmt.Append(nil, n), Done: 10, Total: int64(10 * steps), Last: n == steps}, nil
	}
}

// A run that is paused rests after its step and goes on there.
func TestPause(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.waited("job", 1)
	stepped := make(chan int)
	s := h.scheduler(schedule.Job{Name: "job", When: seldom, Step: counting(3, stepped)})
	h.start(s)
	<-stepped
	if err := s.Operate(t.Context(), schedule.Act{Actor: "op", Action: schedule.Pause, Job: "job"}); err != nil {
		t.Fatal(err)
	}
	// The second step may have begun before.
	var poll backoff.Poll
	for h.count(`select count(*) from schedule_runs where owner is null`) == 0 {
		select {
		case <-stepped:
		case <-poll.Next():
		}
	}
	rested := h.count(`select cursor::int from schedule_runs`)
	list, err := s.List(t.Context())
	if err != nil || len(list) != 1 || !list[0].Paused || list[0].Latest.Done != int64(10*rested) || list[0].Latest.Total != 30 {
		t.Errorf("schedules are %+v (error %v), want one that is paused after %d steps", list, err, rested)
	}
	if err := s.Operate(t.Context(), schedule.Act{Actor: "op", Action: schedule.Resume, Job: "job", Reason: "all is well"}); err != nil {
		t.Fatal(err)
	}
	for want := rested + 1; want <= 3; want++ {
		if got := <-stepped; got != want {
			t.Errorf("step %d, want %d", got, want)
		}
	}
	h.until(1, `select count(*) from schedule_runs where state = 'done' and done = 30`)
	want := []schedule.Act{
		{Actor: "op", Action: schedule.Pause, Job: "job"},
		{Actor: "op", Action: schedule.Resume, Job: "job", Reason: "all is well"},
	}
	if !slices.Equal(h.acts, want) {
		t.Errorf("audited %+v, want %+v", h.acts, want)
	}
}

// Operators start a run over, resume it where it failed, or start one now.
func TestRunAgain(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	stepped := make(chan int)
	s := h.scheduler(schedule.Job{Name: "job", When: seldom, Step: counting(2, stepped)})
	h.exec(`insert into schedules (name, spec, catch_up, last_due, next_at) values ('job', '', '', now(), 'infinity')`)
	h.exec(`insert into schedule_runs (job, period, due_at, state, cursor, done, failures, started_at, ended_at) values
		('job', 'done', now(), 'done', '2', 20, 0, now(), now()), ('job', 'failed', now(), 'failed', '1', 10, 22, now(), now())`)
	h.start(s)
	again := func(period string) error {
		return s.Operate(t.Context(), schedule.Act{Actor: "op", Action: schedule.RunAgain, Job: "job", Period: period})
	}
	for _, tt := range []struct {
		period string
		steps  []int
	}{{"done", []int{1, 2}}, {"failed", []int{2}}, {"", []int{1, 2}}} {
		if err := again(tt.period); err != nil {
			t.Fatal(err)
		}
		if err := again(tt.period); fault.KindOf(err) != fault.Conflict {
			t.Errorf("asked for twice: %v, want a conflict", err)
		}
		for _, want := range tt.steps {
			if got := <-stepped; got != want {
				t.Errorf("period %q: step %d, want %d", tt.period, got, want)
			}
		}
		h.until(0, `select count(*) from schedule_runs where state <> 'done' and period = any($1)`, []string{tt.period, "done"})
		h.until(0, `select count(*) from schedule_runs where state = 'running'`)
	}
	if got := h.count(`select count(*) from schedule_runs where done = 20`); got != 3 {
		t.Errorf("%d runs of 20, want 3", got)
	}
	if err := again("never was"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a period that never was: %v, want it refused", err)
	}
	if err := s.Operate(t.Context(), schedule.Act{Action: schedule.Pause, Job: "other"}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a job that is none: %v, want it refused", err)
	}
	if len(h.acts) != 3 {
		t.Errorf("%d acts audited, want the 3 that were done", len(h.acts))
	}
}

// Rows of a job that another process runs are left alone.
func TestOthersJobs(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.waited("others", 3)
	h.waited("job", 1)
	h.start(h.scheduler(schedule.Job{Name: "job", When: seldom, Step: nothing}))
	h.until(1, `select count(*) from schedule_runs where state = 'done'`)
	if got := h.count(`select count(*) from schedule_runs where job = 'others'`); got != 0 {
		t.Errorf("%d runs of another process's job, want none", got)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := schedule.Job{Name: "job", When: schedule.Every(time.Hour), Step: nothing}
	for name, change := range map[string]func(*schedule.Job){
		"no name":       func(j *schedule.Job) { j.Name = "" },
		"a name":        func(j *schedule.Job) { j.Name = "Jobs of all" },
		"no times":      func(j *schedule.Job) { j.When = nil },
		"no interval":   func(j *schedule.Job) { j.When = schedule.Every(0) },
		"no zone":       func(j *schedule.Job) { j.When = schedule.Local{} },
		"a day":         func(j *schedule.Job) { j.When = schedule.Local{Zone: time.UTC, Days: []time.Weekday{7}} },
		"no step":       func(j *schedule.Job) { j.Step = nil },
		"a catching up": func(j *schedule.Job) { j.CatchUp = "some" },
	} {
		job := good
		change(&job)
		if _, err := schedule.New(schedule.Dependencies{Metrics: prometheus.NewRegistry()}, job); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := schedule.New(schedule.Dependencies{Metrics: prometheus.NewRegistry()}, good, good); err == nil {
		t.Error("the same job twice: no error")
	}
}

// How long a run will take follows from how long it took.
func TestEnds(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)
	run := schedule.Run{State: schedule.Running, StartedAt: &began, Done: 25, Total: 100}
	s := schedule.Schedule{Latest: &run, Now: began.Add(time.Hour), NextAt: began.Add(5 * time.Hour)}
	if got := run.Ends(s.Now); got == nil || !got.Equal(began.Add(4*time.Hour)) || s.Overruns() {
		t.Errorf("ends at %v and overruns %t, want after four hours, in time", got, s.Overruns())
	}
	s.NextAt = began.Add(3 * time.Hour)
	if !s.Overruns() {
		t.Error("does not overrun, want that it does")
	}
	run.Total = 0
	if got := run.Ends(s.Now); got != nil || s.Overruns() {
		t.Errorf("ends at %v without a total, want nothing", got)
	}
}
