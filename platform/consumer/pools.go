package consumer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// poolPoll is how often a replica reads the pools' settings: a change is to
// hold everywhere within two seconds.
const poolPoll = 500 * time.Millisecond

// A Pool is what an operator sees of a queue and its workers. Depth and
// Consumers are of the whole city, the rest is of the replica that answers.
// It is zero for a queue that is read elsewhere.
type Pool struct {
	Queue       string
	Types       []event.Key // of the messages that it gets
	Elsewhere   bool        // other processes read it
	Concurrency int
	Prefetch    int
	Paused      bool
	Depth       int64
	Consumers   int64
	Workers     int
	Stalled     int
	PerSecond   float64
	ErrorRate   float64 // failed of handled, 0 to 1

	// HandlerP50 and HandlerP99 are how long a batch took, over about the last
	// minute; zero if there was none. How long messages wait is not shown: their
	// timestamps are those of the outbox, in whole seconds.
	HandlerP50 time.Duration
	HandlerP99 time.Duration
}

// Pools returns what there is to see, by group and the most urgent queue first.
// A queue that is read elsewhere is missing until somebody has read it.
func (c *Consumer) Pools() []Pool {
	pools := make([]Pool, 0, len(c.queues))
	for _, q := range c.queues {
		if q.effect != nil || q.stats.exists.Load() {
			pools = append(pools, q.pool())
		}
	}
	return pools
}

// A WaitingQueue is one in which messages wait that no worker reads: a retry
// queue, or the dead-letter queue of another one.
type WaitingQueue struct {
	Name  string
	Delay time.Duration // how long a message waits in a retry queue
	Of    string        // the queue whose dead letters wait until they are archived
	Depth int64
}

type waitingQueue struct {
	WaitingQueue
	depth atomic.Int64
}

// waitingQueues returns the retry queues, the shortest first, and then the
// dead-letter queues.
func waitingQueues(t *topology.Topology) (queues []*waitingQueue) {
	retries, dead := t.RetryQueues(), t.DeadLetterQueues()
	for _, delay := range slices.Sorted(maps.Keys(retries)) {
		queues = append(queues, &waitingQueue{WaitingQueue: WaitingQueue{Name: retries[delay], Delay: delay}})
	}
	for _, queue := range slices.Sorted(maps.Keys(dead)) {
		queues = append(queues, &waitingQueue{WaitingQueue: WaitingQueue{Name: dead[queue], Of: queue}})
	}
	return queues
}

// Waiting returns the retry queues and the dead-letter queues, with how many
// messages waited there at the last check.
func (c *Consumer) Waiting() []WaitingQueue {
	queues := make([]WaitingQueue, 0, len(c.waiting))
	for _, q := range c.waiting {
		seen := q.WaitingQueue
		seen.Depth = q.depth.Load()
		queues = append(queues, seen)
	}
	return queues
}

// EmptyAt returns when this replica last saw that no message waited in queue, or the zero
// time.
func (c *Consumer) EmptyAt(queue string) time.Time {
	for _, q := range c.queues {
		if at := q.emptyAt.Load(); q.queue == queue && at > 0 {
			return time.Unix(at, 0)
		}
	}
	return time.Time{}
}

// Counted returns how many messages of queue this replica has handled, and how
// many failed, since it started.
func (c *Consumer) Counted(queue string) (handled, failed int64) {
	for _, q := range c.queues {
		if q.queue == queue {
			return q.stats.handled.Total(), q.stats.failed.Total()
		}
	}
	return 0, 0
}

func (q *queueWorkers) pool() Pool {
	settings := q.current()
	subscribed, stalled := q.count()
	p50, p99 := q.metrics.handlerTimes(q.queue)
	now := time.Now()
	handled, _ := q.stats.handled.Read(now)
	p := Pool{
		Queue: q.queue, Types: q.keys, Elsewhere: q.effect == nil,
		Concurrency: settings.Concurrency, Prefetch: settings.Prefetch, Paused: settings.Paused,
		Depth: q.stats.depth.Load(), Consumers: q.stats.consumers.Load(),
		Workers: subscribed, Stalled: stalled, PerSecond: handled,
		HandlerP50: p50, HandlerP99: p99,
	}
	if failed, _ := q.stats.failed.Read(now); failed > 0 {
		p.ErrorRate = failed / (failed + p.PerSecond)
	}
	return p
}

// ChangePool makes change to the pool of queue, in every replica within two
// seconds, and in this one at once.
func (c *Consumer) ChangePool(ctx context.Context, actor, queue string, change PoolChange) (Pool, error) {
	for _, q := range c.queues {
		if q.queue != queue {
			continue
		}
		initial := q.config.initialPool()
		wanted := change.Apply(initial)
		if !within(wanted.Concurrency, 1, maxWorkers) {
			return Pool{}, fault.NewInvalid("/concurrency", fmt.Sprintf("must be 1 to %d", maxWorkers))
		}
		if !within(wanted.Prefetch, 1, maxPrefetch) {
			return Pool{}, fault.NewInvalid("/prefetch", fmt.Sprintf("must be 1 to %d", maxPrefetch))
		}
		settings, err := c.store.changePool(ctx, actor, queue, initial, change)
		if err != nil {
			return Pool{}, fmt.Errorf("change pool: %w", err)
		}
		q.set(settings)
		return q.pool(), nil
	}
	return Pool{}, fault.New(fault.NotFound, "no such queue")
}

// initialPool is what holds for a queue that no operator has touched.
func (c Config) initialPool() PoolSettings {
	return PoolSettings{Concurrency: c.Workers, Prefetch: c.Prefetch}
}

// followPools applies what operators set, until ctx ends.
func (c *Consumer) followPools(ctx context.Context) {
	for backoff.Sleep(ctx, poolPoll) == nil {
		if c.breaker.isClosed() {
			c.refreshPools(ctx)
		}
	}
}

func (c *Consumer) refreshPools(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	settings, err := c.store.poolSettings(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.log.Warn().Str("error", failure.Describe(err)).Msg("reading worker pools failed, will retry")
		}
		return
	}
	for _, q := range c.queues {
		want, ok := settings[q.queue]
		if !ok {
			want = q.config.initialPool()
		}
		if q.set(want) {
			c.log.Info().Str("queue", q.queue).Int("concurrency", want.Concurrency).
				Int("prefetch", want.Prefetch).Bool("paused", want.Paused).Msg("worker pool changed")
		}
	}
}
