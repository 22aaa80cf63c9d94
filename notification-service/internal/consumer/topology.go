package consumer

import (
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// deadLetterTTL is how long a dead letter lies in its queue when nothing
// archives it: 24 hours, in milliseconds. The contract fixes it.
const deadLetterTTL = 86_400_000

// A queueSpec is a queue as it should be. Arguments cannot be changed once
// the queue stands, so only what the contract fixes is among them.
type queueSpec struct {
	name string
	args amqp.Table
}

type exchangeSpec struct{ name, kind string }

type bindingSpec struct{ queue, exchange, key string }

// A blueprint is everything that the consumer needs at the broker.
type blueprint struct {
	exchanges []exchangeSpec
	queues    []queueSpec
	bindings  []bindingSpec
}

// plan returns the blueprint for the names of t.
func plan(t event.Topology, tuning Tuning) blueprint {
	b := blueprint{exchanges: []exchangeSpec{
		{t.Exchange(), amqp.ExchangeTopic}, {t.DeadLetterExchange(), amqp.ExchangeTopic},
	}}
	for _, key := range event.Keys() {
		queue := t.Queue(key)
		dlq, dlqKey := t.DeadLetterQueue(queue), t.DeadLetterKey(queue)
		b.queues = append(b.queues,
			queueSpec{queue, amqp.Table{
				"x-queue-type":              "quorum",
				"x-dead-letter-exchange":    t.DeadLetterExchange(),
				"x-dead-letter-routing-key": dlqKey,
			}},
			deadLetterSpec(dlq))
		b.bindings = append(b.bindings,
			bindingSpec{queue, t.Exchange(), string(key)},
			bindingSpec{dlq, t.DeadLetterExchange(), dlqKey})
	}
	for _, delay := range tuning.Tiers() {
		name := t.Retry(tierName(delay))
		b.exchanges = append(b.exchanges, exchangeSpec{name, amqp.ExchangeFanout})
		// What expires goes to the default exchange under the key that it was
		// published with: the name of the queue that it came from.
		b.queues = append(b.queues, queueSpec{name, amqp.Table{
			"x-queue-type":           "quorum",
			"x-message-ttl":          int32(delay.Milliseconds()),
			"x-dead-letter-exchange": "",
		}})
		b.bindings = append(b.bindings, bindingSpec{queue: name, exchange: name})
	}
	return b
}

func deadLetterSpec(dlq string) queueSpec {
	return queueSpec{dlq, amqp.Table{"x-message-ttl": int32(deadLetterTTL)}}
}

// DeadLetterQueues returns the dead-letter queue of each queue.
func DeadLetterQueues(t event.Topology) map[string]string {
	queues := make(map[string]string)
	for _, key := range event.Keys() {
		queues[t.Queue(key)] = t.DeadLetterQueue(t.Queue(key))
	}
	return queues
}

// DeclareDeadLetterQueue makes sure that the dead-letter queue called name
// stands, for whoever reads it before a Consumer has declared everything. One
// that stands otherwise than it should is left to that Consumer's complaint.
func DeclareDeadLetterQueue(conn *amqp.Connection, name string) error {
	spec := deadLetterSpec(name)
	err := rabbit.DeclareQueue(conn, spec.name, spec.args)
	if _, differs := errors.AsType[*rabbit.MismatchError](err); differs {
		return nil
	}
	return err
}

// declare makes what is missing. It changes and deletes nothing: what stands
// and differs is an error that says how.
func declare(conn *amqp.Connection, t event.Topology, tuning Tuning) error {
	b := plan(t, tuning)
	for _, e := range b.exchanges {
		if err := rabbit.DeclareExchange(conn, e.name, e.kind); err != nil {
			return err
		}
	}
	for _, q := range b.queues {
		if err := rabbit.DeclareQueue(conn, q.name, q.args); err != nil {
			return err
		}
	}
	for _, b := range b.bindings {
		if err := rabbit.BindQueue(conn, b.queue, b.key, b.exchange); err != nil {
			return err
		}
	}
	return nil
}
