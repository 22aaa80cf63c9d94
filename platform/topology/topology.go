// Package topology is what groups of consumers need at the broker: queues,
// exchanges, bindings and policies. It declares what is missing, compares what
// exists with what should, and says how to remedy the rest.
//
// It promises that nothing at the broker is ever deleted, and that no error
// shows a password.
package topology

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// deadLetterTTL is how long a dead letter lies in its queue when nothing
// archives it: 24 hours, in milliseconds. The contract fixes it.
const deadLetterTTL = 86_400_000

// askTimeout is how long a queue's declaration waits for whether it is wanted.
const askTimeout = 2 * time.Second

// A queueSpec is a queue as it should be. Arguments cannot be changed once
// the queue exists, so only what the contract fixes is among them.
type queueSpec struct {
	name      string
	args      amqp.Table
	elsewhere bool // another process reads it, and says if it differs
}

type exchangeSpec struct{ name, kind string }

type bindingSpec struct{ queue, exchange, key string }

// A Group reads a set of queues that nobody else reads. Failed messages of one group
// are put off and dead-lettered for that group alone.
type Group struct {
	Name   string // lower case, such as "webhooks"
	Queues []Queue
	// Elsewhere says that another process reads them. This one declares them all
	// the same, where they are wanted: if a message is for several queues and only
	// one of them is there, the broker takes it, and the others never get it.
	Elsewhere bool
}

// A Queue is one that a group reads. It is a quorum queue with a dead-letter
// queue behind it.
type Queue struct {
	Name string      // without the prefix of the topology, such as "queue.webhooks"
	Keys []event.Key // of the messages that it gets
	// Wanted reports whether anybody has a use for these messages. It is called
	// whenever the queue is declared or checked; nil means always. A queue that is
	// not wanted is not bound, so that the broker need not keep messages that its
	// reader would drop. A queue that is bound stays bound.
	Wanted func(ctx context.Context) (bool, error)
}

// ContractQueues returns the contract's queues of messages that notify people, the
// most urgent one first.
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

	delays   []time.Duration // of the retry queues, ascending
	always   needed
	queues   []*groupQueue // of the groups, in their order
	policies []rabbithole.Policy

	declared     chan struct{} // closed once everything was declared, or refused
	declaredOnce sync.Once

	look atomic.Pointer[func(context.Context)] // before a repair
}

// needed is what should exist at the broker.
type needed struct {
	exchanges []exchangeSpec
	queues    []queueSpec
	routes    []bindingSpec // by which queues get messages, in the order of the groups
	bindings  []bindingSpec // all others
}

// A groupQueue is a queue of a group, with what belongs to it.
type groupQueue struct {
	name      string // at the broker
	elsewhere bool   // another process reads it
	queues    []queueSpec
	routes    []bindingSpec // by which it gets its messages
	dead      bindingSpec   // by which its dead-letter queue does

	wanted   func(ctx context.Context) (bool, error) // nil is always
	known    atomic.Bool                             // it was wanted at the last check
	demanded atomic.Bool                             // somebody is about to want it
}

// New returns the topology of groups under names, in which messages can wait
// for each of delays before another attempt. Of groups that get the same
// messages, the one that must not miss any comes first: see Declare.
func New(names event.Topology, delays []time.Duration, groups ...Group) *Topology {
	own := slices.DeleteFunc(slices.Clone(groups), func(g Group) bool { return g.Elsewhere })
	t := &Topology{Names: names, delays: retryDelays(delays), policies: policies(names, own), declared: make(chan struct{})}
	t.always.exchanges = []exchangeSpec{{names.Exchange(), amqp.ExchangeTopic}, {names.DeadLetterExchange(), amqp.ExchangeTopic}}
	for _, g := range groups {
		for _, q := range g.Queues {
			t.queues = append(t.queues, newGroupQueue(names, q, g.Elsewhere))
		}
	}
	for _, delay := range t.delays {
		name := t.RetryExchange(delay)
		t.always.exchanges = append(t.always.exchanges, exchangeSpec{name, amqp.ExchangeFanout})
		// An expired message goes to the default exchange under the key that it was
		// published with: the name of the queue that it came from.
		t.always.queues = append(t.always.queues, queueSpec{name, amqp.Table{
			"x-queue-type":           "quorum",
			"x-message-ttl":          int32(delay.Milliseconds()),
			"x-dead-letter-exchange": "",
		}, false})
		t.always.bindings = append(t.always.bindings, bindingSpec{queue: name, exchange: name})
	}
	return t
}

func newGroupQueue(names event.Topology, q Queue, elsewhere bool) *groupQueue {
	name := names.Named(q.Name)
	dlq, dlqKey := names.DeadLetterQueue(name), names.DeadLetterKey(name)
	g := &groupQueue{
		name: name, elsewhere: elsewhere, wanted: q.Wanted,
		queues: []queueSpec{
			{name, amqp.Table{
				"x-queue-type":              "quorum",
				"x-dead-letter-exchange":    names.DeadLetterExchange(),
				"x-dead-letter-routing-key": dlqKey,
			}, elsewhere},
			{dlq, deadLetterArgs(), elsewhere},
		},
		dead: bindingSpec{dlq, names.DeadLetterExchange(), dlqKey},
	}
	for _, key := range q.Keys {
		g.routes = append(g.routes, bindingSpec{name, names.Exchange(), string(key)})
	}
	return g
}

