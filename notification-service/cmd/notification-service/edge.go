package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/notification-service/internal/admin"
	"github.com/cityconnect/cityconnect/notification-service/internal/api"
	"github.com/cityconnect/cityconnect/notification-service/internal/config"
	"github.com/cityconnect/cityconnect/notification-service/internal/crowd"
	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/geocoder"
	"github.com/cityconnect/cityconnect/notification-service/internal/notifier"
	"github.com/cityconnect/cityconnect/notification-service/internal/open311"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse/transport"
	"github.com/cityconnect/cityconnect/notification-service/internal/web"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/delay"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/monitor"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/operators"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/reconciliation"
	"github.com/cityconnect/cityconnect/platform/service"
)

// An edge is the API and the page, with the two ports: the one of the API and the one of the
// operators.
type edge struct {
	handler              http.Handler
	health               *service.Health
	broker               *monitor.Broker
	monitor              *monitor.Monitor
	requests, operations net.Listener
}

func newEdge(ctx context.Context, c *core, cfg config.Config) (*edge, error) {
	log := c.Log
	verifier, err := auth.New(ctx, cfg.Auth, log, auth.RefuseErased(c.eraser.Erased), auth.RefuseAdopted(c.db.Adoptions.Adopted))
	if err != nil {
		return nil, fmt.Errorf("set up sign-in: %w", err)
	}
	page := &cfg.Page
	page.Mails, page.Push, page.Geocoder, page.Endpoints = cfg.Mail.Enabled(), cfg.Push.Enabled(), cfg.Geocoder.URL != nil, verifier.Endpoints
	page.Appearance = c.db.Appearance.Now
	pages, err := web.New(*page, cfg.Auth)
	if err != nil {
		return nil, fmt.Errorf("set up the page: %w", err)
	}
	e := &edge{health: service.NewHealth(log, service.Details{
		Features: map[string]bool{
			"photos": page.PhotoStore != "", "comments": bool(page.Comments), "mail": page.Mails, "push": page.Push,
			"webhooks": true, "guests": bool(cfg.Auth.Guests), "map": page.MapFile != "", "geocoder": page.Geocoder,
		},
		Schema: func(ctx context.Context) (uint, error) { return migrations.Applied(ctx, c.Pool) },
	}, append(verifier.Checks(), c.checks()...)...)}
	compared := reconciliation.NewResults(c.Pool, reconciliation.ToOperations)
	c.Metrics.MustRegister(compared)
	e.watch(c, cfg, compared)
	callers, residents := c.forResidents(cfg)
	problems := maps.Clone(admin.Problems)
	maps.Copy(problems, api.MailProblems)
	e.handler, err = api.New(
		api.Server{Auth: verifier, Health: e.health, Metrics: c.Metrics, Log: log, Page: pages, Links: callers.Links, Problems: problems},
		append(residents, append(c.forOperators(cfg),
			operators.ErasureOperations(c.eraser), operators.ScheduleOperations(c.schedule), admin.Appearance{Store: c.db.Appearance}.Operations(),
			admin.Setup{Store: c.db.Setup, MetricsReadAt: e.health.MetricsReadAt}.Operations(), operators.HealthOperations(e.monitor),
			operators.ReconciliationOperations(compared), openapi.Operations{"workerPoolHistory": operators.History(c.history)})...)...)
	if err != nil {
		return nil, fmt.Errorf("set up API: %w", err)
	}
	streams := net.ListenConfig{Control: transport.Control} // bounds the send buffers, as streams need it
	if e.requests, err = streams.Listen(ctx, "tcp", cfg.Addr); err != nil {
		return nil, fmt.Errorf("listen for HTTP: %w", err)
	}
	if e.operations, err = service.Listen(ctx, cfg.Operations); err != nil {
		_ = e.requests.Close() // the process ends
		return nil, err
	}
	return e, nil
}

func (c *core) history(ctx context.Context, span time.Duration) (history.History, error) {
	return history.Read(ctx, c.Pool, span)
}

