package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/notification-service/internal/admin"
	"github.com/cityconnect/cityconnect/notification-service/internal/api"
	"github.com/cityconnect/cityconnect/notification-service/internal/broadcast"
	"github.com/cityconnect/cityconnect/notification-service/internal/config"
	"github.com/cityconnect/cityconnect/notification-service/internal/crowd"
	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/geocoder"
	"github.com/cityconnect/cityconnect/notification-service/internal/notifier"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse/transport"
	"github.com/cityconnect/cityconnect/notification-service/internal/web"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/delay"
	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/group"
	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/monitor"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/operators"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/reconciliation"
	"github.com/cityconnect/cityconnect/platform/restore"
	"github.com/cityconnect/cityconnect/platform/retention"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
)

// An app is the parts of the service, joined.
type app struct {
	log      zerolog.Logger
	health   *service.Health
	hub      *sse.Hub
	bus      *broadcast.Bus
	groups   *group.Runner
	restored *restore.Watch
	writes   *pgpool.Writes
	eraser   *erasure.Eraser
	schedule *schedule.Scheduler
	history  *history.Recorder
	broker   *monitor.Broker
	monitor  *monitor.Monitor
	metrics  *prometheus.Registry
	listener net.Listener
	handler  http.Handler

	operations net.Listener // for operators alone
}

// build joins the parts and opens the ports.
func build(ctx context.Context, cfg config.Config, pool *pgxpool.Pool, log zerolog.Logger) (*app, error) {
	a := &app{log: log, metrics: service.NewRegistry()}
	db, err := a.addStorage(cfg, pool)
	if err != nil {
		return nil, err
	}
	if err := a.addChannels(cfg, pool, db); err != nil {
		return nil, err
	}
	if err := a.addEdge(ctx, cfg, pool, db); err != nil {
		return nil, err
	}
	return a, nil
}

// addStorage adds the parts that keep the database in order, and returns it.
func (a *app) addStorage(cfg config.Config, pool *pgxpool.Pool) (*postgres.DB, error) {
	a.eraser = erasure.New(pool, cfg.Keys, postgres.ErasureSteps(cfg.Keys), a.log)
	options := postgres.Options{
		Mail: cfg.Mail.Enabled(), MailDue: cfg.Mail.ReadFirst, Push: cfg.Push.Enabled(), Erased: a.eraser, Keys: cfg.Keys,
	}
	if cfg.Mail.Officials != "" {
		options.Notices = []string{email.Officials}
	}
	db := postgres.New(pool, options)
	a.restored = restore.New(pool, db.Streams.StartOver, a.log)
	tables, err := migrations.Tables(migrations.Notification)
	if err != nil {
		return nil, err
	}
	a.writes = pgpool.NewWrites(pool, tables, a.log)
	a.schedule, err = schedule.New(schedule.Dependencies{Pool: pool, Audit: admin.AuditSchedule, Log: a.log, Metrics: a.metrics},
		retention.Job(append(cfg.Retention.Tasks(), erasure.Tasks(cfg.Retention.Audit)...), a.metrics))
	if err != nil {
		return nil, fmt.Errorf("set up schedules: %w", err)
	}
	return db, nil
}

// addChannels adds the parts through which messages reach the streams.
func (a *app) addChannels(cfg config.Config, pool *pgxpool.Pool, db *postgres.DB) error {
	a.hub = sse.New(cfg.Stream, db.Streams, a.log, a.metrics)
	a.bus = broadcast.New(broadcast.Config{
		Hub: a.hub, Keyring: cfg.Keys, Topology: cfg.Topology, Metrics: a.metrics,
		Rabbit: rabbit.Config{URL: cfg.RabbitURL, Log: a.log},
	})
	var err error
	a.groups, err = group.New(cfg.Consumer, group.Dependencies{
		Database: pool, RabbitURL: cfg.RabbitURL, ManagementURL: cfg.ManagementURL, Names: cfg.Topology, Log: a.log, Metrics: a.metrics,
		Writable: a.writes.Probe, Await: a.awaitDatabase, Scrub: db.Erased.Scrub,
	}, notifier.New(db.Effects, a.bus, cfg.Keys).Group(), notifier.NewAdopter(db.Adoptions, a.bus, cfg.Keys).Group(), webhook.Group(db.Endpoints, nil)) // which delivery-worker reads
	if err != nil {
		return err
	}
	a.history = history.NewRecorder(pool, func(context.Context) history.Figures { return admin.PoolFigures(a.groups.Consumer) }, a.log)
	return nil
}

