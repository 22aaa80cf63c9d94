package consumer_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// newLongOutage returns a consumer on servers of its own. The broker ends a subscription
// that has a message in hand for twice as long as one is to stay there, which is six times
// the time of an effect, and gives up a message at its second delivery after the first.
func newLongOutage(t *testing.T, options ...consumertest.Option) (*consumertest.Harness, *pgtest.Server) {
	t.Helper()
	broker, database := rabbittest.StartServer(t), pgtest.StartServer(t)
	const effect = 2 * time.Second // a busy machine takes one for ten messages
	broker.SetConsumerTimeout(12 * effect)
	broker.SetDeliveryLimit("/", `^queue\.[a-z_]+$`, 1)
	pool, err := pgxpool.New(t.Context(), database.Create(migrations.Notification))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	h := consumertest.On(t, broker.URL(), pool)
	h.Start(append(options, consumertest.WithConfig(func(c *consumer.Config) { c.ApplyTimeout = effect }))...)
	h.WaitSubscribed(1)
	return h, database
}

// While the database is away for long, nothing is in hand: an outage of any length
// counts one delivery of a message at the most, and makes no dead letter.
func TestLongOutageOfTheDatabase(t *testing.T) {
	t.Parallel()
	h, server := newLongOutage(t)
	published := 0
	for _, fault := range []struct {
		name        string
		down, bring func()
	}{
		{"stopped", server.Stop, server.Start},
		{"frozen", server.Pause, server.Resume},
	} {
		const n = 30 // more than the workers have in hand
		fault.down()
		h.Publish(h.Votes(n, "alice")...)
		published += n
		queue := h.Topology.Queue(h.Vote("").Key)
		h.Eventually(fault.name, func() string {
			q, err := h.Inspect(queue)
			if err != nil {
				return err.Error()
			}
			if q.Messages != n || q.Consumers != 0 || h.Metric("consumer_database_up") != 0 {
				return fmt.Sprintf("%d of %d messages wait in the queue, which has %d consumers", q.Messages, n, q.Consumers)
			}
			return ""
		})
		fault.bring()
		h.WaitEffects(published)
		h.CheckEffects(published)
		checkNoneGivenUp(t, h, fault.name)
		h.WaitSubscribed(1)
	}
}

// checkNoneGivenUp fails the test if the broker has ended a subscription, or if a
// message has used an attempt or is a dead letter.
func checkNoneGivenUp(t *testing.T, h *consumertest.Harness, fault string) {
	t.Helper()
	for _, metric := range []string{"consumer_resubscriptions_total", "consumer_messages_retried_total", "consumer_messages_dead_lettered_total"} {
		if n := h.Metric(metric); n != 0 {
			t.Errorf("%s: %s is %d, want 0", fault, metric, n)
		}
	}
	dead, err := h.Inspect(h.Topology.DeadLetterQueue(h.Topology.Queue(h.Vote("").Key)))
	if err != nil || dead.Messages != 0 {
		t.Errorf("%s: %d dead letters, error %v; want none", fault, dead.Messages, err)
	}
}

// A dependency is away while the database answers, such as a virus scanner.
type dependency struct {
	consumer.Effect
	away atomic.Bool
}

func (d *dependency) Apply(ctx context.Context, queue string, batch []consumer.Message) (int, error) {
	if d.away.Load() {
		return 0, &failure.Error{Class: failure.Away, Text: "away"}
	}
	return d.Effect.Apply(ctx, queue, batch)
}

// While something else is away for long, only messages can find out whether it is back.
// They are postponed, more often than the broker would deliver them again.
func TestLongOutageOfADependency(t *testing.T) {
	t.Parallel()
	var effect dependency
	effect.away.Store(true)
	h, _ := newLongOutage(t, func(_ *consumer.Config, d *consumer.Dependencies, g *consumer.Group) {
		effect.Effect = consumertest.Effect(d.Database)
		g.Effect = &effect
	})
	const n = 5 // fewer than the prefetch, so that all are in hand each time
	h.Publish(h.Votes(n, "alice")...)
	h.Eventually("postponed three times", func() string {
		if postponed := h.Metric("consumer_messages_postponed_total"); postponed < 3*n {
			return fmt.Sprint(postponed)
		}
		return ""
	})
	effect.away.Store(false)
	h.WaitEffects(n)
	h.CheckEffects(n)
	checkNoneGivenUp(t, h, "away")
}

// slow effects take until they are released.
type slow struct {
	consumer.Effect
	released chan struct{}
}

func (s *slow) Apply(ctx context.Context, queue string, batch []consumer.Message) (int, error) {
	select {
	case <-s.released:
	case <-ctx.Done():
	}
	return s.Effect.Apply(ctx, queue, batch)
}

// A broker that ends a subscription because a message takes too long closes the channel,
// or since 4.3 cancels the consumer, which finishes what it has in hand. The worker
// subscribes again, and each message has its effect once.
func TestConsumerTimeout(t *testing.T) {
	t.Parallel()
	broker := rabbittest.StartServer(t)
	broker.SetConsumerTimeout(5 * time.Second)
	broker.SetDeliveryLimit("/", `^queue\.[a-z_]+$`, 1)
	h := consumertest.On(t, broker.URL(), pgtest.Notification(t))
	effect := &slow{released: make(chan struct{})}
	h.Start(func(c *consumer.Config, d *consumer.Dependencies, g *consumer.Group) {
		c.Workers, c.ApplyTimeout = 1, time.Minute
		effect.Effect = consumertest.Effect(d.Database)
		g.Effect = effect
	})
	h.WaitSubscribed(1)
	const n = 5 // fewer than the prefetch, so that all are in hand
	h.Publish(h.Votes(n, "alice")...)
	queue := h.Topology.Queue(h.Vote("").Key)
	h.Eventually("the broker ends the subscription", func() string {
		q, err := h.Inspect(queue)
		if err != nil || q.Consumers != 0 && h.Metric("consumer_resubscriptions_total") == 0 {
			return fmt.Sprintf("%d consumers, error %v", q.Consumers, err)
		}
		return ""
	})
	close(effect.released)
	h.WaitEffects(n)
	h.WaitSubscribed(1)
	h.Publish(h.Votes(n, "alice")...)
	h.WaitEffects(2 * n)
	h.CheckEffects(2 * n)
	dead, err := h.Inspect(h.Topology.DeadLetterQueue(queue))
	if err != nil || dead.Messages != 0 {
		t.Errorf("%d dead letters, error %v; want none", dead.Messages, err)
	}
}
