package rigtest

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
)

// Channel returns a channel on a connection of its own.
func (r *Rig) Channel() *amqp.Channel {
	r.t.Helper()
	conn, err := amqp.Dial(r.URL)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		r.t.Fatal(err)
	}
	return ch
}

// Inspect returns what the broker says about queue, if it is there.
func (r *Rig) Inspect(queue string) (amqp.Queue, bool) {
	conn, err := amqp.Dial(r.URL)
	if err != nil {
		return amqp.Queue{}, false
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return amqp.Queue{}, false
	}
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	return q, err == nil
}

// WaitSubscribed waits until every queue has n consumers.
func (r *Rig) WaitSubscribed(n int) {
	r.t.Helper()
	for _, key := range event.Keys() {
		queue := r.Topology.Queue(key)
		r.EventuallyEqual("consumers of "+queue, n, func() int {
			q, _ := r.Inspect(queue)
			return q.Consumers
		})
	}
}

// Count returns the number that sql selects.
func (r *Rig) Count(sql string, args ...any) int {
	r.t.Helper()
	var n int
	if err := r.Pool.QueryRow(context.WithoutCancel(r.t.Context()), sql, args...).Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// Effects returns how many messages have had their effect.
func (r *Rig) Effects() int {
	r.t.Helper()
	return r.Count(`select count(*) from processed_messages`)
}

// WaitEffects waits until n messages have had their effect.
func (r *Rig) WaitEffects(n int) {
	r.t.Helper()
	r.EventuallyEqual("messages with an effect", n, r.Effects)
}

// CheckStreams fails the test unless the streams hold n notifications,
// numbered without a gap.
func (r *Rig) CheckStreams(n int) {
	r.t.Helper()
	if got := r.Count(`select count(*) from notifications`); got != n {
		r.t.Errorf("%d notifications, want %d", got, n)
	}
	if bad := r.Count(`select count(*) from streams s where last_seq <> (
		select count(*) from notifications where stream_id = s.id) or last_seq <> coalesce((
		select max(seq) from notifications where stream_id = s.id), 0)`); bad != 0 {
		r.t.Errorf("%d streams are not numbered from 1 without a gap", bad)
	}
}

// DeadLetters waits for n messages in the dead-letter queue of key and takes
// them out.
func (r *Rig) DeadLetters(key event.Key, n int) []amqp.Delivery {
	r.t.Helper()
	ch := r.Channel()
	var letters []amqp.Delivery
	queue := r.Topology.DeadLetterQueue(r.Topology.Queue(key))
	r.Eventually(queue, func() string {
		d, ok, err := ch.Get(queue, true)
		if err != nil {
			r.t.Fatal(err)
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
func (r *Rig) Metric(name string) int {
	r.t.Helper()
	var sum float64
	for _, reg := range r.metrics {
		families, err := reg.Gather()
		if err != nil {
			r.t.Fatal(err)
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
func (r *Rig) WaitAcked(n int) {
	r.t.Helper()
	r.EventuallyEqual("acknowledged deliveries", n, func() int { return r.Metric("rabbitmq_messages_acked_total") })
}
