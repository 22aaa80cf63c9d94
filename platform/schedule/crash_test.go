package schedule_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/testing/short"
)

// crashSteps is how many steps a run of the job has.
const crashSteps = 5

// TestMain lets the test binary be a replica that kills or stops itself.
func TestMain(m *testing.M) {
	if os.Getenv("CRASH_DATABASE") == "" {
		os.Exit(m.Run())
	}
	if err := child(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

// child runs the job, and sends itself CRASH_SIGNAL in its step CRASH_AT: before the
// effect, which is right after the commit of the step before, or after it.
func child(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, os.Getenv("CRASH_DATABASE"))
	if err != nil {
		return err
	}
	defer pool.Close()
	at, err := strconv.Atoi(os.Getenv("CRASH_AT"))
	if err != nil {
		return err
	}
	afterEffect, err := strconv.ParseBool(os.Getenv("CRASH_AFTER_EFFECT"))
	if err != nil {
		return err
	}
	signal, err := strconv.Atoi(os.Getenv("CRASH_SIGNAL"))
	if err != nil {
		return err
	}
	steps := 0
	s, err := schedule.New(schedule.Dependencies{Pool: pool, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry()}, schedule.Job{
		Name: "job", When: seldom, CatchUp: schedule.Each,
		Step: func(ctx context.Context, tx pgx.Tx, run schedule.Run) (schedule.Progress, error) {
			n := 0
			if run.Cursor != nil {
				if err := json.Unmarshal(run.Cursor, &n); err != nil {
					return schedule.Progress{}, err
				}
			}
			n++
			steps++
			if steps == at && !afterEffect {
				signalSelf(syscall.Signal(signal))
			}
			_, err := tx.Exec(ctx, `insert into effects (period, step) values ($1, $2)`, run.Period, n)
			if steps == at && afterEffect {
				signalSelf(syscall.Signal(signal))
			}
			return schedule.Progress{Cursor: fmt.Append(nil, n), Done: 1, Last: n == crashSteps}, err
		},
	})
	if err != nil {
		return err
	}
	s.SetPace(200*time.Millisecond, 20*time.Millisecond)
	return s.Run(ctx)
}

// signalSelf returns when the process goes on, if it does.
func signalSelf(signal syscall.Signal) {
	_ = syscall.Kill(os.Getpid(), signal)
	<-time.After(time.Second) // the other threads notice a stop a moment later
}

// replica starts a process that runs the job, and gets a signal in one of its
// steps.
func (h *harness) replica(database string, at int, afterEffect bool, signal syscall.Signal) *exec.Cmd {
	h.Helper()
	cmd := exec.CommandContext(h.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "CRASH_DATABASE="+database, "CRASH_AT="+strconv.Itoa(at),
		"CRASH_AFTER_EFFECT="+strconv.FormatBool(afterEffect), "CRASH_SIGNAL="+strconv.Itoa(int(signal)))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		h.Fatal(err)
	}
	return cmd
}

// Three replicas that are killed a hundred times during fifty periods run each
// period once, and each of its steps has its effect once.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	periods, kills := short.Count(10, 50), short.Count(20, 100)
	const replicas = 3
	h := newHarness(t)
	h.exec(`create table effects (period text, step int)`)
	h.waited("job", periods)
	ended := make(chan error)
	mortal := func() {
		cmd := h.replica(h.pool.Config().ConnString(), 1+rand.IntN(4), rand.IntN(2) == 0, syscall.SIGKILL)
		go func() { ended <- cmd.Wait() }()
	}
	for range replicas {
		mortal()
	}
	for n := 1; n <= kills; n++ {
		err := <-ended
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("replica %d ended with %v, want it killed", n, err)
		}
		if n <= kills-replicas {
			mortal()
		}
	}
	left := h.count(`select count(*) from schedule_runs where state = 'done'`)
	last := h.replica(h.pool.Config().ConnString(), -1, false, 0)
	defer func() { _ = last.Process.Kill(); _ = last.Wait() }()
	h.until(0, `select count(*) from schedules where next_at < now()`)
	h.until(0, `select count(*) from schedule_runs where state <> 'done'`)
	for _, q := range []struct {
		what, sql string
		want      int
	}{
		{"periods that were run", `select count(*) from schedule_runs where done = 5 and times = 1`, periods},
		{"effects", `select count(*) from effects`, periods * crashSteps},
		{"different effects", `select count(*) from (select distinct period, step from effects) e`, periods * crashSteps},
	} {
		if got := h.count(q.sql); got != q.want {
			t.Errorf("%s: %d, want %d", q.what, got, q.want)
		}
	}
	t.Logf("%d replicas killed, %d periods were left to the last one", kills, periods-left)
}

// A replica that stands still in the middle of a step, for longer than its lease,
// is succeeded, and what it goes on with afterwards has no effect.
func TestFrozenReplicaIsFencedOff(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.exec(`create table effects (period text, step int)`)
	h.waited("job", 1)
	database := h.pool.Config().ConnString()
	separator := "?"
	if strings.Contains(database, "?") {
		separator = "&"
	}
	// The server ends transactions of whoever stands still, as it does those of the
	// services after five seconds.
	frozen := h.replica(database+separator+"idle_in_transaction_session_timeout=500", 2, true, syscall.SIGSTOP)
	defer func() { _ = frozen.Process.Kill(); _ = frozen.Wait() }()
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(frozen.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the replica does not stand still: %v, error %v", status, err)
	}
	next := h.replica(database, -1, false, 0)
	defer func() { _ = next.Process.Kill(); _ = next.Wait() }()
	h.until(1, `select count(*) from schedule_runs where state = 'done'`)
	if err := frozen.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	_ = next.Process.Kill() // the one that went on takes the next period: it is there again
	h.exec(`delete from schedule_runs`)
	h.exec(`update schedules set last_due = last_due - interval '1000 hours', next_at = now()`)
	h.until(1, `select count(*) from schedule_runs where state = 'done'`)
	if got, want := h.count(`select count(*) from effects`), 2*crashSteps; got != want {
		t.Errorf("%d effects of two runs, want %d", got, want)
	}
}
