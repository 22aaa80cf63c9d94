// Package courier publishes what must not get lost on its way between queues:
// retries, dead letters and replays.
//
// It has a connection of its own. While the broker refuses publishers, for
// want of memory or disk, it stops the whole connection that published; the
// one that consumes and acknowledges must not be that connection.
package courier

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// ErrTooLarge says that a message has more headers or a larger body than may
// be published.
var ErrTooLarge = errors.New("message is too large to be published")

const (
	window         = 256 // unconfirmed at the most
	confirmTimeout = 15 * time.Second
	// Delivery keeps trying, because nobody else will.
	firstDelay = 100 * time.Millisecond
	slowDelay  = 5 * time.Second
)

var errNoConfirm = errors.New("the broker did not confirm in time")

// A Courier publishes under confirm, and renews its connection. Run must be
// running for deliveries to get on.
type Courier struct {
	cfg        rabbit.Config
	unroutable func(exchange, key string)
	metrics    *metrics
	blocked    atomic.Bool   // the broker takes no publishes for now
	suspect    chan struct{} // holds one request for a fresh connection
	patience   time.Duration // with a confirm

	mu        sync.Mutex
	publisher *rabbit.Publisher
	ready     chan struct{} // closed while there is a publisher
}

// New returns a Courier that calls unroutable for messages that no queue
// took: the topology is not what it should be.
func New(cfg rabbit.Config, reg prometheus.Registerer, unroutable func(exchange, key string)) *Courier {
	c := &Courier{
		cfg: cfg, unroutable: unroutable, metrics: newMetrics(reg),
		suspect: make(chan struct{}, 1), patience: confirmTimeout, ready: make(chan struct{}),
	}
	c.observe(&c.cfg.Observer)
	return c
}

// observe notes what the connection goes through, before the caller's own
// observer hears of it.
func (c *Courier) observe(o *rabbit.Observer) {
	next := *o
	o.Connected = func() {
		c.metrics.up.Set(1)
		if next.Connected != nil {
			next.Connected()
		}
	}
	o.Blocked = func(reason string) {
		c.blocked.Store(true)
		c.metrics.blocked.Set(1)
		if next.Blocked != nil {
			next.Blocked(reason)
		}
	}
	unblock := func() { c.blocked.Store(false); c.metrics.blocked.Set(0) }
	o.Unblocked = func() {
		unblock()
		if next.Unblocked != nil {
			next.Unblocked()
		}
	}
	o.Disconnected = func(cause error) {
		unblock()
		c.metrics.up.Set(0)
		if next.Disconnected != nil {
			next.Disconnected(cause)
		}
	}
}

// Run keeps a connection until ctx ends.
func (c *Courier) Run(ctx context.Context) error {
	return rabbit.Supervise(ctx, c.cfg, c.session)
}

// session offers a publisher on conn until ctx ends, or until the publisher
// is suspect: a channel opened while the queue's leader was being elected can
// refuse for long, and one that does not confirm is good for nothing.
func (c *Courier) session(ctx context.Context, conn *amqp.Connection) error {
	publisher, err := rabbit.NewPublisher(conn, window)
	if err != nil {
		return err
	}
	c.offer(publisher)
	defer c.withdraw()
	select {
	case <-ctx.Done():
		return nil
	case <-c.suspect:
		return errors.New("publishing channel is suspect")
	}
}

func (c *Courier) offer(p *rabbit.Publisher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.suspect: // meant the one before
	default:
	}
	c.publisher = p
	close(c.ready)
}

func (c *Courier) withdraw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.publisher, c.ready = nil, make(chan struct{})
}

// current waits for a publisher.
func (c *Courier) current(ctx context.Context) (*rabbit.Publisher, error) {
	for {
		c.mu.Lock()
		publisher, ready := c.publisher, c.ready
		c.mu.Unlock()
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
