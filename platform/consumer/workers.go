package consumer

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// Resubscribing is spaced like redialling: soon, then patiently.
const (
	firstResubscribe = 250 * time.Millisecond
	maxResubscribe   = 10 * time.Second
)

// A queueWorkers is one queue with the workers of this replica. A worker is a
// goroutine that keeps one subscription: a channel, its prefetch, and a batch
// in hand.
type queueWorkers struct {
	queue  string
	keys   []event.Key
	rank   int    // in its group; 0 goes first
	effect Effect // nil in another process's group
	since  func(context.Context) (time.Time, error)
	config Config

	// Shared by the workers of a queue, or by all.
	store     *store
	forwarder Forwarder
	parker    Parker
	topology  *topology.Topology
	breaker   *databaseBreaker
	priority  *priority
	turn      chan struct{} // holds one while a worker of the queue has a batch in hand
	tags      atomic.Int64
	stats     queueStats
	emptyAt   atomic.Int64 // when the queue was last seen empty, in Unix seconds
	lostSince atomic.Int64 // of a loss that is not noted yet, in Unix seconds
	refusal   refusal      // since a subscription failed, until one succeeds
	metrics   *metrics
	log       zerolog.Logger

	mu       sync.Mutex
	settings PoolSettings
	away     bool          // the database, for long: no worker is to subscribe
	round    int           // of the workers: those of an earlier one stop
	changed  chan struct{} // closed when one of these is
	active   map[*subscription]struct{}
}

func (c *Consumer) newQueueWorkers(d Dependencies, g Group, queue topology.Queue, rank int, p *priority) *queueWorkers {
	cfg := g.config(c.config)
	return &queueWorkers{
		queue: d.Topology.Names.Named(queue.Name), keys: queue.Keys, rank: rank, effect: g.Effect, since: g.Since, config: cfg,
		store: c.store, forwarder: d.Forwarder, parker: d.Parker, topology: d.Topology,
		breaker: c.breaker, priority: p, turn: make(chan struct{}, 1), metrics: c.metrics, log: d.Log,
		settings: cfg.initialPool(), changed: make(chan struct{}), active: make(map[*subscription]struct{}),
	}
}

// set changes the settings, and reports whether they differ from before.
func (q *queueWorkers) set(s PoolSettings) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s == q.settings {
		return false
	}
	q.settings = s
	q.changeLocked()
	return true
}

func (q *queueWorkers) changeLocked() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// current returns the settings.
func (q *queueWorkers) current() PoolSettings {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.settings
}

// wanted returns how many workers there should be, with which prefetch and of which
// round, and a channel that is closed when this changes.
func (q *queueWorkers) wanted() (n, prefetch, round int, changed <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.settings.Paused && !q.away {
		n = q.settings.Concurrency
	}
	return n, q.settings.Prefetch, q.round, q.changed
}

// count returns how many workers are subscribed, and how many of them have had
// their batch in hand for too long.
func (q *queueWorkers) count() (subscribed, stalled int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for s := range q.active {
		since := s.busySince.Load()
		if since != 0 && time.Since(time.Unix(0, since)) > q.config.StallAfter {
			stalled++
		}
	}
	return len(q.active), stalled
}

// A worker is one that was started.
type worker struct {
	place    int // among those of its queue in this replica, from 0
	prefetch int
	round    int
	stop     context.CancelFunc
}

// run keeps as many workers on conn as the settings say, until ctx ends and
// all have drained. Changing the prefetch replaces a worker: it belongs to the
// consumer's channel.
func (q *queueWorkers) run(ctx context.Context, conn *amqp.Connection) {
	var workers []worker
	var working sync.WaitGroup
	defer working.Wait()
	for {
		n, prefetch, round, changed := q.wanted()
		workers = scale(workers, n, prefetch, round)
		for len(workers) < n {
			workerCtx, stop := context.WithCancel(ctx)
			w := worker{freePlace(workers), prefetch, round, stop}
			working.Go(func() { defer stop(); q.work(workerCtx, conn, w) })
			workers = append(workers, w)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// scale stops all but want workers that have the right prefetch and are of the round.
func scale(workers []worker, want, prefetch, round int) (kept []worker) {
	for _, w := range workers {
		if w.prefetch == prefetch && w.round == round && len(kept) < want {
			kept = append(kept, w)
		} else {
			w.stop()
		}
	}
	return kept
}

// freePlace returns the first place that none of workers has.
func freePlace(workers []worker) (place int) {
	for slices.ContainsFunc(workers, func(w worker) bool { return w.place == place }) {
		place++
	}
	return place
}

// work keeps one subscription alive on conn until ctx ends. A subscription
// that the broker ends is opened again: a consumer that was cancelled, or
// whose channel was closed, would otherwise be silently dead.
func (q *queueWorkers) work(ctx context.Context, conn *amqp.Connection, w worker) {
	delays := backoff.Backoff{First: firstResubscribe, Max: maxResubscribe}
	for {
		began := time.Now()
		err := q.subscribe(ctx, conn, w)
		if ctx.Err() != nil { // no worker is to be there, or it is replaced
			q.refusal.note(nil)
			return
		}
		if conn.IsClosed() {
			return
		}
		q.refusal.note(err)
		if time.Since(began) > maxResubscribe {
			delays.Reset()
		}
		delay := delays.Next()
		q.metrics.resubscribed.WithLabelValues(q.queue).Inc()
		q.log.Warn().Err(err).Str("queue", q.queue).Dur("delay", delay).Msg("subscription ended, will subscribe again")
		if backoff.Sleep(ctx, delay) != nil {
			return
		}
		if err := q.topology.Repair(ctx, conn); err != nil { // the queue itself may be missing
			q.log.Error().Err(err).Msg("declaring the topology failed, will retry")
		}
	}
}

// subscribe consumes on a channel of its own until the subscription ends.
func (q *queueWorkers) subscribe(ctx context.Context, conn *amqp.Connection, w worker) error {
	ch, err := rabbit.OpenChannel(conn)
	if err != nil {
		return err
	}
	q.metrics.channelsOpened.Inc()
	s := q.newSubscription(ch, w)
	q.mu.Lock()
	q.active[s] = struct{}{}
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		delete(q.active, s)
		q.mu.Unlock()
	}()
	return s.run(ctx)
}

func (q *queueWorkers) newSubscription(ch *amqp.Channel, w worker) *subscription {
	schedule := q.config.RetrySchedule()
	h := &handler{
		queue: q.queue, keys: q.keys, effect: q.effect, store: q.store, forwarder: q.forwarder, parker: q.parker,
		breaker: q.breaker, timeout: q.config.ApplyTimeout, schedule: schedule, patience: patience(schedule), since: q.since,
		topology: q.topology, stats: &q.stats, metrics: q.metrics, log: q.log,
	}
	h.acks = ackTracker{acknowledger: ch, handled: &q.stats.handled, acked: q.metrics.acked.WithLabelValues(q.queue)}
	host, _ := os.Hostname() // so that an operator can tell whose consumer it is
	return &subscription{
		ch: ch, queue: q.queue, prefetch: w.prefetch, priority: -w.place,
		tag:     fmt.Sprintf("%s.%s.%d.%d", q.queue, host, os.Getpid(), q.tags.Add(1)),
		reader:  reader{keys: q.keys, effect: q.effect},
		batches: newBatcher(q.config, w.prefetch, q.turn, q.priority, q.rank, &h.acks),
		handler: h, subscribed: func() { q.refusal.note(nil) }, metrics: q.metrics, log: q.log,
	}
}