// addEdge adds what answers over HTTP, and opens the ports.
func (a *app) addEdge(ctx context.Context, cfg config.Config, pool *pgxpool.Pool, db *postgres.DB) error {
	verifier, err := auth.New(ctx, cfg.Auth, a.log, auth.RefuseErased(a.eraser.Erased), auth.RefuseAdopted(db.Adoptions.Adopted))
	if err != nil {
		return fmt.Errorf("set up sign-in: %w", err)
	}
	cfg.Page.Mails, cfg.Page.Push, cfg.Page.Geocoder = cfg.Mail.Enabled(), cfg.Push.Enabled(), cfg.Geocoder.URL != nil
	a.health = service.NewHealth(a.log, service.Details{
		Features: map[string]bool{
			"photos": cfg.Page.PhotoStore != "", "comments": bool(cfg.Page.Comments), "mail": cfg.Page.Mails, "push": cfg.Page.Push,
			"webhooks": true, "guests": bool(cfg.Auth.Guests), "map": cfg.Page.MapFile != "", "geocoder": cfg.Page.Geocoder,
		},
		Schema: func(ctx context.Context) (uint, error) { return migrations.Applied(ctx, pool) },
	}, append(verifier.Checks(),
		service.Check{Name: "database", Probe: pool.Ping},
		service.Check{Name: "writes", Probe: a.writes.Probe},
		service.Check{Name: "schema", Probe: func(ctx context.Context) error { return checkSchema(ctx, pool) }},
		service.Check{Name: "consumer", Probe: a.probeConsumer, Optional: true})...)
	edge := api.Config{
		OwnData:       postgres.OwnData(pool),
		Notifications: db.Streams, Follows: db.Follows, Consents: db.Contacts, Streams: a.hub,
		Auth: verifier, Health: a.health, Metrics: a.metrics, Log: a.log,
		Problems: maps.Clone(admin.Problems),
	}
	maps.Copy(edge.Problems, api.MailProblems)
	if cfg.Page.Mails {
		edge.Mail = api.Mail{
			Contacts: db.Contacts, Digests: db.Digests, Bounces: db.Mails, Keys: email.NewKeys(cfg.Keys), BounceSecret: cfg.Mail.BounceSecret,
			Own: cfg.Mail.Own(), Callers: api.Callers{Store: db.Callers, Ring: cfg.Keys, Erased: a.eraser.Erased},
		}
	}
	if cfg.Page.Push {
		edge.Push = api.Push{Devices: db.Devices, Keys: push.NewKeys(cfg.Keys), Config: &cfg.Push}
	}
	if cfg.Page.Geocoder {
		edge.Places = geocoder.New(*cfg.Geocoder.URL, cityOf(cfg.Page), cfg.Geocoder.Rate)
	}
	cfg.Page.Endpoints = verifier.Endpoints
	if edge.Page, err = web.New(cfg.Page, cfg.Auth); err != nil {
		return fmt.Errorf("set up the page: %w", err)
	}
	past := func(ctx context.Context, span time.Duration) (history.History, error) {
		return history.Read(ctx, pool, span)
	}
	compared := reconciliation.NewResults(pool, reconciliation.ToOperations)
	a.addMonitor(cfg, pool, db, compared)
	edge.Admin = append(admin.New(deadletter.NewStore(pool), delay.NewStore(pool), a.groups.Consumer, a.groups.Checker).Operations(),
		admin.NewWebhooks(db.Endpoints, db.Deliveries, a.groups.Checker, cfg.Webhooks, cfg.Keys).Operations(),
		admin.StoryOperations(postgres.NewStories(pool, queuesOf(cfg.Topology)...)), admin.EmailOperations(db.Mails, crowd.NewRounding(cfg.Keys)), operators.ErasureOperations(a.eraser), operators.ScheduleOperations(a.schedule),
		operators.HealthOperations(a.monitor), operators.ReconciliationOperations(compared), openapi.Operations{"workerPoolHistory": operators.History(past)})
	if a.handler, err = api.New(edge); err != nil {
		return fmt.Errorf("set up API: %w", err)
	}
	streams := net.ListenConfig{Control: transport.Control} // bounds the send buffers, as streams need it
	if a.listener, err = streams.Listen(ctx, "tcp", cfg.Addr); err != nil {
		return fmt.Errorf("listen for HTTP: %w", err)
	}
	a.operations, err = service.Listen(ctx, cfg.Operations)
	return err
}

