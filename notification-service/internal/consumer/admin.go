package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cityconnect/cityconnect/platform/event"
)

// A Pool is what an operator sees of a queue and its workers. Depth and
// Consumers are of the whole city, the rest is of the replica that answers.
type Pool struct {
	Queue       string    `json:"queue"`
	Type        event.Key `json:"type"`
	Concurrency int       `json:"concurrency"`
	Prefetch    int       `json:"prefetch"`
	Paused      bool      `json:"paused"`
	Depth       int64     `json:"depth"`
	Consumers   int64     `json:"consumers"`
	Workers     int       `json:"workers"`
	Stalled     int       `json:"stalled"`
	PerSecond   float64   `json:"rate_per_s"`
	ErrorRate   float64   `json:"error_rate"` // failed of handled, 0 to 1

	// HandlerP50 and HandlerP99 are how long a batch took, over about the last
	// minute; zero if there was none. How long messages wait is not told: their
	// timestamps are those of the outbox, in whole seconds.
	HandlerP50 float64 `json:"handler_p50_ms"`
	HandlerP99 float64 `json:"handler_p99_ms"`
}

// ErrNoQueue says that there is no such queue.
var ErrNoQueue = errors.New("no such queue")

// ErrPool says that a pool cannot be set so.
var ErrPool = errors.New("invalid pool")

// Pools returns what there is to see, the most urgent queue first.
func (c *Consumer) Pools() []Pool {
	pools := make([]Pool, len(c.lanes))
	for i, l := range c.lanes {
		pools[i] = l.pool()
	}
	return pools
}

func (l *lane) pool() Pool {
	settings, _ := l.crew.get()
	members, stalled := l.crew.stalled(l.tuning.StallAfter)
	p := Pool{
		Queue: l.queue, Type: l.key,
		Concurrency: settings.Concurrency, Prefetch: settings.Prefetch, Paused: settings.Paused,
		Depth: l.board.depth.Load(), Consumers: l.board.consumers.Load(),
		Workers: members, Stalled: stalled, PerSecond: l.board.handled.perSecond(),
	}
	if failed := l.board.failed.perSecond(); failed > 0 {
		p.ErrorRate = failed / (failed + p.PerSecond)
	}
	p50, p99 := l.metrics.handlerTimes(l.queue)
	p.HandlerP50, p.HandlerP99 = millis(p50), millis(p99)
	return p
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// ChangePool makes change to the pool of queue, in every replica within two
// seconds, and in this one at once.
func (c *Consumer) ChangePool(ctx context.Context, actor, queue string, change PoolChange) (Pool, error) {
	for _, l := range c.lanes {
		if l.queue != queue {
			continue
		}
		initial := PoolSettings{Concurrency: l.tuning.Workers, Prefetch: l.tuning.Prefetch}
		if err := change.Apply(initial).validate(); err != nil {
			return Pool{}, err
		}
		settings, err := c.pools.ChangePool(ctx, actor, queue, initial, change)
		if err != nil {
			return Pool{}, fmt.Errorf("change pool: %w", err)
		}
		l.crew.set(settings)
		return l.pool(), nil
	}
	return Pool{}, ErrNoQueue
}

func (s PoolSettings) validate() error {
	if !within(s.Concurrency, 1, maxWorkers) {
		return fmt.Errorf("%w: concurrency: want 1 to %d", ErrPool, maxWorkers)
	}
	if !within(s.Prefetch, 1, maxPrefetch) {
		return fmt.Errorf("%w: prefetch: want 1 to %d", ErrPool, maxPrefetch)
	}
	return nil
}
