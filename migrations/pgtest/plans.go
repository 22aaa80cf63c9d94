package pgtest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Queries are the queries that went through a pool.
type Queries struct {
	pool *pgxpool.Pool

	mu  sync.Mutex
	all []query
}

type query struct {
	sql  string
	args []any
}

// Watch returns a pool on the database of pool, closed when t ends, and the queries that
// go through it from then on.
func Watch(t testing.TB, pool *pgxpool.Pool) (*pgxpool.Pool, *Queries) {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(pool.Config().ConnString())
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	queries := &Queries{pool: pool}
	cfg.ConnConfig.Tracer = queries
	watched, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(watched.Close)
	return watched, queries
}

// TraceQueryStart keeps the query.
func (q *Queries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, start pgx.TraceQueryStartData) context.Context {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = append(q.all, query{start.SQL, start.Args})
	return ctx
}

// TraceQueryEnd does nothing.
func (q *Queries) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A Plan is how the server executes a query.
type Plan struct {
	SQL        string
	Blocks     int      // that it reads
	Sequential []string // tables that it reads from one end to the other, sorted
}

// Plans executes the queries again, and returns their plans.
func (q *Queries) Plans(t testing.TB) (plans []Plan) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, one := range q.all {
		var explained []byte
		if err := q.pool.QueryRow(t.Context(), "explain (analyze, buffers, format json) "+one.sql, one.args...).Scan(&explained); err != nil {
			t.Fatalf("pgtest: explain: %v", err)
		}
		var roots []struct{ Plan node }
		if err := json.Unmarshal(explained, &roots); err != nil {
			t.Fatalf("pgtest: explain: %v", err)
		}
		root := roots[0].Plan
		sequential := slices.Compact(slices.Sorted(slices.Values(root.sequential())))
		plans = append(plans, Plan{one.sql, root.Hit + root.Read, sequential})
	}
	return plans
}

// A node is a step of a plan, with the steps below it.
type node struct {
	Type  string `json:"Node Type"`
	Table string `json:"Relation Name"`
	Hit   int    `json:"Shared Hit Blocks"`
	Read  int    `json:"Shared Read Blocks"`
	Plans []node
}

func (n node) sequential() (tables []string) {
	if n.Type == "Seq Scan" {
		tables = append(tables, n.Table)
	}
	for _, below := range n.Plans {
		tables = append(tables, below.sequential()...)
	}
	return tables
}
