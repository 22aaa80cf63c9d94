// Package topology is what groups of consumers need at the broker: queues,
// exchanges, bindings and policies. It declares what is missing, compares what
// exists with what should, and says how to remedy the rest.
//
// It promises that nothing at the broker is ever deleted, and that no error
// shows a password.
package topology

import (
	"errors"
	"slices"
	"sync"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// deadLetterTTL is how long a dead letter lies in its queue when nothing
// archives it: 24 hours, in milliseconds. The contract fixes it.
const deadLetterTTL = 86_400_000

// A queueSpec is a queue as it should be. Arguments cannot be changed once
// the queue exists, so only what the contract fixes is among them.
type queueSpec struct {
	name string
	args amqp.Table
}

type exchangeSpec struct{ name, kind string }

type bindingSpec struct{ queue, exchange, key string }

// A Group is what reads a set of queues that nobody else reads. What fails in
// one group is put off and dead-lettered for that group alone.
type Group struct {
	Name   string // lower case, such as "webhooks"
	Queues []Queue
}

// A Queue is one that a group reads. It is a quorum queue with a dead-letter
// queue behind it.
type Queue struct {
	Name string      // without the prefix of the topology, such as "queue.webhooks"
	Keys []event.Key // of the messages that it gets
}

// ContractQueues returns the queues that the contract gives to what people are
// told, the most urgent one first.
func ContractQueues() []Queue {
	var queues []Queue
	for _, key := range event.Keys() {
		name := event.Topology{}.Queue(key)
		if i := slices.IndexFunc(queues, func(q Queue) bool { return q.Name == name }); i >= 0 {
			queues[i].Keys = append(queues[i].Keys, key)
		} else {
			queues = append(queues, Queue{Name: name, Keys: []event.Key{key}})
		}
	}
	return queues
}

// A Topology is everything that the groups of a process need at the broker.
type Topology struct {
	Names event.Topology

	groups    []Group
	delays    []time.Duration // of the retry queues, ascending
	exchanges []exchangeSpec
	queues    []queueSpec
	bindings  []bindingSpec
	policies  []rabbithole.Policy

	declared     chan struct{} // closed once everything was declared, or refused
	declaredOnce sync.Once
}

// New returns the topology of groups under names, in which messages can wait
// for each of delays before another attempt.
func New(names event.Topology, delays []time.Duration, groups ...Group) *Topology {
	t := &Topology{
		Names: names, groups: groups, delays: retryDelays(delays), policies: policies(names, groups), declared: make(chan struct{}),
		exchanges: []exchangeSpec{{names.Exchange(), amqp.ExchangeTopic}, {names.DeadLetterExchange(), amqp.ExchangeTopic}},
	}
	for _, q := range t.queuesOfGroups() {
		queue := names.Named(q.Name)
		dlq, dlqKey := names.DeadLetterQueue(queue), names.DeadLetterKey(queue)
		t.queues = append(t.queues,
			queueSpec{queue, amqp.Table{
				"x-queue-type":              "quorum",
				"x-dead-letter-exchange":    names.DeadLetterExchange(),
				"x-dead-letter-routing-key": dlqKey,
			}},
			deadLetterSpec(dlq))
		t.bindings = append(t.bindings, bindingSpec{dlq, names.DeadLetterExchange(), dlqKey})
		for _, key := range q.Keys {
			t.bindings = append(t.bindings, bindingSpec{queue, names.Exchange(), string(key)})
		}
	}
	for _, delay := range t.delays {
		name := t.RetryExchange(delay)
		t.exchanges = append(t.exchanges, exchangeSpec{name, amqp.ExchangeFanout})
		// What expires goes to the default exchange under the key that it was
		// published with: the name of the queue that it came from.
		t.queues = append(t.queues, queueSpec{name, amqp.Table{
			"x-queue-type":           "quorum",
			"x-message-ttl":          int32(delay.Milliseconds()),
			"x-dead-letter-exchange": "",
		}})
		t.bindings = append(t.bindings, bindingSpec{queue: name, exchange: name})
	}
	return t
}

func (t *Topology) queuesOfGroups() (queues []Queue) {
	for _, g := range t.groups {
		queues = append(queues, g.Queues...)
	}
	return queues
}

// retryDelays returns the delays that need a queue at the broker, each once. The
// standard ones are always among them, so that what waits in them is never
// left behind by a change of the configured ones.
func retryDelays(delays []time.Duration) []time.Duration {
	all := append([]time.Duration{time.Second, 5 * time.Second, 30 * time.Second}, delays...)
	slices.Sort(all)
	return slices.Compact(all)
}

// RetryExchange is the fanout exchange, and the queue behind it, in which a
// message waits for delay until it goes back to the queue named by its
// routing key.
func (t *Topology) RetryExchange(delay time.Duration) string { return t.Names.Retry(delay.String()) }

// DeadLetterQueues returns the dead-letter queue of each queue.
func (t *Topology) DeadLetterQueues() map[string]string {
	queues := make(map[string]string)
	for _, q := range t.queuesOfGroups() {
		queue := t.Names.Named(q.Name)
		queues[queue] = t.Names.DeadLetterQueue(queue)
	}
	return queues
}

// RetryQueues returns the queues in which messages wait for another attempt, by
// how long they do.
func (t *Topology) RetryQueues() map[time.Duration]string {
	queues := make(map[time.Duration]string)
	for _, delay := range t.delays {
		queues[delay] = t.RetryExchange(delay)
	}
	return queues
}

// Declare makes what is missing. It changes and deletes nothing: what exists
// and differs is an error that says how, and keeps nothing else from being
// declared.
func (t *Topology) Declare(conn *amqp.Connection) error {
	var faults []error
	try := func(err error) bool {
		if err != nil {
			faults = append(faults, err)
		}
		return !conn.IsClosed() // without a connection all others would fail, too
	}
	for _, e := range t.exchanges {
		if !try(rabbit.DeclareExchange(conn, e.name, e.kind)) {
			return errors.Join(faults...)
		}
	}
	for _, q := range t.queues {
		if !try(rabbit.DeclareQueue(conn, q.name, q.args)) {
			return errors.Join(faults...)
		}
	}
	for _, b := range t.bindings {
		if !try(rabbit.BindQueue(conn, b.queue, b.key, b.exchange)) {
			return errors.Join(faults...)
		}
	}
	t.declaredOnce.Do(func() { close(t.declared) })
	return errors.Join(faults...)
}

// DeclareDeadLetterQueue makes sure that the dead-letter queue called name
// exists, for a reader that may come before everything else is declared. One
// that exists with other arguments is read as it is: Declare reports it.
func (t *Topology) DeclareDeadLetterQueue(conn *amqp.Connection, name string) error {
	spec := deadLetterSpec(name)
	err := rabbit.DeclareQueue(conn, spec.name, spec.args)
	if _, differs := errors.AsType[*rabbit.MismatchError](err); differs {
		return nil
	}
	return err
}

func deadLetterSpec(dlq string) queueSpec {
	return queueSpec{dlq, amqp.Table{"x-message-ttl": int32(deadLetterTTL)}}
}
