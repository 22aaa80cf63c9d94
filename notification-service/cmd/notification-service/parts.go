package main

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/notification-service/internal/admin"
	"github.com/cityconnect/cityconnect/notification-service/internal/api"
	"github.com/cityconnect/cityconnect/notification-service/internal/config"
	"github.com/cityconnect/cityconnect/notification-service/internal/consumer"
	"github.com/cityconnect/cityconnect/notification-service/internal/courier"
	"github.com/cityconnect/cityconnect/notification-service/internal/deadletter"
	"github.com/cityconnect/cityconnect/notification-service/internal/live"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse/transport"
	"github.com/cityconnect/cityconnect/notification-service/internal/topology"
	"github.com/cityconnect/cityconnect/notification-service/internal/upkeep"
	"github.com/cityconnect/cityconnect/notification-service/internal/web"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/service"
)

// parts are what the service consists of.
type parts struct {
	log      zerolog.Logger
	health   *service.Health
	hub      *sse.Hub
	live     *live.Exchange
	courier  *courier.Courier
	checker  *topology.Checker
	consumer *consumer.Consumer
	archiver *deadletter.Archiver
	replayer *deadletter.Replayer
	store    *postgres.Store
	listener net.Listener
	handler  http.Handler
}

// assemble joins the parts and opens the port.
func assemble(ctx context.Context, cfg config.Config, pool *pgxpool.Pool, log zerolog.Logger) (*parts, error) {
	metrics := service.NewRegistry()
	store := postgres.NewStore(pool)
	p := &parts{log: log, store: store, hub: sse.New(cfg.Stream, store, log, metrics)}
	p.live = live.New(live.Config{
		Hub: p.hub, Keyring: cfg.Keys, Topology: cfg.Topology, Metrics: metrics,
		Rabbit: rabbit.Config{URL: cfg.RabbitURL, Log: log},
	})
	broker := topology.New(cfg.Topology, cfg.Consumer.Ladder())
	var err error
	if p.checker, err = newChecker(cfg, broker, log); err != nil {
		return nil, err
	}
	p.courier = courier.New(rabbit.Config{URL: cfg.RabbitURL, Name: "courier", Log: log}, metrics, p.checker.Unroutable)
	p.replayer = deadletter.NewReplayer(store, p.courier, log)
	p.archiver = deadletter.NewArchiver(store, rabbit.Config{URL: cfg.RabbitURL, Name: "archiver", Log: log}, broker)
	p.consumer, err = consumer.New(consumer.Config{
		Store: store, Pools: store, Announcer: p.live, Courier: p.courier, Keyring: cfg.Keys,
		Topology: broker, Tuning: cfg.Consumer, Log: p.log, Metrics: metrics,
		Rabbit: rabbit.Config{URL: cfg.RabbitURL, Name: "consumer", Log: p.log},
	})
	if err != nil {
		return nil, err
	}
	verifier, err := auth.New(ctx, cfg.Auth, log)
	if err != nil {
		return nil, fmt.Errorf("set up sign-in: %w", err)
	}
	p.health = service.NewHealth(log,
		service.Check{Name: "database", Probe: pool.Ping, Optional: true}, // streams stay, and clients wait for it
		service.Check{Name: "consumer", Probe: func(context.Context) error { return p.consumer.Healthy() }, Optional: true})
	page, err := web.New(cfg.Page, cfg.Auth)
	if err != nil {
		return nil, fmt.Errorf("set up the page: %w", err)
	}
	p.handler, err = api.New(api.Config{
		Store: store, Streams: p.hub, Auth: verifier, Health: p.health, Metrics: metrics, Page: page, Log: log,
		Admin: admin.New(store, p.consumer, p.checker).Handlers(),
	})
	if err != nil {
		return nil, fmt.Errorf("set up API: %w", err)
	}
	if p.listener, err = listen(ctx, cfg.Addr); err != nil {
		return nil, err
	}
	return p, nil
}

// newChecker returns the topology's checker, which sees the broker's
// management API where the environment names it.
func newChecker(cfg config.Config, t *topology.Topology, log zerolog.Logger) (*topology.Checker, error) {
	var management *topology.Management
	if cfg.ManagementURL != "" {
		var err error
		if management, err = topology.NewManagement(cfg.ManagementURL, cfg.RabbitURL); err != nil {
			return nil, fmt.Errorf("RABBITMQ_MANAGEMENT_URL: %w", err)
		}
	}
	return topology.NewChecker(t, management, rabbit.Config{URL: cfg.RabbitURL, Name: "checker", Log: log}), nil
}

// listen opens the port with bounded send buffers, as streams want them.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	config := net.ListenConfig{Control: transport.Control}
	listener, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for HTTP: %w", err)
	}
	return listener, nil
}

// run runs the parts until ctx ends and they have drained. What others need to
// drain, ends after them.
func (p *parts) run(ctx context.Context) error {
	support, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	behind, supported := errgroup.WithContext(support)
	behind.Go(func() error { return p.hub.Run(supported) })
	behind.Go(func() error { return p.live.Run(supported) })
	behind.Go(func() error { return p.courier.Run(supported) })

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	context.AfterFunc(supported, stop) // without them there is no going on
	front, ctx := errgroup.WithContext(ctx)
	front.Go(func() error { return p.consumer.Run(ctx) })
	front.Go(func() error { return p.checker.Run(ctx) })
	front.Go(func() error { return p.archiver.Run(ctx) })
	front.Go(func() error { return p.replayer.Run(ctx) })
	front.Go(func() error { return upkeep.Run(ctx, p.store, p.log) })
	front.Go(func() error {
		return service.Serve(ctx, p.listener, p.handler, service.ServeOptions{Log: p.log, Health: p.health, Drain: p.hub.Drain})
	})
	err := front.Wait()
	end()
	if ended := behind.Wait(); err == nil {
		err = ended
	}
	return err
}
