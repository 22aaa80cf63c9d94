// Package live tells the replicas of notification-service what one of them
// has committed, over a fanout exchange.
//
// It may lose what it carries: nothing is confirmed or kept, a full queue
// drops, and so does a broken connection. The numbers of the notifications
// reveal a loss, and the database repairs it. What it does promise is that
// nobody waits for it, and that the queues of the broker show of no
// notification whom it is for.
package live

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// A Hub gets what was committed, here or elsewhere.
type Hub interface {
	// Deliver passes a batch on. It must not block.
	Deliver(b notification.Batch, committed time.Time)
	// Compare says that announcements may have been lost.
	Compare()
}

// Config is what an Exchange needs.
type Config struct {
	Hub      Hub
	Keyring  *event.Keyring
	Topology event.Topology
	Rabbit   rabbit.Config // Name is set for each of the connections
	Metrics  prometheus.Registerer
}

// queued is how many announcements wait for the connection. More are dropped:
// they are worth something only while they are fresh.
const queued = 1024

// An Exchange carries announcements between the replicas.
type Exchange struct {
	cfg       Config
	replica   string // so that one's own announcements are known when they come back
	outbox    chan announcement
	published prometheus.Counter
	dropped   prometheus.Counter
	received  prometheus.Counter
	unread    prometheus.Counter
	up        *prometheus.GaugeVec
}

// An announcement is a batch on its way to the others.
type announcement struct {
	batch notification.Batch
	at    time.Time
}

// New returns an Exchange that carries while Run runs.
func New(cfg Config) *Exchange {
	f := promauto.With(cfg.Metrics)
	count := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &Exchange{
		cfg: cfg, replica: uuid.NewString(), outbox: make(chan announcement, queued),
		published: count("live_published_total", "Announcements published to the other replicas."),
		dropped:   count("live_dropped_total", "Announcements dropped because the connection did not take them."),
		received:  count("live_received_total", "Announcements received from other replicas."),
		unread:    count("live_unreadable_total", "Announcements that could not be read."),
		up: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "live_connection_up", Help: "Whether the connection stands."}, []string{"connection"}),
	}
}

// Announce passes on what was just committed: to this replica's hub at once,
// to the others soon. It never blocks.
func (x *Exchange) Announce(_ context.Context, batch notification.Batch) {
	now := time.Now()
	x.cfg.Hub.Deliver(batch, now)
	select {
	case x.outbox <- announcement{batch, now}:
	default:
		x.dropped.Inc()
	}
}

// Run keeps both connections until ctx ends. They are two because a broker
// that takes no publishes stops the whole connection that published.
func (x *Exchange) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return rabbit.Supervise(ctx, x.named("live-publish"), x.publish) })
	g.Go(func() error { return rabbit.Supervise(ctx, x.named("live-receive"), x.receive) })
	return g.Wait()
}

func (x *Exchange) named(name string) rabbit.Config {
	cfg := x.cfg.Rabbit
	cfg.Name = name
	cfg.Observer = rabbit.Observer{
		Connected:    func() { x.up.WithLabelValues(name).Set(1) },
		Disconnected: func(error) { x.up.WithLabelValues(name).Set(0) },
	}
	return cfg
}
