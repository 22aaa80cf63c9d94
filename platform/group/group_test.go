package group_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/group"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/platform/testing/testlog"
	"github.com/cityconnect/cityconnect/platform/topology"
)

//go:embed schema.sql
var schema string

// another returns a pool on a database that has the tables of schema.sql, and
// those of the tests, in a schema of their own.
func another(t *testing.T) *pgxpool.Pool {
	t.Helper()
	shared := pgtest.Notification(t)
	if _, err := shared.Exec(t.Context(), `create schema another`); err != nil {
		t.Fatal(err)
	}
	cfg := shared.Config()
	cfg.ConnConfig.RuntimeParams["search_path"] = "another"
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(t.Context()), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	return pool
}

// start runs groups as a process of its own would, until the test ends.
func start(t *testing.T, pool *pgxpool.Pool, url string, groups ...consumer.Group) *group.Runner {
	t.Helper()
	cfg := consumer.Defaults()
	cfg.MaxAttempts = 2
	runner, err := group.New(cfg, group.Dependencies{
		Database: pool, RabbitURL: url, ManagementURL: rabbittest.SharedManagementURL(t), Log: testlog.New(t), Metrics: prometheus.NewRegistry(),
	}, groups...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- runner.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return runner
}

// A group that fails while another succeeds on the same messages: each has its
// effect once in the one group, and is put off and dead-lettered for the other
// alone. The other is a service of its own, with a database that has nothing
// but schema.sql.
func TestAGroupFailsForItself(t *testing.T) {
	t.Parallel()
	const n, bad = 100, 20
	h := consumertest.New(t, pgtest.Notification(t))
	h.Start()
	h.WaitSubscribed(1)
	votes := h.Votes(n, "alice")
	failing := make(map[string]bool)
	for _, m := range votes[:bad] {
		failing[m.ID] = true
	}

	pool := another(t)
	if _, err := pool.Exec(t.Context(), `create table counted (message_id text not null)`); err != nil {
		t.Fatal(err)
	}
	const queue = "queue.counts"
	counts := consumer.Group{
		Name:   "counts",
		Queues: []topology.Queue{{Name: queue, Keys: []event.Key{event.VoteReceivedKey, event.StatusUpdatedKey}}},
		Effect: consumer.InTx(pool, func(ctx context.Context, tx pgx.Tx, messages []consumer.Message) error {
			for _, m := range messages {
				if _, err := tx.Exec(ctx, `insert into counted values ($1)`, m.ID); err != nil {
					return err
				}
				if failing[m.ID] {
					return &pgconn.PgError{Code: "55P03"}
				}
			}
			return nil
		}),
	}
	runner := start(t, pool, h.URL, counts)
	h.EventuallyEqual("consumers of "+queue, consumer.Defaults().Workers, func() int {
		q, _ := h.Inspect(queue)
		return q.Consumers
	})
	h.Publish(votes...)
	h.Publish(h.Status("bob"), h.Status("bob")) // the other kind that the queue is bound for
	h.WaitEffects(n + 2)
	count := func(sql string, args ...any) int { return count(t, pool, sql, args...) }
	h.EventuallyEqual("open dead letters of the failing group", bad, func() int {
		return count(`select count(*) from dead_letters where queue = $1 and state = 'open' and error_class = 'transient'`, queue)
	})
	h.EventuallyEqual("effects in the failing group", n+2-bad, func() int { return count(`select count(*) from counted`) })
	if twice := count(`select count(*) - count(distinct message_id) from counted`); twice != 0 {
		t.Errorf("%d effects were doubled in the failing group", twice)
	}
	h.CheckEffects(n + 2)
	if got := h.Metric("consumer_messages_acked_total"); got != n+2 {
		t.Errorf("the other group acknowledged %d deliveries, want %d: a retry reached it", got, n+2)
	}
	if got := h.Metric("consumer_messages_retried_total"); got != 0 {
		t.Errorf("the other group had %d retries, want none", got)
	}
	if got := h.Count(`select count(*) from dead_letters`); got != 0 {
		t.Errorf("the other group has %d dead letters, want none", got)
	}
	pools := runner.Consumer.Pools()
	if len(pools) != 1 || pools[0].Queue != queue || !slices.Equal(pools[0].Types, []event.Key{event.VoteReceivedKey, event.StatusUpdatedKey}) {
		t.Errorf("pools %+v, want that of %s", pools, queue)
	}
	// Settings of the failing group's workers are its own, too.
	if _, err := runner.Consumer.ChangePool(t.Context(), "operator", queue, consumer.PoolChange{Concurrency: new(1)}); err != nil {
		t.Fatal(err)
	}
	h.EventuallyEqual("consumers after the change", 1, func() int {
		q, _ := h.Inspect(queue)
		return q.Consumers
	})
	runner.Checker.Check(t.Context())
	if findings := runner.Checker.Findings(); len(findings) != 0 {
		t.Errorf("the checker finds %v, want nothing", findings)
	}
	t.Logf("%d messages to two groups: %d and %d effects, 0 and %d dead letters", n+2, h.Effects(), n+2-bad, bad)
}

// A queue of another process is shown once that process has run, and its pool
// can be changed. Nobody else declares it before it is wanted: what nobody reads
// would fill.
func TestAGroupElsewhere(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	h := consumertest.On(t, rabbittest.Vhost(t), pool)
	const queue = "queue.later"
	var wanted atomic.Bool
	later := consumer.Group{Name: "later", Queues: []topology.Queue{{
		Name: queue, Keys: []event.Key{event.VoteReceivedKey},
		Wanted: func(context.Context) (bool, error) { return wanted.Load(), nil },
	}}}
	here := consumer.Group{Name: "notifications", Queues: topology.ContractQueues(), Effect: consumertest.Effect(pool)}
	runner := start(t, pool, h.URL, here, later)
	h.WaitSubscribed(consumer.Defaults().Workers)
	h.Publish(h.Vote("alice"))
	h.WaitEffects(1)
	own := len(here.Queues)
	if n := len(runner.Consumer.Pools()); n != own {
		t.Errorf("%d pools before the other process has run, want %d", n, own)
	}
	if _, err := h.Inspect(queue); !isNotFound(err) {
		t.Errorf("%s was declared by a process that does not read it (%v)", queue, err)
	}

	wanted.Store(true)
	conn, err := amqp.Dial(h.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := topology.New(event.Topology{}, nil, topology.Group{Name: later.Name, Queues: later.Queues}).Declare(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	h.Publish(h.Votes(3, "alice")...)
	h.WaitEffects(4)
	h.Eventually("the pool elsewhere", func() string {
		if pools := runner.Consumer.Pools(); len(pools) != own+1 || pools[own].Depth != 3 {
			return fmt.Sprintf("pools %+v", pools)
		}
		return ""
	})
	changed, err := runner.Consumer.ChangePool(t.Context(), "operator", queue, consumer.PoolChange{Paused: new(true)})
	if err != nil || !changed.Elsewhere || changed.Queue != queue || !changed.Paused || changed.Workers != 0 {
		t.Errorf("the pool after a pause: %+v (error %v)", changed, err)
	}
}

// schema.sql makes what the migrations of the notifications database made.
func TestSchemaIsThatOfTheMigrations(t *testing.T) {
	t.Parallel()
	pool := another(t)
	describe := func(schema string) []string {
		rows, err := pool.Query(t.Context(), `
			select format('%s.%s %s %s %s', table_name, column_name, data_type, is_nullable, column_default)
			from information_schema.columns
			where table_schema = $1 and table_name in (select tablename from pg_tables where schemaname = 'another')
			union all
			select replace(indexdef, ' ' || $1 || '.', ' ') from pg_indexes
			where schemaname = $1 and tablename in (select tablename from pg_tables where schemaname = 'another')
			union all
			select format('%s %s', c.conrelid::regclass::text, replace(pg_get_constraintdef(c.oid), $1 || '.', ''))
			from pg_constraint c join pg_class r on r.oid = c.conrelid join pg_namespace n on n.oid = r.relnamespace
			where n.nspname = $1 and r.relname in (select tablename from pg_tables where schemaname = 'another')
			order by 1`, schema)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		for i := range lines {
			lines[i] = strings.NewReplacer("public.", "", "another.", "").Replace(lines[i])
		}
		slices.Sort(lines)
		return lines
	}
	migrated, own := describe("public"), describe("another")
	if !slices.Equal(migrated, own) || len(own) < 50 {
		for _, line := range migrated {
			if !slices.Contains(own, line) {
				t.Errorf("only the migrations have: %s", line)
			}
		}
		for _, line := range own {
			if !slices.Contains(migrated, line) {
				t.Errorf("only schema.sql has: %s", line)
			}
		}
		t.Fatalf("%d and %d lines", len(migrated), len(own))
	}
}

// CONTRIBUTING.md shows the effect and the group of the example, which is
// compiled.
func TestContributingShowsTheExample(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(manual), "**… a group of consumers**")
	_, after, begun := strings.Cut(after, "```go\n")
	block, _, ended := strings.Cut(after, "```")
	if !found || !begun || !ended {
		t.Fatal("CONTRIBUTING.md has no Go code below … a group of consumers")
	}
	if !strings.Contains(string(source), block) {
		t.Errorf("example_test.go has no part that is\n%s", block)
	}
	if n := strings.Count(block, "\n"); n >= 60 || n < 10 {
		t.Errorf("CONTRIBUTING.md shows %d lines, want fewer than 60", n)
	}
}

func isNotFound(err error) bool {
	answer, ok := errors.AsType[*amqp.Error](err)
	return ok && answer.Code == amqp.NotFound
}
