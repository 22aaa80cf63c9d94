package consumer

import (
	"context"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// How often the queues are looked at, and the workers.
const (
	queuePoll  = 2 * time.Second
	workerPoll = time.Second
)

// A gaugeboard is what was last seen of a lane.
type gaugeboard struct {
	depth, consumers atomic.Int64
	handled, failed  meter
	stalledBefore    bool // of watchWorkers alone
}

// watchQueues follows depth and consumers of each queue on a channel of its
// own. It ends the session if a queue has fewer consumers than this process
// believes to have: a subscription that died in silence.
func (c *Consumer) watchQueues(ctx context.Context, conn *amqp.Connection) {
	missing := make(map[*lane]int)
	for pause(ctx, queuePoll) {
		ch, err := conn.Channel()
		if err != nil {
			return
		}
		for _, l := range c.lanes {
			q, err := ch.QueueDeclarePassive(l.queue, true, false, false, false, nil)
			if err != nil {
				break // the channel is closed; the worker's own channel tells why
			}
			l.observe(q)
			if l.silent(q.Consumers) {
				missing[l]++
			} else {
				missing[l] = 0
			}
			if missing[l] == silentLooks {
				l.log.Error().Str("queue", l.queue).Int("consumers", q.Consumers).Msg("a subscription died in silence: reconnecting")
				_ = conn.CloseDeadline(time.Now().Add(time.Second)) // the supervisor opens another
				return
			}
		}
		_ = ch.Close() // closed already if a queue is missing
	}
}

// silentLooks is how often a consumer must be missing before it is believed:
// one that subscribes just now is not counted yet.
const silentLooks = 3

func (l *lane) observe(q amqp.Queue) {
	l.board.depth.Store(int64(q.Messages))
	l.board.consumers.Store(int64(q.Consumers))
	l.metrics.depth.WithLabelValues(l.queue).Set(float64(q.Messages))
	l.metrics.consumers.WithLabelValues(l.queue).Set(float64(q.Consumers))
}

func (l *lane) silent(consumers int) bool {
	members, _ := l.crew.stalled(l.tuning.StallAfter)
	return consumers < members
}

// watchWorkers notices workers that do not get on.
func (c *Consumer) watchWorkers(ctx context.Context) {
	for pause(ctx, workerPoll) {
		for _, l := range c.lanes {
			l.board.handled.tick()
			l.board.failed.tick()
			members, stalled := l.crew.stalled(l.tuning.StallAfter)
			l.metrics.workers.WithLabelValues(l.queue).Set(float64(members))
			l.metrics.stalled.WithLabelValues(l.queue).Set(float64(stalled))
			if (stalled > 0) != l.board.stalledBefore {
				l.board.stalledBefore = stalled > 0
				l.log.Warn().Str("queue", l.queue).Int("stalled", stalled).Msg("stalled workers")
			}
		}
	}
}
