package monitor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/schedule"
)

// A part whose source hangs, or says that it knows nothing, is unknown; the others
// are read all the same.
func TestEachPartIsReadByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reading atomic.Pointer[Reading]
		var hangs atomic.Bool
		reading.Store(&Reading{State: Bad, Cause: "open", Count: 3})
		m := New(
			Part{"steady", func(context.Context) Reading { return Reading{State: Good} }},
			Part{"changing", func(context.Context) Reading { return *reading.Load() }},
			Part{"hanging", func(ctx context.Context) Reading {
				if hangs.Load() {
					time.Sleep(time.Minute) //nolint:forbidigo // the clock is synctest's; it ignores its context
				}
				return Reading{State: Good}
			}},
		)
		began := time.Now()
		for _, s := range m.Statuses() {
			if s.State != Unknown || s.Cause != NotRead || !s.Since.Equal(began) {
				t.Errorf("before the first reading %s is %+v", s.Name, s)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- m.Run(ctx) }()
		synctest.Wait()

		time.Sleep(10 * time.Second) //nolint:forbidigo // the clock is synctest's
		noDatabase := UnknownFor(NoDatabase)
		reading.Store(&noDatabase)
		hangs.Store(true)
		changed := time.Now()
		time.Sleep(11 * time.Second) //nolint:forbidigo // the clock is synctest's
		steady, changing, hanging := m.Statuses()[0], m.Statuses()[1], m.Statuses()[2]
		if steady.State != Good || time.Since(steady.ReadAt) > readEvery || !steady.Since.Equal(began) {
			t.Errorf("a part that is well became %+v", steady)
		}
		if changing.State != Unknown || changing.Count != 3 || changing.Since.Sub(changed) > readEvery || changing.ReadAt.After(changed.Add(readEvery)) {
			t.Errorf("a part whose database went away is %+v, must keep its last count and times", changing)
		}
		if hanging.State != Unknown || hanging.Cause != Timeout {
			t.Errorf("a part that hangs is %+v", hanging)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// The errors of a server that stops are one outage, as old as its first sign.
func TestOutageIsAsOldAsItsFirstSign(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 21, 24, 0, 0, time.UTC)
	s := Status{Reading: Reading{State: Good}, Since: at.Add(-time.Hour)}
	for i, cause := range []Cause{Starting, Lost, Refused, Timeout} {
		s = s.next(Reading{State: Bad, Cause: cause}, at.Add(time.Duration(i)*time.Second))
	}
	if !s.Since.Equal(at) || s.Cause != Timeout {
		t.Errorf("the outage is %+v, must be since %s", s, at)
	}
	later := at.Add(time.Minute)
	if s = s.next(Reading{State: Bad, Cause: ReadOnly}, later); !s.Since.Equal(later) {
		t.Errorf("another cause is as old as %s, must be since %s", s.Since, later)
	}
}

func TestAwayCause(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want Cause
	}{
		{fmt.Errorf("dial: %w", &net.OpError{Err: syscall.ECONNREFUSED}), Refused},
		{fmt.Errorf("ping: %w", context.DeadlineExceeded), Timeout},
		{errors.Join(amqp.ErrClosed, context.DeadlineExceeded), Timeout},
		{&net.DNSError{Name: "db"}, Unreachable},
		{&pgconn.PgError{Code: "57P03"}, Starting},
		{&pgconn.PgError{Code: "57P01"}, Starting},
		{&pgconn.PgError{Code: "53300"}, Full},
		{&pgconn.PgError{Code: "28P01"}, SignIn},
		{&pgconn.PgError{Code: "XX000"}, Lost},
		{&amqp.Error{Code: amqp.AccessRefused}, SignIn},
		{amqp.ErrClosed, Lost},
		{errors.New("unexpected EOF"), Lost},
	} {
		if got := awayCause(tt.err); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
		if !tt.want.isAway() {
			t.Errorf("%q is not the cause of a server that is away", tt.want)
		}
	}
}

func TestSparingly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries, err := 0, error(nil)
		probe := Sparingly(10*time.Second, func(context.Context) error { tries++; return err })
		for range 10 {
			_ = probe(t.Context())
			time.Sleep(time.Second) //nolint:forbidigo // the clock is synctest's
		}
		if tries != 1 {
			t.Errorf("%d tries in ten seconds, want 1", tries)
		}
		err = errors.New("away")
		for range 3 {
			if probe(t.Context()) == nil {
				t.Error("a failure is not returned")
			}
		}
		if tries != 4 {
			t.Errorf("%d tries, want each time while it fails", tries)
		}
	})
}

func TestJobs(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 5, 0, 0, 0, time.UTC)
	run := func(state schedule.State) *schedule.Run { return &schedule.Run{State: state} }
	well := schedule.Schedule{Name: "retention", Now: now, NextAt: now.Add(time.Hour), Latest: run(schedule.Done)}
	with := func(name string, change func(*schedule.Schedule)) schedule.Schedule {
		s := well
		s.Name = name
		change(&s)
		return s
	}
	failed := with("digests", func(s *schedule.Schedule) { s.Latest = run(schedule.Failed) })
	late := with("overdue", func(s *schedule.Schedule) { s.NextAt = now.Add(-3 * time.Minute) })
	working := with("long", func(s *schedule.Schedule) { s.NextAt, s.Latest = now.Add(-3*time.Minute), run(schedule.Running) })
	paused := with("deadlines", func(s *schedule.Schedule) { s.Paused = true })
	for _, tt := range []struct {
		jobs []schedule.Schedule
		want Reading
	}{
		{[]schedule.Schedule{well, working}, Reading{State: Good}},
		{[]schedule.Schedule{well, paused}, Reading{State: Warning, Cause: Paused, Names: []string{"deadlines"}, Count: 1}},
		{[]schedule.Schedule{paused, late}, Reading{State: Bad, Cause: Overdue, Names: []string{"overdue"}, Count: 1}},
		{[]schedule.Schedule{late, failed, paused}, Reading{State: Bad, Cause: Failed, Names: []string{"digests"}, Count: 1}},
	} {
		if got := jobs(tt.jobs); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%+v, want %+v", got, tt.want)
		}
	}
	read := Jobs(func(context.Context) ([]schedule.Schedule, error) { return nil, errors.New("away") })
	if got := read(t.Context()); got.State != Unknown || got.Cause != NoDatabase {
		t.Errorf("without a database jobs are %+v", got)
	}
}
