// Package broadcast announces the commits of one replica of notification-service to
// the others, over a fanout exchange. The stages of photos come over another one, from
// the photo worker.
//
// An announcement may get lost: nothing is confirmed or stored, a full queue
// drops, and a broken connection loses what it carried. The numbers of the
// notifications reveal the loss, and the database repairs it. The package does
// promise that announcing never blocks, and that the broker's queues do not show
// whom a notification is for.
package broadcast

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// A Hub gets committed notifications, of this replica or of another.
type Hub interface {
	// Deliver passes a batch on. It must not block.
	Deliver(b notification.Batch, committed time.Time)
	// Compare says that announcements may have been lost.
	Compare()
	// Progress passes on how far something of a reader's is. It must not block.
	Progress(to notification.Stream, p notification.Progress)
}

// Config is what a Bus needs.
type Config struct {
	Hub      Hub
	Keyring  *event.Keyring
	Topology event.Topology
	Rabbit   rabbit.Config // Name and Metrics are set for each of the connections
	Metrics  prometheus.Registerer
}

// queueLength is how many announcements wait for the connection. More are
// dropped: they are worth something only while they are fresh.
const queueLength = 1024

// A Bus carries announcements between the replicas.
type Bus struct {
	hub      Hub
	keyring  *event.Keyring
	exchange string
	progress string // the exchange of the stages
	rabbit   rabbit.Config
	replica  string // so that a replica recognises its own announcements
	queue    chan announcement
	lost     atomic.Bool // an announcement was dropped, and the others do not know

	published  prometheus.Counter
	dropped    prometheus.Counter
	received   prometheus.Counter
	unreadable prometheus.Counter
}

// An announcement is a batch on its way to the other replicas.
type announcement struct {
	batch       notification.Batch
	committedAt time.Time
}

// New returns a Bus that carries while Run runs.
func New(cfg Config) *Bus {
	f := promauto.With(cfg.Metrics)
	count := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	cfg.Rabbit.Metrics = cfg.Metrics
	return &Bus{
		hub: cfg.Hub, keyring: cfg.Keyring, exchange: cfg.Topology.LiveExchange(),
		progress: cfg.Topology.ProgressExchange(), rabbit: cfg.Rabbit,
		replica: uuid.NewString(), queue: make(chan announcement, queueLength),
		published:  count("broadcast_published_total", "Announcements published to the other replicas."),
		dropped:    count("broadcast_dropped_total", "Announcements dropped because the connection did not take them."),
		received:   count("broadcast_received_total", "Announcements received from other replicas."),
		unreadable: count("broadcast_unreadable_total", "Announcements that could not be read."),
	}
}

// Announce passes on a batch that was just committed: to this replica's hub at once,
// to the others soon. It never blocks.
func (b *Bus) Announce(batch notification.Batch) {
	now := time.Now()
	b.hub.Deliver(batch, now)
	select {
	case b.queue <- announcement{batch, now}:
	default:
		b.dropped.Inc()
		b.lost.Store(true)
	}
}

// Run keeps both connections until ctx ends. They are two because a broker
// that takes no publishes stops the whole connection that published.
func (b *Bus) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return rabbit.Supervise(ctx, b.connection("broadcast-publish"), b.publish) })
	g.Go(func() error { return rabbit.Supervise(ctx, b.connection("broadcast-receive"), b.receive) })
	return g.Wait()
}

// connection returns the configuration of the connection with that name.
func (b *Bus) connection(name string) rabbit.Config {
	cfg := b.rabbit
	cfg.Name = name
	return cfg
}