// addMonitor adds what the operators' console shows of the state of this service's
// parts.
func (a *app) addMonitor(cfg config.Config, pool *pgxpool.Pool, db *postgres.DB, compared *reconciliation.Results) {
	worker := cfg.Topology.Named(webhook.Queue)
	a.broker = monitor.NewBroker(rabbit.Config{URL: cfg.RabbitURL, Name: "monitor", Log: a.log}, queuesOf(cfg.Topology)...)
	a.monitor = monitor.New(admin.HealthParts(admin.HealthConfig{
		Database: monitor.NewDatabase(pool, a.writes.Probe), Broker: a.broker, Nodes: a.groups.Checker.Nodes, Pools: a.groups.Consumer,
		Letters: deadletter.NewStore(pool), Schedules: a.schedule.List, Targets: db.Ledger, Compared: compared.Recent, Worker: worker,
		Mail: cfg.Mail.Enabled(), Push: cfg.Push.Enabled(), Mails: db.Mails, Rounding: crowd.NewRounding(cfg.Keys),
	})...)
}

// queuesOf returns the queues of all groups, also of those in other processes.
func queuesOf(names event.Topology) []string {
	queues := []string{names.Named(webhook.Queue), names.Named(notifier.AdoptionsQueue)}
	for _, key := range event.Keys() {
		queues = append(queues, names.Queue(key))
	}
	return queues
}

// runMonitor reads the state of the parts until ctx ends.
func (a *app) runMonitor(ctx context.Context) error {
	defer a.broker.Close()
	return a.monitor.Run(ctx)
}

// cityOf returns where places are looked for.
func cityOf(page web.Config) *geocoder.Box {
	b := page.City()
	if b == nil {
		return nil
	}
	return &geocoder.Box{West: b[0], South: b[1], East: b[2], North: b[3]}
}

// run runs the parts until ctx ends and they have drained. First the foreground
// drains, then the background, which the foreground needs for it.
func (a *app) run(ctx context.Context) error {
	backgroundCtx, endBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer endBackground()
	background, backgroundCtx := errgroup.WithContext(backgroundCtx)
	background.Go(func() error { return a.hub.Run(backgroundCtx) })
	background.Go(func() error { return a.bus.Run(backgroundCtx) })
	background.Go(func() error { return a.history.Run(backgroundCtx) })
	background.Go(func() error { return a.runMonitor(backgroundCtx) })
	background.Go(func() error { return service.ServeOperations(backgroundCtx, a.operations, a.metrics, a.health, a.log) })

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	context.AfterFunc(backgroundCtx, stop) // the others cannot work without them
	foreground, ctx := errgroup.WithContext(ctx)
	foreground.Go(func() error { return a.groups.Run(ctx) })
	foreground.Go(func() error { return a.schedule.Run(ctx) })
	_ = a.eraser.Refresh(ctx) // Run goes on with it
	foreground.Go(func() error { return a.eraser.Run(ctx) })
	foreground.Go(func() error {
		return service.Serve(ctx, a.listener, a.handler, service.ServeOptions{Log: a.log, Health: a.health, Drain: a.hub.Drain})
	})
	err := foreground.Wait()
	endBackground()
	if backgroundErr := background.Wait(); err == nil {
		err = backgroundErr
	}
	return err
}

// awaitDatabase returns once it is known whether the database was restored, and
// the steps after a restore are done.
func (a *app) awaitDatabase(ctx context.Context) error {
	if err := a.restored.Await(ctx); err != nil {
		return err
	}
	_ = a.writes.Probe(ctx) // advances sequences that a restore left behind; the health check repeats it
	a.hub.Compare()         // a stream that was opened before may be of before a restore
	return nil
}

// probeConsumer returns nil while messages are taken, and otherwise why not.
func (a *app) probeConsumer(ctx context.Context) error {
	if err := a.restored.Probe(ctx); err != nil {
		return err
	}
	return a.groups.Consumer.Healthy()
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