// needed returns what should exist now. Whether a queue is wanted may be unknown
// for a while, as when the database is away: then it is as it was before.
func (t *Topology) needed(ctx context.Context) needed {
	need := needed{exchanges: t.always.exchanges}
	for _, q := range t.queues {
		wanted := q.isWanted(ctx)
		if q.elsewhere && !wanted {
			continue // nobody may read it: it would fill until the broker refuses more
		}
		need.queues = append(need.queues, q.queues...)
		need.bindings = append(need.bindings, q.dead)
		if wanted {
			need.routes = append(need.routes, q.routes...)
		}
	}
	need.queues = append(need.queues, t.always.queues...)
	need.bindings = append(need.bindings, t.always.bindings...)
	return need
}

// reads reports whether this process reads queue, or its dead letters or retries.
func (need needed) reads(queue string) bool {
	return slices.ContainsFunc(need.queues, func(q queueSpec) bool { return q.name == queue && !q.elsewhere })
}

func (q *groupQueue) isWanted(ctx context.Context) bool {
	if q.wanted == nil || q.demanded.Load() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if wanted, err := q.wanted(ctx); err == nil {
		q.known.Store(wanted)
	}
	return q.known.Load()
}

// StandardDelays have retry queues whatever is configured, so that a change of
// RETRY_DELAYS never leaves messages behind in them. They are its default.
func StandardDelays() []time.Duration {
	return []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}
}

// retryDelays returns the delays that need a queue at the broker, each once.
func retryDelays(delays []time.Duration) []time.Duration {
	all := append(StandardDelays(), delays...)
	slices.Sort(all)
	return slices.Compact(all)
}

// RetryExchange is the fanout exchange, and the queue behind it, in which a
// message waits for delay until it goes back to the queue named by its
// routing key.
func (t *Topology) RetryExchange(delay time.Duration) string { return t.Names.Retry(delay.String()) }

// DeadLetterQueues returns the dead-letter queue of each queue that this process
// reads.
func (t *Topology) DeadLetterQueues() map[string]string {
	queues := make(map[string]string)
	for _, q := range t.queues {
		if !q.elsewhere {
			queues[q.name] = t.Names.DeadLetterQueue(q.name)
		}
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

// Declare makes missing parts. It changes and deletes nothing: a part that exists
// and differs is an error that says how, and keeps nothing else from being
// declared.
//
// Queues are bound in the order of the groups, and none is after one that could
// not be: what no queue takes is returned to its publisher, who keeps it, but
// what the second queue takes and the first does not is gone for the first. While
// queues that get the same messages are made, the broker refuses these messages.
func (t *Topology) Declare(ctx context.Context, conn *amqp.Connection) error {
	need := t.needed(ctx)
	d := rabbit.NewDeclarer(conn)
	defer d.Close()
	var faults []error
	try := func(err error) bool {
		if err != nil {
			faults = append(faults, err)
		}
		return !conn.IsClosed() // without a connection all others would fail, too
	}
	for _, e := range need.exchanges {
		if !try(d.Exchange(e.name, e.kind)) {
			return errors.Join(faults...)
		}
	}
	gate := newGate(t.Names.Gate(), t.Names.Exchange(), need.routes)
	if !try(gate.close(d)) {
		return errors.Join(faults...)
	}
	for _, q := range need.queues {
		err := d.Queue(q.name, q.args)
		if _, differs := errors.AsType[*rabbit.MismatchError](err); differs && q.elsewhere {
			continue
		}
		if !try(err) {
			return errors.Join(faults...)
		}
	}
	for _, b := range need.routes {
		if err := d.Bind(b.queue, b.key, b.exchange); err != nil {
			return errors.Join(append(faults, err, gate.open(d))...)
		}
	}
	if !try(gate.open(d)) {
		return errors.Join(faults...)
	}
	for _, b := range need.bindings {
		if !try(d.Bind(b.queue, b.key, b.exchange)) {
			return errors.Join(faults...)
		}
	}
	t.declaredOnce.Do(func() { close(t.declared) })
	return errors.Join(faults...)
}

// readElsewhere reports whether another process reads one of the queues.
func (t *Topology) readElsewhere() bool {
	return slices.ContainsFunc(t.queues, func(q *groupQueue) bool { return q.elsewhere })
}

// BeforeRepair has look called before parts that were there once are declared again.
// The reader of a queue can see only then that it is gone, with what it held: the empty
// one that is there afterwards looks like one that was drained.
func (t *Topology) BeforeRepair(look func(context.Context)) { t.look.Store(&look) }

// Repair does what Declare does, for parts that were there once.
func (t *Topology) Repair(ctx context.Context, conn *amqp.Connection) error {
	if look := t.look.Load(); look != nil {
		(*look)(ctx)
	}
	return t.Declare(ctx, conn)
}

// DeclareQueue makes sure that the queue called name exists and is bound, where all
// exchanges do.
func (t *Topology) DeclareQueue(ctx context.Context, conn *amqp.Connection, name string) error {
	need := t.needed(ctx)
	d := rabbit.NewDeclarer(conn)
	defer d.Close()
	for _, q := range need.queues {
		if q.name != name {
			continue
		}
		if err := d.Queue(q.name, q.args); err != nil {
			return err
		}
	}
	for _, b := range slices.Concat(need.routes, need.bindings) {
		if b.queue != name {
			continue
		}
		if err := d.Bind(b.queue, b.key, b.exchange); err != nil {
			return err
		}
	}
	return nil
}

// DeclareDeadLetterQueue makes sure that the dead-letter queue called name
// exists, for a reader that may come before everything else is declared. One
// that exists with other arguments is read as it is: Declare reports it.
func (t *Topology) DeclareDeadLetterQueue(conn *amqp.Connection, name string) error {
	err := rabbit.DeclareQueue(conn, name, deadLetterArgs())
	if _, differs := errors.AsType[*rabbit.MismatchError](err); differs {
		return nil
	}
	return err
}

func deadLetterArgs() amqp.Table { return amqp.Table{"x-message-ttl": int32(deadLetterTTL)} }
