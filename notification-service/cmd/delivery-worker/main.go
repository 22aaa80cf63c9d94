// Command delivery-worker tells other systems of the city what happened: it
// takes the events from queue.webhooks and sends them to the endpoints that
// operators registered. It is the only process of CityConnect that makes
// connections to addresses from outside, so that all the others can do without
// a way out of their network.
//
// Any number of them may run. It is configured by its environment alone, see
// docs/configuration.md. With the argument healthcheck it asks a running one
// whether it is ready, for containers without a shell.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/notification-service/internal/config"
	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	platformconfig "github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/group"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/service"
)

func main() { service.Main("delivery-worker", run, config.WorkerAddr, nil) }

// run starts every part of the worker and returns once all have drained.
func run(ctx context.Context, getenv func(string) string, logs io.Writer) error {
	service.TuneGC()
	cfg, err := config.LoadWorker(getenv)
	if err != nil {
		return fmt.Errorf("load config: %w", err)
	}
	log := service.NewLogger(logs, "delivery", cfg.LogLevel)
	platformconfig.WarnWithoutTLS(log, map[string]string{
		"DATABASE_URL": cfg.DatabaseURL, "RABBITMQ_URL": cfg.RabbitURL, "RABBITMQ_MANAGEMENT_URL": cfg.ManagementURL,
	})
	metrics := service.NewRegistry()

	pool, err := pgpool.Open(ctx, cfg.DatabaseURL, "delivery-worker")
	if err != nil {
		return err
	}
	defer pool.Close() // last, because everything below uses it
	store := postgres.NewStore(pool)
	client := webhook.NewClient(cfg.Webhook.Rules, cfg.Webhook.Proxy, nil)
	sender := webhook.NewSender(store, cfg.Keys, client, metrics, log)
	dispatcher := ledger.New(cfg.Webhook.Ledger(), sender, postgres.Ledger{Store: store}, metrics, log)
	groups, err := group.New(cfg.Consumer, group.Dependencies{
		Database: pool, RabbitURL: cfg.RabbitURL, ManagementURL: cfg.ManagementURL, Names: cfg.Topology, Log: log, Metrics: metrics,
	}, webhook.Group(store, dispatcher.Wake))
	if err != nil {
		return err
	}
	health := service.NewHealth(log,
		service.Check{Name: "database", Probe: pool.Ping},
		service.Check{Name: "schema", Probe: func(ctx context.Context) error { return migrations.Check(ctx, pool, migrations.Notification) }},
		service.Check{Name: "consumer", Probe: func(context.Context) error { return groups.Consumer.Healthy() }, Optional: true})
	operations, err := service.Listen(ctx, cfg.Operations)
	if err != nil {
		return err
	}

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return groups.Run(ctx) })
	g.Go(func() error { return dispatcher.Run(ctx) })
	g.Go(func() error { return store.RunDeliveryUpkeep(ctx, cfg.Retention, log) })
	g.Go(func() error {
		return service.Serve(ctx, operations, handler(metrics, health), service.ServeOptions{Log: log, Health: health})
	})
	return g.Wait()
}

// handler serves what operators and containers ask: nobody else asks a worker
// anything.
func handler(metrics *prometheus.Registry, health *service.Health) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", health.Live)
	mux.HandleFunc("GET /readyz", health.Ready)
	mux.Handle("/", service.NewOperations(metrics, health))
	return mux
}
