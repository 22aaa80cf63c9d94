// Package forwarder publishes messages that must not get lost on their way between
// queues: retries, dead letters, replays and messages that waited until a time.
//
// It has a connection of its own. While the broker refuses publishers, because
// memory or disk runs out, it stops the whole connection that published; the
// one that consumes and acknowledges must not be that connection.
package forwarder

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// ErrTooLarge says that a message has more headers or a larger body than may
// be published, even with no more headers than failure.Essential leaves.
var ErrTooLarge = errors.New("message is too large to be published")

const (
	window         = 256 // unconfirmed at the most
	confirmTimeout = 15 * time.Second
	// A message is published again for as long as it takes: nothing else will
	// move it.
	firstDelay = 100 * time.Millisecond
	maxDelay   = 5 * time.Second
)

var errNoConfirm = errors.New("the broker did not confirm in time")

// A Forwarder publishes under confirm, and renews its connection. Run must be
// running, or Forward waits.
type Forwarder struct {
	cfg            rabbit.Config
	unroutable     func(exchange, key string)
	confirmTimeout time.Duration
	published      prometheus.Histogram
	failed         prometheus.Counter
	blocked        atomic.Bool   // the broker takes no publishes for now
	suspect        chan struct{} // holds one request for a fresh connection

	mu        sync.Mutex
	publisher *rabbit.Publisher
	ready     chan struct{} // closed while there is a publisher
}

// New returns a Forwarder on connections of cfg, which it observes. It
// calls unroutable for messages that no queue took: a binding is missing.
func New(cfg rabbit.Config, reg prometheus.Registerer, unroutable func(exchange, key string)) *Forwarder {
	factory := promauto.With(reg)
	f := &Forwarder{
		cfg: cfg, unroutable: unroutable, confirmTimeout: confirmTimeout,
		published: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "forwarder_publish_duration_seconds", Help: "Time from publishing a retry, dead letter or replay to its confirm.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
		}),
		failed:  factory.NewCounter(prometheus.CounterOpts{Name: "forwarder_publish_failures_total", Help: "Publishes that have to be tried again."}),
		suspect: make(chan struct{}, 1), ready: make(chan struct{}),
	}
	f.cfg.Metrics = reg
	f.cfg.Observe = func(s rabbit.State) { f.blocked.Store(s.Blocked != "") }
	return f
}

// Run keeps a connection until ctx ends.
func (f *Forwarder) Run(ctx context.Context) error {
	return rabbit.Supervise(ctx, f.cfg, f.session)
}

// session offers a publisher on conn until ctx ends, or until the publisher
// is suspect: a channel opened while the queue's leader was being elected can
// refuse for long, and one that does not confirm is good for nothing.
func (f *Forwarder) session(ctx context.Context, conn *amqp.Connection) error {
	publisher, err := rabbit.NewPublisher(conn, window)
	if err != nil {
		return err
	}
	f.mu.Lock()
	select {
	case <-f.suspect: // meant the one before
	default:
	}
	f.publisher = publisher
	close(f.ready)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.publisher, f.ready = nil, make(chan struct{})
		f.mu.Unlock()
	}()
	select {
	case <-ctx.Done():
		return nil
	case <-f.suspect:
		return errors.New("publishing channel is suspect")
	}
}

// Forward returns nil once the broker has confirmed that msg is in a queue. It keeps
// trying until ctx ends, and gives up at once only on a message that can never be
// published. It is safe for concurrent use.
//
// A message whose confirm was lost is published again: readers must know
// messages by their id.
func (f *Forwarder) Forward(ctx context.Context, exchange, key string, msg amqp.Publishing) error {
	delays := backoff.Backoff{First: firstDelay, Max: maxDelay}
	for {
		err := f.publish(ctx, exchange, key, msg)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrTooLarge):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		f.failed.Inc()
		f.cfg.Log.Warn().Err(err).Str("exchange", exchange).Str("routing_key", key).Msg("forwarding a message failed, will retry")
		if errors.Is(err, rabbit.ErrReturned) {
			f.unroutable(exchange, key)
		} else {
			f.suspectPublisher()
		}
		if err := backoff.Sleep(ctx, delays.Next()); err != nil {
			return err
		}
	}
}

// Publish publishes msg once, and returns nil once the broker has confirmed that
// it is in a queue. Otherwise it may be there, unless the error is
// rabbit.ErrReturned, since no queue takes it, or ErrTooLarge. It waits for a
// connection until ctx ends, and is safe for concurrent use.
func (f *Forwarder) Publish(ctx context.Context, exchange, key string, msg amqp.Publishing) error {
	err := f.publish(ctx, exchange, key, msg)
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrTooLarge) {
		f.failed.Inc()
		if !errors.Is(err, rabbit.ErrReturned) {
			f.suspectPublisher()
		}
	}
	return err
}

// suspectPublisher asks for a fresh connection.
func (f *Forwarder) suspectPublisher() {
	select {
	case f.suspect <- struct{}{}:
	default: // requested already
	}
}

// publish publishes once and waits for the answer. A message that is too large goes
// without the headers that are not ours.
func (f *Forwarder) publish(ctx context.Context, exchange, key string, msg amqp.Publishing) error {
	publisher, err := f.current(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	answer := make(chan rabbit.Outcome, 1)
	report := func(o rabbit.Outcome) { answer <- o }
	err = publisher.Publish(exchange, key, msg, report)
	if errors.Is(err, rabbit.ErrUnpublishable) {
		msg.Headers = failure.Essential(msg.Headers)
		if err = publisher.Publish(exchange, key, msg, report); errors.Is(err, rabbit.ErrUnpublishable) {
			return fmt.Errorf("%w: %w", ErrTooLarge, err)
		}
	}
	if err != nil {
		return err
	}
	timeout := time.NewTicker(f.confirmTimeout)
	defer timeout.Stop()
	for {
		select {
		case o := <-answer:
			f.published.Observe(time.Since(began).Seconds())
			return o.Err()
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout.C:
			if !f.blocked.Load() { // publishing once more would not be faster, only double
				return errNoConfirm
			}
		}
	}
}

// current waits for a publisher.
func (f *Forwarder) current(ctx context.Context) (*rabbit.Publisher, error) {
	for {
		f.mu.Lock()
		publisher, ready := f.publisher, f.ready
		f.mu.Unlock()
		if publisher != nil {
			return publisher, nil
		}
		select {
		case <-ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
