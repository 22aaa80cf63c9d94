package history

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// fast is how often the replicas of these tests write.
const fast = 100 * time.Millisecond

// TestMain lets the test binary be a replica.
func TestMain(m *testing.M) {
	database := os.Getenv("HISTORY_DATABASE")
	if database == "" {
		os.Exit(m.Run())
	}
	if err := replica(database, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "replica:", err)
		os.Exit(1)
	}
}

// replica counts the numbers that it reads, one a line, until its input ends.
func replica(database string, in io.Reader) error {
	pool, err := pgxpool.New(context.Background(), database)
	if err != nil {
		return err
	}
	defer pool.Close()
	var counted atomic.Int64
	r := NewRecorder(pool, func(context.Context) Figures {
		return Figures{Counters: map[string]float64{"things": float64(counted.Load())}, Levels: map[string]float64{"depth": 7}}
	}, zerolog.Nop())
	r.step = fast
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			return err
		}
		counted.Add(int64(n))
	}
	stop()
	return <-done
}

// A process is a replica of its own.
type process struct {
	*exec.Cmd
	in io.WriteCloser
}

func start(t *testing.T, pool *pgxpool.Pool) process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "HISTORY_DATABASE="+pool.Config().ConnString())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return process{cmd, in}
}

func (p process) count(t *testing.T, n int) {
	t.Helper()
	if _, err := fmt.Fprintln(p.in, n); err != nil {
		t.Fatal(err)
	}
}

// end closes the replica's input, after which it ends by itself.
func (p process) end(t *testing.T) {
	t.Helper()
	_ = p.in.Close() // a pipe that is read
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
}

// written returns what all rows together counted.
func written(t *testing.T, pool *pgxpool.Pool) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `select coalesce(sum((figures->'counters'->>'things')::float8), 0)::int from history`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The counts of three replicas are there when one of them is killed, another one
// takes its place, and the others end.
func TestReplicas(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	a, b, c := start(t, pool), start(t, pool), start(t, pool)
	for _, p := range []process{a, b, c} {
		p.count(t, 1000)
	}
	eventually.True(t, "3,000 are written", func() bool { return written(t, pool) == 3000 })

	if err := a.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := a.Wait(); err == nil {
		t.Error("the replica ended well, want it killed")
	}
	d := start(t, pool) // it counts from nothing
	for _, p := range []process{b, c, d} {
		p.count(t, 100)
	}
	for _, p := range []process{b, c, d} {
		p.end(t) // at once: what it counted last is in its last row
	}
	if got := written(t, pool); got != 3300 {
		t.Errorf("%d are written, want 3,300", got)
	}

	// Long ago, so that all steps are over.
	if _, err := pool.Exec(t.Context(), `update history set since = since - interval '2 minutes', until = until - interval '2 minutes'`); err != nil {
		t.Fatal(err)
	}
	h, err := Read(t.Context(), pool, 15*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	total, depth := 0.0, 0.0
	for i := range h.Replicas {
		if v := h.Counters["things"][i]; !math.IsNaN(v) {
			total += v * h.Step.Seconds()
		}
		if v := h.Levels["depth"][i]; !math.IsNaN(v) {
			depth = max(depth, v)
		}
	}
	if math.Abs(total-3300) > 0.01 || depth != 7 || len(h.Replicas) != 90 || h.Step != Step {
		t.Errorf("the history has %v things and a depth of %v in %d steps of %v, want 3,300 and 7 in 90 of %v", total, depth, len(h.Replicas), h.Step, Step)
	}
}

// Counts from while the database takes no rows are in the next row that it takes.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	p := start(t, pool)
	p.count(t, 10)
	eventually.True(t, "the first are written", func() bool { return written(t, pool) == 10 })
	exec := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`create sequence refused`)
	exec(`create function refuse() returns trigger language plpgsql as $$
		begin perform nextval('refused'); raise exception 'refused'; end $$`)
	exec(`create trigger refuse before insert on history for each row execute function refuse()`)
	p.count(t, 20)
	eventually.True(t, "some rows are refused", func() (refused bool) {
		if err := pool.QueryRow(t.Context(), `select last_value > 2 from refused`).Scan(&refused); err != nil {
			t.Fatal(err)
		}
		return refused
	})
	exec(`drop trigger refuse on history`)
	eventually.True(t, "the others are written", func() bool { return written(t, pool) == 30 })
	p.end(t)
	if got := written(t, pool); got != 30 {
		t.Errorf("%d are written, want 30", got)
	}
}

// Rows that are too old go with the next one that comes.
func TestOldRowsGo(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	_, err := pool.Exec(t.Context(), `
		insert into history (replica, since, until, figures)
		select gen_random_uuid(), now() - age, now() - age + interval '10 seconds', '{}'
		from unnest(array[interval '7 hours', interval '5 hours']) age`)
	if err != nil {
		t.Fatal(err)
	}
	start(t, pool).end(t)
	var rows int
	if err := pool.QueryRow(t.Context(), `select count(*) from history`).Scan(&rows); err != nil || rows != 2 {
		t.Errorf("%d rows (error %v), want that of 5 hours ago and the new one", rows, err)
	}
}

// A replica that starts or ends within a step counts for the part that it was
// there; a level is the highest of all, and known only for a while.
func TestSum(t *testing.T) {
	t.Parallel()
	zero := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return zero.Add(time.Duration(seconds) * time.Second) }
	a, b := uuid.New(), uuid.New()
	h := sum([]row{
		{a, at(0), at(10), Figures{map[string]float64{"n": 50}, map[string]float64{"depth": 3}}},
		{a, at(10), at(20), Figures{map[string]float64{"n": 50}, map[string]float64{"depth": 9}}},
		{b, at(15), at(25), Figures{map[string]float64{"n": 10}, map[string]float64{"depth": 4}}},
		{b, at(25), at(75), Figures{map[string]float64{"n": 500}, map[string]float64{"depth": 2}}}, // the database was away
	}, at(0), 10*time.Second, 9)
	nan := math.NaN()
	for name, check := range map[string]struct{ got, want []float64 }{
		"n":     {h.Counters["n"], []float64{5, 5.5, 5.5, 10, 10, 10, 10, 5, nan}},
		"depth": {h.Levels["depth"], []float64{3, 9, 4, nan, nan, 2, 2, 2, nan}},
	} {
		equal := func(a, b float64) bool { return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) < 1e-9 }
		if !slices.EqualFunc(check.got, check.want, equal) {
			t.Errorf("%s is %v, want %v", name, check.got, check.want)
		}
	}
	if want := []int32{1, 2, 1, 1, 1, 1, 1, 1, 0}; !slices.Equal(h.Replicas, want) {
		t.Errorf("replicas are %v, want %v", h.Replicas, want)
	}
	if got, want := Runs([]float64{nan, 1.23456, 2, nan, nan, 3}), []Run{{1, []float64{1.235, 2}}, {5, []float64{3}}}; !reflect.DeepEqual(got, want) {
		t.Errorf("runs are %v, want %v", got, want)
	}
}
