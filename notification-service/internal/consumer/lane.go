package consumer

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/topology"
	"github.com/cityconnect/cityconnect/platform/event"
)

// Resubscribing is spaced like redialling: soon, then patiently.
const (
	firstResubscribe = 250 * time.Millisecond
	slowResubscribe  = 10 * time.Second
)

// A Forwarder moves messages under confirm; forwarder.Forwarder is one.
type Forwarder interface {
	Forward(ctx context.Context, exchange, key string, msg amqp.Publishing) error
}

// deps are what every worker of the process shares.
type deps struct {
	store     Store
	announcer Announcer
	forwarder Forwarder
	reader    reader
	topology  *topology.Topology
	tuning    Tuning
	gate      *gate
	priority  *priority
	metrics   *metrics
	log       zerolog.Logger
}

// A lane is one queue with its workers.
type lane struct {
	*deps
	key   event.Key
	queue string
	rank  int // 0 goes first
	tags  atomic.Int64
	turn  chan struct{} // holds one while a worker has a batch in hand
	crew  crew
	board gaugeboard
}

func newLane(d *deps, rank int, key event.Key) *lane {
	l := &lane{deps: d, key: key, queue: d.topology.Names.Queue(key), rank: rank, turn: make(chan struct{}, 1)}
	l.crew.init(PoolSettings{Concurrency: d.tuning.Workers, Prefetch: d.tuning.Prefetch})
	return l
}

// nextTag names a consumer so that an operator can tell who it is.
func (l *lane) nextTag() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s.%s.%d.%d", l.queue, host, os.Getpid(), l.tags.Add(1))
}

// work keeps one subscription alive on conn until ctx ends. A subscription
// that the broker ends is opened again: a consumer that was cancelled, or
// whose channel was closed, would otherwise be silently dead.
func (l *lane) work(ctx context.Context, conn *amqp.Connection, prefetch int) {
	for delay := firstResubscribe; ctx.Err() == nil; delay = min(2*delay, slowResubscribe) {
		began := time.Now()
		err := l.subscribeOnce(ctx, conn, prefetch)
		if ctx.Err() != nil || conn.IsClosed() {
			return
		}
		l.metrics.resubscribed.WithLabelValues(l.queue).Inc()
		l.log.Warn().Err(err).Str("queue", l.queue).Dur("delay", delay).Msg("subscription ended")
		if time.Since(began) > slowResubscribe {
			delay = firstResubscribe
		}
		if !pause(ctx, delay) {
			return
		}
		if err := l.topology.Declare(conn); err != nil { // the queue may be what is missing
			l.log.Error().Err(err).Msg("declare topology")
		}
	}
}

func (l *lane) subscribeOnce(ctx context.Context, conn *amqp.Connection, prefetch int) error {
	s, err := subscribe(l, conn, prefetch)
	if err != nil {
		return err
	}
	l.crew.enlist(s)
	defer l.crew.dismiss(s)
	return s.run(ctx)
}

// pause waits, and tells whether ctx still lives.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
