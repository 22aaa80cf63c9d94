// Package consumer runs groups of consumers: it gives each message its effect,
// in each group exactly once.
//
// Every delivery ends in one of four outcomes: it is acknowledged, because its
// effect is in the database; it is parked there until its time comes; it waits
// in a retry queue of the broker; or it is a dead letter. Whatever moves is
// published and confirmed before the original is acknowledged, so that a crash
// at any point leaves at least one copy, and the record of handled messages
// leaves at most one effect.
//
// Messages that wait in a queue are handled in batches, one transaction each. A
// message that makes its batch fail is isolated, and harms no other. While the
// database is away no message is taken, and no attempt is spent. A message
// that was in hand when a process died runs alone, and one that killed three
// is a dead letter.
package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// heartbeat is that of the consumer's connection. The broker gives back what a
// frozen replica has in hand after two to three of them. Five seconds is the
// least that RabbitMQ advises: below, a busy machine is soon taken for a dead
// one, and each time that happens everything in hand is delivered again, to run
// alone.
const heartbeat = 5 * time.Second

// Dependencies are what a Consumer works with.
type Dependencies struct {
	Database *pgxpool.Pool // of the effects
	// Writable returns nil if effects can be written, such as pgpool.Writes.Probe.
	// While it returns an error no failure costs an attempt. It may be nil.
	Writable  func(ctx context.Context) error
	Forwarder Forwarder // must be running
	Parker    Parker    // of messages that must wait until a time
	Topology  *topology.Topology
	Rabbit    rabbit.Config // of the connection to consume on
	Log       zerolog.Logger
	Metrics   prometheus.Registerer
}

// A Consumer handles the messages of its groups.
type Consumer struct {
	config   Config
	topology *topology.Topology
	queues   []*queueWorkers // by group, the most urgent one first
	waiting  []*waitingQueue
	store    *store
	breaker  *databaseBreaker
	rabbit   rabbit.Config
	metrics  *metrics
	log      zerolog.Logger
	refusal  refusal // of the topology

	conn atomic.Pointer[amqp.Connection] // of the present session
}

// A refusal is why the broker lets nothing be consumed, as long as it does not.
type refusal struct{ cause atomic.Pointer[error] }

// note keeps the cause, or forgets it with nil.
func (r *refusal) note(err error) {
	if err == nil {
		r.cause.Store(nil)
	} else {
		r.cause.Store(&err)
	}
}

// err returns the cause, or nil.
func (r *refusal) err() error {
	if cause := r.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// New returns a Consumer of groups, which d.Topology has. Run starts it.
func New(cfg Config, d Dependencies, groups ...Group) (*Consumer, error) {
	if err := config.NewError(cfg.Validate()); err != nil {
		return nil, fmt.Errorf("consumer: %w", err)
	}
	m := newMetrics(d.Metrics)
	c := &Consumer{config: cfg, topology: d.Topology, store: &store{d.Database, d.Writable}, rabbit: d.Rabbit, metrics: m, log: d.Log}
	c.breaker = newDatabaseBreaker(m.databaseUp, d.Log)
	c.rabbit.Metrics, c.rabbit.Heartbeat = d.Metrics, heartbeat
	for _, g := range groups {
		priority := newPriority(len(g.Queues)) // groups do not wait for one another
		for rank, queue := range g.Queues {
			c.queues = append(c.queues, c.newQueueWorkers(d, g, queue, rank, priority))
			if g.Effect != nil {
				m.started(d.Topology.Names.Named(queue.Name))
			}
		}
	}
	c.waiting = waitingQueues(d.Topology)
	c.topology.BeforeRepair(c.lookForLosses)
	return c, nil
}

// Run consumes until ctx ends, then finishes and settles the messages in hand.
func (c *Consumer) Run(ctx context.Context) error {
	c.refreshPools(ctx)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return rabbit.Supervise(ctx, c.rabbit, c.session) })
	g.Go(func() error { c.followPools(ctx); return nil })
	g.Go(func() error { c.watchWorkers(ctx); return nil })
	g.Go(func() error { c.watchCircuit(ctx); return nil })
	return g.Wait()
}

// session consumes on conn until ctx ends and everything has drained. A broker
// that answers no more would hold up the draining without end, so the
// connection is cut after a while.
func (c *Consumer) session(ctx context.Context, conn *amqp.Connection) error {
	if err := c.topology.Declare(ctx, conn); err != nil {
		if ctx.Err() == nil && !conn.IsClosed() {
			c.refusal.note(err)
		}
		return fmt.Errorf("declare topology: %w", err)
	}
	c.refusal.note(nil)
	var working sync.WaitGroup
	defer c.conn.CompareAndSwap(conn, nil)
	for _, q := range c.queues {
		if q.effect != nil {
			q.stats.exists.Store(true) // from here on it is the same broker, with the same disk
			working.Go(func() { q.run(ctx, conn) })
		}
	}
	c.conn.Store(conn)
	working.Go(func() { c.watchQueues(ctx, conn) })
	<-ctx.Done()
	cut := time.AfterFunc(drainGrace+time.Second, func() {
		_ = conn.CloseDeadline(time.Now()) // an error says that it is cut already
	})
	defer cut.Stop()
	working.Wait()
	return nil
}

