package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// lastQuery keeps the last query of a connection pool.
type lastQuery struct {
	mu   sync.Mutex
	sql  string
	args []any
}

func (l *lastQuery) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sql, l.args = q.SQL, q.Args
	return ctx
}

func (l *lastQuery) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Of many reports, a list without a price reads a few, whatever its filter and order.
func TestListsThatReadManyAreCostly(t *testing.T) {
	t.Parallel()
	cfg, err := pgxpool.ParseConfig(pgtest.Report(t).Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	last := new(lastQuery)
	cfg.ConnConfig.Tracer = last
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	fillCity(t, pool)
	keys, err := event.ParseKeyring(recipientKey)
	if err != nil {
		t.Fatal(err)
	}
	db := postgres.NewDB(pool, keys, func(shards.Set) {}, postgres.Rules{})
	reports, workbench := postgres.NewReports(db), postgres.NewWorkbench(db)
	filters, forOfficials := listFilters(), officialsFilters()
	const limit, few = 20, 400
	check := func(name string, filter report.Filter, read func() error, times int) {
		t.Helper()
		if err := read(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if blocks := last.blocks(t, pool); blocks > times*few && !filter.Costly() {
			t.Errorf("%s: %d blocks are read without a price, want at most %d", name, blocks, times*few)
		}
	}
	for name, filter := range filters {
		for _, filter.Order = range []report.Order{report.Newest, report.Oldest, report.Changed, report.Score} {
			check(fmt.Sprintf("list of %s, %s", name, filter.Order), filter, func() error {
				_, err := reports.List(t.Context(), filter, nil, limit, "")
				return err
			}, 1)
		}
	}
	for _, some := range []map[string]report.Filter{filters, forOfficials} {
		for name, filter := range some {
			if filter.Reporter != "" {
				continue // the queue has none
			}
			filter.Official = true
			for _, filter.Order = range []report.Order{report.Newest, report.Oldest, report.Changed, report.Score, report.Due} {
				check(fmt.Sprintf("queue of %s, %s", name, filter.Order), filter, func() error {
					_, err := workbench.Queue(t.Context(), filter, nil, limit)
					return err
				}, 1)
			}
		}
	}
	// All are at one place, and each of the page is compared with some of them.
	page, err := workbench.Queue(t.Context(), report.Filter{Official: true, Statuses: []report.Status{report.Pending}}, nil, limit)
	if err != nil {
		t.Fatal(err)
	}
	check("likely duplicates", report.Filter{}, func() error { return workbench.MarkLikely(t.Context(), page.Tasks) }, limit)
}

// fillCity files 20,000 reports. Category 2 and the status in_progress are rare, and
// never together; so is what an official has.
func fillCity(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, sql := range []string{
		`insert into officials (id, name) values ('olga', 'Olga')`,
		`insert into reports (id, title, description, category_id, latitude, longitude, privacy_level, status, score, version, created_at, updated_at, hidden_reason, assignee_id, due_at)
		 select gen_random_uuid(), 'Dark lamp', 'at the crossing', case when i % 1000 = 1 then 2 when i % 2 = 0 then 1 else 3 end, -6.91, 107.6, 'public',
			case when i % 1000 = 2 then 'in_progress' when i % 3 = 0 then 'pending' else 'resolved' end, i % 50, 1,
			now() - i * interval '5 minutes', now() - i * interval '4 minutes', null,
			case when i % 1000 = 3 then 'olga' end, now() - i * interval '3 minutes'
		 from generate_series(1, 20000) i`,
		`insert into reporters (report_id, reporter_id, reporter_name)
		 select id, 'user ' || row_number() over () % 500, 'Ann' from reports`,
		`vacuum analyze reports`, `vacuum analyze reporters`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// blocks returns how many blocks the last query reads.
func (l *lastQuery) blocks(t *testing.T, pool *pgxpool.Pool) int {
	t.Helper()
	l.mu.Lock()
	sql, args := l.sql, l.args
	l.mu.Unlock()
	var explained []byte
	if err := pool.QueryRow(t.Context(), "explain (analyze, buffers, format json) "+sql, args...).Scan(&explained); err != nil {
		t.Fatal(err)
	}
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(explained, &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

// listFilters are those of everybody.
func listFilters() map[string]report.Filter {
	return map[string]report.Filter{
		"all":                         {},
		"a status":                    {Statuses: []report.Status{report.Pending}},
		"a rare status":               {Statuses: []report.Status{report.InProgress}},
		"a status of none":            {Statuses: []report.Status{report.Rejected}},
		"two statuses":                {Statuses: []report.Status{report.Pending, report.InProgress}},
		"two statuses, one of them":   {Statuses: []report.Status{report.Rejected, report.InProgress}},
		"a category":                  {Categories: []int32{1}},
		"two categories":              {Categories: []int32{1, 2}},
		"a rare category":             {Categories: []int32{2}},
		"a category of none":          {Categories: []int32{999}},
		"two categories of none":      {Categories: []int32{998, 999}},
		"a status of a category":      {Statuses: []report.Status{report.Pending}, Categories: []int32{1}},
		"a rare status of a category": {Statuses: []report.Status{report.InProgress}, Categories: []int32{1}},
		"a status of a rare category": {Statuses: []report.Status{report.Pending}, Categories: []int32{2}},
		"rare ones":                   {Statuses: []report.Status{report.InProgress}, Categories: []int32{2}},
		"rare ones of many":           {Statuses: []report.Status{report.InProgress, report.Rejected}, Categories: []int32{2, 999}},
		"mine":                        {Reporter: "user 7"},
		"mine in a rare category":     {Reporter: "user 7", Categories: []int32{2}},
		"words":                       {Words: []string{"lamp"}},
		"a box":                       {Box: &report.Box{South: -7, North: -6, West: 107, East: 108}},
	}
}

// officialsFilters are those that only the queue has.
func officialsFilters() map[string]report.Filter {
	return map[string]report.Filter{
		"a department":          {Departments: []int32{1}},
		"departments of none":   {Departments: []int32{999}},
		"an official":           {Assignee: new("olga")},
		"an official with none": {Assignee: new("omar")},
		"nobody":                {Assignee: new("")},
		"a time of none":        {FiledFrom: time.Now().Add(time.Hour)},
		"an early time":         {FiledTo: time.Now().AddDate(0, -11, 0)},
		"no time at all":        {FiledTo: time.Now().AddDate(-5, 0, 0)},
		"overdue":               {Overdue: 1},
		"hidden":                {Hidden: true},
		"new comments":          {NewComments: true},
	}
}
