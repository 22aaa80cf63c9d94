package consumer

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/backoff"
)

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

// watchQueues follows depth and consumers of each queue on a channel of its
// own. It ends the session if a queue has fewer consumers than this process
// believes to have: a subscription that died in silence.
func (c *Consumer) watchQueues(ctx context.Context, conn *amqp.Connection) {
	missing := make(map[*queueWorkers]int)
	absent := make(map[*queueWorkers]time.Time) // until when it is not looked for
	for backoff.Sleep(ctx, queuePoll) == nil {
		ch, err := conn.Channel()
		if err != nil {
			return
		}
		for _, q := range c.queues {
			if time.Now().Before(absent[q]) {
				continue
			}
			state, err := ch.QueueDeclarePassive(q.queue, true, false, false, false, nil)
			q.stats.exists.Store(err == nil)
			if err != nil { // the channel is closed
				if q.effect != nil {
					break // the worker's own channel says why
				}
				absent[q] = time.Now().Add(absentPoll)
				if ch, err = conn.Channel(); err != nil {
					return
				}
				continue
			}
			q.stats.depth.Store(int64(state.Messages))
			q.stats.consumers.Store(int64(state.Consumers))
			q.metrics.depth.WithLabelValues(q.queue).Set(float64(state.Messages))
			q.metrics.consumers.WithLabelValues(q.queue).Set(float64(state.Consumers))
			if subscribed, _ := q.count(); state.Consumers >= subscribed {
				missing[q] = 0
				continue
			}
			if missing[q]++; missing[q] == maxMissing {
				c.log.Error().Str("queue", q.queue).Int("consumers", state.Consumers).Msg("a subscription died in silence, will reconnect")
				_ = conn.CloseDeadline(time.Now().Add(time.Second)) // the supervisor opens another
				return
			}
		}
		_ = ch.Close() // closed already if a queue is missing
	}
}

// watchWorkers notices workers that make no progress.
func (c *Consumer) watchWorkers(ctx context.Context) {
	stalledBefore := make(map[*queueWorkers]int)
	for backoff.Sleep(ctx, workerPoll) == nil {
		for _, q := range c.queues {
			if q.effect == nil {
				continue
			}
			q.stats.handled.tick()
			q.stats.failed.tick()
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