// Healthy returns nil while messages are taken, and otherwise why not.
func (c *Consumer) Healthy() error {
	if !c.breaker.isClosed() {
		return errors.New("the database, or another dependency of the messages, is away")
	}
	if err := c.refusal.err(); err != nil {
		return fmt.Errorf("the broker refuses the topology: %w", err)
	}
	for _, q := range c.queues {
		if err := q.refusal.err(); err != nil {
			return fmt.Errorf("the broker refuses %s: %w", q.queue, err)
		}
	}
	return nil
}

// How often the queues are observed, and the workers.
const (
	queuePoll  = 2 * time.Second
	workerPoll = time.Second
	// absentPoll is how often a queue is looked for that another process has not
	// declared yet: the broker logs each time that it is not there.
	absentPoll = 20 * time.Second
)

// maxMissing is how often in a row a consumer must be missing before it is
// believed: one that subscribes just now is not counted yet.
const maxMissing = 3

// watchQueues checks the queues until ctx or the connection ends. A broker that does
// not answer loses the connection, and so does one where a queue has fewer consumers
// than this process believes to have: a subscription died in silence.
func (c *Consumer) watchQueues(ctx context.Context, conn *amqp.Connection) {
	w := &queueWatch{conn: conn, missing: make(map[*queueWorkers]int), absent: make(map[string]time.Time)}
	for backoff.Sleep(ctx, queuePoll) == nil {
		err := rabbit.Ask(conn, func() error { return c.lookAtQueues(ctx, w) })
		if err != nil && ctx.Err() == nil && !conn.IsClosed() {
			c.log.Error().Err(err).Msg("a subscription died in silence, will reconnect")
			_ = conn.CloseDeadline(time.Now().Add(time.Second)) // the supervisor opens another
		}
		if conn.IsClosed() {
			return
		}
	}
}

// lookAtQueues notes depth and consumers of each queue. Its error says which
// subscription has died, or that the connection has ended.
func (c *Consumer) lookAtQueues(ctx context.Context, w *queueWatch) error {
	for _, q := range c.queues {
		state, there, err := w.look(q.queue, q.effect == nil)
		if errors.Is(err, errUnanswered) {
			continue
		}
		if err != nil {
			return err
		}
		if q.effect == nil {
			q.stats.exists.Store(there)
		} else {
			// Messages that are published again must find the queue, also while it is paused and
			// no subscription declares it. Other queues are left to those who read
			// them: they would not notice that theirs was gone.
			if lost := q.noteExists(ctx, there, state.Messages); lost {
				if err := q.topology.DeclareQueue(ctx, w.conn, q.queue); err != nil {
					c.log.Error().Err(err).Msg("declaring the topology failed, will retry")
				}
			}
		}
		if !there { // what reads it here says why
			continue
		}
		q.stats.depth.Store(int64(state.Messages))
		q.stats.consumers.Store(int64(state.Consumers))
		q.metrics.depth.WithLabelValues(q.queue).Set(float64(state.Messages))
		q.metrics.consumers.WithLabelValues(q.queue).Set(float64(state.Consumers))
		if subscribed, _ := q.count(); state.Consumers >= subscribed {
			w.missing[q] = 0
		} else if w.missing[q]++; w.missing[q] == maxMissing {
			return fmt.Errorf("%s has %d consumers, must have %d", q.queue, state.Consumers, subscribed)
		}
	}
	for _, q := range c.waiting {
		state, there, err := w.look(q.Name, true)
		if err != nil && !errors.Is(err, errUnanswered) {
			return err
		}
		if there {
			q.depth.Store(int64(state.Messages))
			if q.Of == "" {
				c.metrics.retrying.WithLabelValues(q.Name).Set(float64(state.Messages))
			}
		}
	}
	return nil
}

// A queueWatch checks queues over one connection, on a channel of its own.
type queueWatch struct {
	conn    *amqp.Connection
	ch      *amqp.Channel
	missing map[*queueWorkers]int // how often in a row a consumer was
	absent  map[string]time.Time  // until when a queue is not looked for
}

// errUnanswered says that the broker did not answer whether a queue exists: the
// connection has just ended, or the queue is exclusive to another one.
var errUnanswered = errors.New("the broker did not answer whether the queue exists")

// look reads the state of a queue. There is false if the broker answers that it does not
// exist; one that another process declares is not read again for a while.
func (w *queueWatch) look(queue string, others bool) (state amqp.Queue, there bool, err error) {
	if time.Now().Before(w.absent[queue]) {
		return state, false, nil
	}
	if w.ch == nil || w.ch.IsClosed() {
		if w.ch, err = w.conn.Channel(); err != nil {
			return state, false, err
		}
	}
	state, err = w.ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil { // which closes the channel
		if others {
			w.absent[queue] = time.Now().Add(absentPoll)
		}
		if !isNotFound(err) {
			return state, false, errUnanswered
		}
		return state, false, nil
	}
	return state, true, nil
}

// watchWorkers notices workers that make no progress.
func (c *Consumer) watchWorkers(ctx context.Context) {
	stalledBefore := make(map[*queueWorkers]int)
	for backoff.Sleep(ctx, workerPoll) == nil {
		for _, q := range c.queues {
			if q.effect == nil {
				continue
			}
			subscribed, stalled := q.count()
			q.metrics.workers.WithLabelValues(q.queue).Set(float64(subscribed))
			q.metrics.stalled.WithLabelValues(q.queue).Set(float64(stalled))
			if (stalled > 0) != (stalledBefore[q] > 0) {
				c.log.Warn().Str("queue", q.queue).Int("stalled", stalled).Msg("number of stalled workers changed")
			}
			stalledBefore[q] = stalled
		}
	}
}
