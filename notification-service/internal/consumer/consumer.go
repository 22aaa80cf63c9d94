package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/notification-service/internal/topology"
	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// Config is what a Consumer needs.
type Config struct {
	Store     Store
	Pools     PoolStore
	Announcer Announcer
	// Forwarder moves retries and dead letters. It must be running.
	Forwarder Forwarder
	Keyring   *event.Keyring
	Topology  *topology.Topology
	Tuning    Tuning
	// Rabbit is the connection to consume on.
	Rabbit  rabbit.Config
	Log     zerolog.Logger
	Metrics prometheus.Registerer
}

// A Consumer handles the messages of all queues.
type Consumer struct {
	deps   *deps
	lanes  []*lane
	pools  PoolStore
	rabbit rabbit.Config
}

// New returns a Consumer. Run starts it.
func New(cfg Config) (*Consumer, error) {
	if err := config.NewError(cfg.Tuning.Validate()); err != nil {
		return nil, fmt.Errorf("set up consumer: %w", err)
	}
	keys := event.Keys()
	m := newMetrics(cfg.Metrics)
	d := &deps{
		store: cfg.Store, announcer: cfg.Announcer, forwarder: cfg.Forwarder, reader: reader{cfg.Keyring},
		topology: cfg.Topology, tuning: cfg.Tuning, priority: newPriority(len(keys)), metrics: m, log: cfg.Log,
	}
	d.gate = newGate(d.databaseChanged)
	cfg.Rabbit.Metrics = cfg.Metrics
	c := &Consumer{deps: d, pools: cfg.Pools, rabbit: cfg.Rabbit}
	for rank, key := range keys {
		c.lanes = append(c.lanes, newLane(d, rank, key))
	}
	return c, nil
}

func (d *deps) databaseChanged(open bool) {
	if open {
		d.metrics.databaseUp.Set(1)
		d.log.Info().Msg("the database is back: messages are taken again")
		return
	}
	d.metrics.databaseUp.Set(0)
	d.log.Error().Msg("the database is away: no messages are taken until it answers")
}

// Run consumes until ctx ends, then finishes and settles what is in hand.
func (c *Consumer) Run(ctx context.Context) error {
	c.refreshPools(ctx)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return rabbit.Supervise(ctx, c.rabbit, c.session) })
	g.Go(func() error { c.followPools(ctx); return nil })
	g.Go(func() error { c.watchWorkers(ctx); return nil })
	return g.Wait()
}

// session consumes on conn until ctx ends and everything has drained.
func (c *Consumer) session(ctx context.Context, conn *amqp.Connection) error {
	if err := c.deps.topology.Declare(conn); err != nil {
		return fmt.Errorf("declare topology: %w", err)
	}
	var working sync.WaitGroup
	for _, l := range c.lanes {
		working.Go(func() { l.staff(ctx, conn) })
	}
	working.Go(func() { c.watchQueues(ctx, conn) })
	drained := make(chan struct{})
	go func() { working.Wait(); close(drained) }()
	<-ctx.Done()
	abandon(conn, drained)
	<-drained
	return nil
}

// abandon gives the workers time to drain. A broker that answers no more
// would hold them for ever, so the connection is cut then.
func abandon(conn *amqp.Connection, drained <-chan struct{}) {
	timer := time.NewTimer(drainGrace + time.Second)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
		_ = conn.CloseDeadline(time.Now()) // an error says that it is cut already
	}
}

// Healthy returns nil while messages are taken, and otherwise why not.
func (c *Consumer) Healthy() error {
	if !c.deps.gate.isOpen() {
		return errors.New("the database is away")
	}
	return nil
}
