// Command delivery-worker sends events to other systems, and mails and pushes to
// residents. It takes the events from queue.webhooks and sends them to the endpoints
// that operators registered; mails and pushes go to residents who asked for them. It
// is the only process of CityConnect that connects to addresses from outside, so that
// all the others need no access to other networks.
//
// Any number of them may run. It is configured by its environment alone, see
// docs/configuration.md. With the argument healthcheck it asks a running one
// whether it is ready, for containers without a shell.
package main

import (
	"context"
	"fmt"
	"io"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/notification-service/internal/config"
	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/notifier"
	"github.com/cityconnect/cityconnect/notification-service/internal/open311"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/group"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/program"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/topology"
)

func main() { service.Main("delivery-worker", run, config.WorkerAddr, nil) }

// run starts every part of the worker and returns once all have drained.
func run(ctx context.Context, getenv func(string) string, logs io.Writer) error {
	service.TuneGC()
	cfg, err := config.LoadWorker(getenv)
	if err != nil {
		return fmt.Errorf("load config: %w", err)
	}
	base := program.Begin("delivery-worker", cfg.Service, getenv, logs, map[string]string{"RABBITMQ_MANAGEMENT_URL": cfg.ManagementURL})
	wording.Use(cfg.Words, cfg.Languages, base.Log)
	if err := base.Open(ctx); err != nil {
		return err
	}
	pool, log, metrics := base.Pool, base.Log, base.Metrics
	defer pool.Close()
	// This process erases nobody, but must not keep messages about the erased.
	options := postgres.Options{Erased: erasure.New(pool, cfg.Keys, nil, log), Keys: cfg.Keys}
	if cfg.Mail.Enabled() && cfg.Mail.OperatorsAddress != "" {
		options.Notices = []string{email.Operators}
	}
	db := postgres.New(pool, options)
	client := webhook.NewClient(cfg.Webhook.Rules, cfg.Webhook.Proxy, nil)
	sender := webhook.NewSender(db.Endpoints, cfg.Keys, client, metrics, log)
	dispatcher := ledger.New(cfg.Webhook.Ledger(), sender, db.Ledger, metrics, log)
	tables, err := migrations.Tables(migrations.Notification)
	if err != nil {
		return err
	}
	writes := pgpool.NewWrites(pool, tables, log)
	groups, err := group.New(cfg.Consumer, group.Dependencies{
		Database: pool, Writable: writes.Probe, RabbitURL: cfg.RabbitURL, ManagementURL: cfg.ManagementURL, Names: cfg.Topology, Log: log, Metrics: metrics,
		Before: []topology.Group{notifier.Queues()}, Scrub: db.Erased.Scrub,
	}, webhook.Group(db.Endpoints, webhook.NewEffect(db.Endpoints, dispatcher.Wake)))
	if err != nil {
		return err
	}
	dispatchers := []*ledger.Dispatcher{dispatcher}
	parts := []program.Part{
		groups.Run,
		func(ctx context.Context) error { return db.Deliveries.RunUpkeep(ctx, cfg.Retention, log) },
		func(ctx context.Context) error { return db.Endpoints.RunSettle(ctx, log) },
		webhook.NewWatcher(db.Endpoints, cfg.Webhook.DisableAfter, metrics, log).Run,
	}
	if cfg.Mail.Enabled() {
		cfg.Mail.Appearance = db.Appearance.Now
		relay := newRelay(&cfg.Mail, log)
		defer relay.Close()
		mails := email.NewSender(&cfg.Mail, db.Mails, email.NewKeys(cfg.Keys), relay, metrics, log)
		digests, err := schedule.New(schedule.Dependencies{Pool: pool, Log: log, Metrics: metrics}, email.DigestJobs(db.Digests, cfg.Mail.DigestSpread)...)
		if err != nil {
			return fmt.Errorf("set up digests: %w", err)
		}
		dispatchers = append(dispatchers, ledger.New(cfg.Mail.Ledger(), mails, db.Ledger, metrics, log))
		parts = append(parts, digests.Run)
	}
	if cfg.ReportServiceURL != "" {
		requests := open311.NewSender(open311.NewStore(pool, options.Notices != nil), cfg.Keys, client, cfg.ReportServiceURL, cfg.Mail.PublicURL, log)
		dispatchers = append(dispatchers, ledger.New(open311.Ledger(cfg.Webhook.Concurrency, cfg.Webhook.Timeout, cfg.Webhook.DisableAfter), requests, db.Ledger, metrics, log))
		parts = append(parts, open311.NewPoller(requests, metrics).Run)
	}
	if cfg.Push.Enabled() {
		pushes := push.NewSender(&cfg.Push, db.Devices, push.NewKeys(cfg.Keys), client, metrics, log)
		dispatchers = append(dispatchers, ledger.New(cfg.Push.Ledger(), pushes, db.Ledger, metrics, log))
	}
	session := ledger.NewSession(pool.Config().ConnConfig, log)
	health := service.NewHealth(log, service.Details{
		Features: map[string]bool{"mail": cfg.Mail.Enabled(), "push": cfg.Push.Enabled(), "webhooks": true, "open311": cfg.ReportServiceURL != ""},
		Schema:   func(ctx context.Context) (uint, error) { return migrations.Applied(ctx, pool) },
	},
		service.Check{Name: "database", Probe: pool.Ping},
		service.Check{Name: "writes", Probe: writes.Probe},
		service.Check{Name: "schema", Probe: func(ctx context.Context) error { return migrations.Check(ctx, pool, migrations.Notification) }},
		service.Check{Name: "consumer", Probe: func(context.Context) error { return groups.Consumer.Healthy() }, Optional: true})
	operations, err := service.Listen(ctx, cfg.Operations)
	if err != nil {
		return err
	}

	return program.Run(ctx, append(parts,
		func(ctx context.Context) error { return session.Run(ctx, dispatchers...) },
		func(ctx context.Context) error {
			return service.Serve(ctx, operations, service.NewOperations(metrics, health), service.ServeOptions{Log: log, Health: health})
		}), nil)
}

// newRelay returns the connections to the city's mail server, with a warning if they
// are not encrypted.
func newRelay(cfg *email.Config, log zerolog.Logger) *email.Relay {
	if cfg.Server.TLS == email.NoTLS {
		log.Warn().Str("variable", "MAIL_URL").Str("host", cfg.Server.Host).
			Msg("no TLS: anyone in between can read and change mails; see docs/mail.md")
	}
	return email.NewRelay(cfg, nil)
}
