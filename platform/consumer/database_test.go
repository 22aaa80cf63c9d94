package consumer_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// A counting effect counts how often it was asked.
type counting struct {
	consumer.Effect
	asked atomic.Int64
}

func (c *counting) Apply(ctx context.Context, queue string, batch []consumer.Message) (int, error) {
	c.asked.Add(1)
	return c.Effect.Apply(ctx, queue, batch)
}

// A databaseHarness has a database server that the test may break, and a consumer on
// it.
type databaseHarness struct {
	*consumertest.Harness
	server    *pgtest.Server
	effect    *counting
	published int
}

// patientApply is far above what a transaction takes on a busy machine: one that
// is over while the database answers is the message's own failure.
const patientApply = 3 * time.Second

func newDatabaseHarness(t *testing.T, applyTimeout time.Duration) *databaseHarness {
	t.Helper()
	server := pgtest.StartServer(t)
	pool, err := pgxpool.New(t.Context(), server.Create(migrations.Notification))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b := &databaseHarness{Harness: consumertest.On(t, rabbittest.Vhost(t), pool), server: server}
	b.effect = &counting{Effect: consumertest.Effect(b.Pool)}
	b.Start(consumertest.WithEffect(b.effect), consumertest.WithConfig(func(c *consumer.Config) { c.ApplyTimeout = applyTimeout }))
	b.WaitSubscribed(1)
	return b
}

func (b *databaseHarness) publish(n int) {
	b.Publish(b.Votes(n, "alice")...)
	b.published += n
}

// outlast waits until the consumer has tried more often than any message has
// attempts, quick tries included.
func (b *databaseHarness) outlast() {
	b.EventuallyEqual("database up", 0, func() int { return b.Metric("consumer_database_up") })
	before := b.effect.asked.Load()
	b.Eventually("tries", func() string {
		if b.effect.asked.Load() < before+4 {
			return "too few"
		}
		return ""
	})
}

// recovered checks that everything had its effect and no attempt was spent.
func (b *databaseHarness) recovered(t *testing.T, after string) {
	t.Helper()
	b.WaitEffects(b.published)
	b.CheckEffects(b.published)
	retried, dead := b.Metric("consumer_messages_retried_total"), b.Metric("consumer_messages_dead_lettered_total")
	t.Logf("%s: %d messages, %d effects, %d retries, %d dead letters", after, b.published, b.Effects(), retried, dead)
	if retried != 0 || dead != 0 {
		t.Errorf("%s: %d retries and %d dead letters, want none: the database was away", after, retried, dead)
	}
}

func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	b := newDatabaseHarness(t, patientApply)
	b.publish(200)
	for _, fault := range []struct {
		name        string
		down, bring func()
	}{
		{"stopped", b.server.Stop, b.server.Start},
		{"killed", b.server.Kill, b.server.Start},
		{"frozen", b.server.Pause, b.server.Resume},
	} {
		fault.down()
		b.publish(200)
		b.outlast()
		b.publish(100)
		fault.bring()
		b.recovered(t, fault.name)
	}
}

func TestDatabaseRestartedUnderLoad(t *testing.T) {
	t.Parallel()
	b := newDatabaseHarness(t, patientApply)
	for range 3 {
		b.publish(500)
		b.server.Stop()
		b.server.Start()
	}
	b.recovered(t, "restarted three times")
}

func TestDatabaseLocked(t *testing.T) {
	t.Parallel()
	b := newDatabaseHarness(t, 500*time.Millisecond)
	tx, err := b.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `lock table effects in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	b.publish(100)
	b.Eventually("retries", func() string {
		if b.Metric("consumer_messages_retried_total") < 5 {
			return "too few"
		}
		return ""
	})
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	dlq := b.Topology.DeadLetterQueue(b.Topology.Queue(event.VoteReceivedKey))
	b.EventuallyEqual("effects and dead letters", b.published, func() int {
		q, _ := b.Inspect(dlq)
		return b.Effects() + q.Messages
	})
	q, _ := b.Inspect(dlq)
	b.CheckEffects(b.published - q.Messages)
	t.Logf("%d messages against a locked table: %d effects, %d dead letters, %d retries", b.published, b.Effects(), q.Messages,
		b.Metric("consumer_messages_retried_total"))
}
