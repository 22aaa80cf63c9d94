package relay_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// A relay that has nothing to do asks the database at most twice a second: a
// poll a second, and now and then the lease. A machine that is busy can only
// make it ask less often, so the time that is waited is not what is tested.
func TestIdleCost(t *testing.T) {
	t.Parallel()
	asked := new(statements)
	pool, url := traced(t, pgtest.Report(t), asked), rabbittest.Vhost(t)
	bindQueue(t, url, event.VoteReceivedKey)
	rows := newRows(10, 10)
	insertMany(t, pool, rows)
	arrived := receive(t, url, event.VoteReceivedKey)
	start(t, pool, url)
	arrived.wait(t, rows)
	// The cleaner runs once a minute; its statements are not what is measured.
	eventually.True(t, "the cleaner's first run", func() bool { return len(asked.like("delete from outbox_messages")) > 0 })
	polls := func() int { return len(asked.like("pg_current_snapshot")) }
	eventually.True(t, "the pauses between polls to grow", func() bool {
		before := polls()
		<-time.After(time.Second)
		return polls() <= before+2
	})

	const window = 6 * time.Second
	before, began := asked.like(""), time.Now()
	<-time.After(window) // the load of an idle relay is per time
	after, took := asked.like(""), time.Since(began)
	// A manifest is made once a minute, too.
	manifests := slices.DeleteFunc(slices.Clone(after[len(before):]), func(s statement) bool { return !strings.Contains(s.sql, "manifest") })
	if len(manifests) > 6 {
		t.Errorf("%d statements for manifests, want at most 6:\n%v", len(manifests), manifests)
	}
	n, most := len(after)-len(before)-len(manifests), 2*took.Seconds()
	t.Logf("%d statements within %v", n, took.Round(time.Millisecond))
	if n == 0 || float64(n) > most {
		t.Errorf("%d statements within %v, want some, and at most %.0f:\n%v", n, took, most, after[len(before):])
	}
}

// statements are what was sent to the database, over all connections.
type statements struct {
	mu  sync.Mutex
	all []statement
}

type statement struct {
	sql  string
	args []any
}

// traced returns a pool on the same database that notes what is sent.
func traced(t *testing.T, pool *pgxpool.Pool, s *statements) *pgxpool.Pool {
	t.Helper()
	cfg := pool.Config().Copy()
	cfg.ConnConfig.Tracer = s // also for the connection of the leases, which is made from it
	made, err := pgxpool.NewWithConfig(context.WithoutCancel(t.Context()), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}

// like returns those that contain text, in order.
func (s *statements) like(text string) []statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []statement
	for _, one := range s.all {
		if strings.Contains(one.sql, text) {
			found = append(found, one)
		}
	}
	return found
}

func (s *statements) note(sql string, args []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, statement{sql, args})
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	s.note(q.SQL, q.Args)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (*statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (s *statements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	s.note(q.SQL, q.Args)
}

// TraceBatchEnd implements pgx.BatchTracer.
func (*statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