// forResidents are the parts of the API that residents use, and everybody.
func (c *core) forResidents(cfg config.Config) (api.Callers, []openapi.Operations) {
	var mail api.Mail
	var devices api.Push
	var places api.Places
	if cfg.Page.Mails {
		mail = api.Mail{
			Contacts: c.db.Contacts, Digests: c.db.Digests, Bounces: c.db.Mails, Keys: email.NewKeys(cfg.Keys),
			BounceSecret: cfg.Mail.BounceSecret, Own: cfg.Mail.Own(),
		}
	}
	if cfg.Page.Push {
		devices = api.Push{Devices: c.db.Devices, Keys: push.NewKeys(cfg.Keys), Config: &cfg.Push}
	}
	if cfg.Page.Geocoder {
		places.Geocoder = geocoder.New(*cfg.Geocoder.URL, (*geocoder.Box)(cfg.Page.City()), cfg.Geocoder.Rate)
	}
	callers := api.Callers{Mail: mail, Store: c.db.Callers, Ring: cfg.Keys, Erased: c.eraser.Erased}
	return callers, []openapi.Operations{
		api.Notifications{Store: c.db.Streams}.Operations(),
		api.Follows{Store: c.db.Follows}.Operations(),
		api.Streams{Hub: c.hub}.Operations(),
		mail.Operations(), callers.Operations(), devices.Operations(), places.Operations(),
		api.Preferences{Mail: mail, Push: devices, Consents: c.db.Contacts}.Operations(),
		api.OwnData{Read: postgres.OwnData(c.Pool), Keys: mail.Keys}.Operations(),
	}
}

// forOperators are the parts of the API that operators use.
func (c *core) forOperators(cfg config.Config) []openapi.Operations {
	letters := admin.Letters{Store: deadletter.NewStore(c.Pool)}
	return []openapi.Operations{
		letters.Operations(), letters.ReplayOperations(),
		admin.Delayed{Store: delay.NewStore(c.Pool)}.Operations(),
		admin.Pools{Consumer: c.groups.Consumer, Checker: c.groups.Checker}.Operations(),
		admin.Webhooks{Endpoints: c.db.Endpoints, Deliveries: c.db.Deliveries, Queue: c.groups.Checker, Rules: cfg.Webhooks, Keys: cfg.Keys}.Operations(),
		admin.BackOffice{Store: open311.NewStore(c.Pool, false), Rules: cfg.Webhooks, Keys: cfg.Keys}.Operations(),
		admin.StoryOperations(postgres.NewStories(c.Pool, queuesOf(cfg.Topology)...)),
		admin.EmailOperations(c.db.Mails, crowd.NewRounding(cfg.Keys)),
	}
}

// watch reads what the operators' console shows of the state of this service's parts.
func (e *edge) watch(c *core, cfg config.Config, compared *reconciliation.Results) {
	worker := cfg.Topology.Named(webhook.Queue)
	e.broker = monitor.NewBroker(rabbit.Config{URL: cfg.RabbitURL, Name: "monitor", Log: c.Log}, queuesOf(cfg.Topology)...)
	e.monitor = monitor.New(admin.HealthParts(admin.HealthConfig{
		Database: monitor.NewDatabase(c.Pool, c.writes.Probe), Broker: e.broker, Nodes: c.groups.Checker.Nodes, Pools: c.groups.Consumer,
		Letters: deadletter.NewStore(c.Pool), Schedules: c.schedule.List, Targets: c.db.Ledger, BackOffice: open311.NewStore(c.Pool, false), Compared: compared.Recent, Worker: worker,
		Mail: cfg.Mail.Enabled(), Push: cfg.Push.Enabled(), Mails: c.db.Mails, Rounding: crowd.NewRounding(cfg.Keys),
	})...)
}

// checks are what the service needs to answer.
func (c *core) checks() []service.Check {
	return []service.Check{
		{Name: "database", Probe: c.Pool.Ping},
		{Name: "writes", Probe: c.writes.Probe},
		{Name: "schema", Probe: func(ctx context.Context) error { return checkSchema(ctx, c.Pool) }},
		{Name: "consumer", Probe: c.probeConsumer, Optional: true},
	}
}

// queuesOf returns the queues of all groups, also of those in other processes.
func queuesOf(names event.Topology) []string {
	queues := []string{names.Named(webhook.Queue), names.Named(notifier.AdoptionsQueue), names.Named(notifier.FirmsQueue)}
	for _, key := range event.Keys() {
		queues = append(queues, names.Queue(key))
	}
	return queues
}

// runMonitor reads the state of the parts until ctx ends.
func (e *edge) runMonitor(ctx context.Context) error {
	defer e.broker.Close()
	return e.monitor.Run(ctx)
}

// probeConsumer returns nil while messages are taken, and otherwise why not.
func (c *core) probeConsumer(ctx context.Context) error {
	if err := c.restored.Probe(ctx); err != nil {
		return err
	}
	return c.groups.Consumer.Healthy()
}

// checkSchema returns an error if the database is there and has an older schema.
// While it is away the check "database" says so.
func checkSchema(ctx context.Context, pool *pgxpool.Pool) error {
	err := migrations.Check(ctx, pool, migrations.Notification)
	if pgpool.Classify(err) != pgpool.Unknown {
		return nil
	}
	return err
}
