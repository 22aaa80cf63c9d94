package consumertest

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// Channel returns a channel on a connection of its own.
func (h *Harness) Channel() *amqp.Channel {
	h.t.Helper()
	return rabbittest.Queues(h.t, h.URL)
}

// Inspect returns what the broker says about queue, or an error if it is not there.
func (h *Harness) Inspect(queue string) (amqp.Queue, error) {
	conn, err := amqp.Dial(h.URL)
	if err != nil {
		return amqp.Queue{}, fmt.Errorf("dial the broker: %w", err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return amqp.Queue{}, fmt.Errorf("open a channel: %w", err)
	}
	return ch.QueueDeclarePassive(queue, true, false, false, false, nil)
}

// WaitSubscribed waits until every queue has n consumers.
func (h *Harness) WaitSubscribed(n int) {
	h.t.Helper()
	for _, key := range event.Keys() {
		queue := h.Topology.Queue(key)
		h.Eventually("consumers of "+queue, func() string {
			switch q, err := h.Inspect(queue); {
			case err != nil:
				return err.Error()
			case q.Consumers != n:
				return fmt.Sprintf("got %d, want %d", q.Consumers, n)
			}
			return ""
		})
	}
}

// Count returns the number that sql selects. It waits for a database that is
// away: after a restart the pool has connections of before.
func (h *Harness) Count(sql string, args ...any) int {
	h.t.Helper()
	var n int
	h.Eventually("the database", func() string {
		err := h.Pool.QueryRow(context.WithoutCancel(h.t.Context()), sql, args...).Scan(&n)
		if err != nil && pgpool.Classify(err) != pgpool.Away {
			h.t.Fatal(err)
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
	return n
}

// Effects returns how many messages have had their effect.
func (h *Harness) Effects() int {
	h.t.Helper()
	return h.Count(`select count(*) from processed_messages`)
}

// WaitEffects waits until n messages have had their effect.
func (h *Harness) WaitEffects(n int) {
	h.t.Helper()
	h.EventuallyEqual("messages with an effect", n, h.Effects)
}

// CheckEffects fails the test unless n messages had their effect, each once.
func (h *Harness) CheckEffects(n int) {
	h.t.Helper()
	if got := h.Count(`select count(*) from effects`); got != n {
		h.t.Errorf("%d effects, want %d", got, n)
	}
	if twice := h.Count(`select count(*) from (select from effects group by queue, message_id having count(*) > 1) as twice`); twice != 0 {
		h.t.Errorf("%d messages had their effect more than once", twice)
	}
}

// DeadLetters waits for n messages in the dead-letter queue of key and takes
// them out.
func (h *Harness) DeadLetters(key event.Key, n int) []amqp.Delivery {
	h.t.Helper()
	ch := h.Channel()
	var letters []amqp.Delivery
	queue := h.Topology.DeadLetterQueue(h.Topology.Queue(key))
	h.Eventually(queue, func() string {
		d, ok, err := ch.Get(queue, true)
		if err != nil {
			h.t.Fatal(err)
		}
		if ok {
			letters = append(letters, d)
		}
		if len(letters) < n {
			return fmt.Sprintf("%d dead letters, want %d", len(letters), n)
		}
		return ""
	})
	return letters
}

// Metric returns the sum of a counter or gauge over all consumers that were
// started.
func (h *Harness) Metric(name string) int {
	h.t.Helper()
	var sum float64
	for _, reg := range h.metrics {
		families, err := reg.Gather()
		if err != nil {
			h.t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() != name {
				continue
			}
			for _, m := range family.GetMetric() {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return int(sum)
}

// WaitAcked waits until n deliveries were acknowledged.
func (h *Harness) WaitAcked(n int) {
	h.t.Helper()
	h.EventuallyEqual("acknowledged deliveries", n, func() int { return h.Metric("consumer_messages_acked_total") })
}
