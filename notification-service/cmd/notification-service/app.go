package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/notification-service/internal/admin"
	"github.com/cityconnect/cityconnect/notification-service/internal/api"
	"github.com/cityconnect/cityconnect/notification-service/internal/broadcast"
	"github.com/cityconnect/cityconnect/notification-service/internal/config"
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
	"github.com/cityconnect/cityconnect/platform/group"
	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/rabbit"
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
	eraser   *erasure.Eraser
	schedule *schedule.Scheduler
	history  *history.Recorder
	metrics  *prometheus.Registry
	listener net.Listener
	handler  http.Handler

	operations net.Listener // for operators alone
}

// build joins the parts and opens the ports.
func build(ctx context.Context, cfg config.Config, pool *pgxpool.Pool, log zerolog.Logger) (*app, error) {
	metrics := service.NewRegistry()
	store := postgres.NewStore(pool)
	a := &app{log: log, metrics: metrics, hub: sse.New(cfg.Stream, store, log, metrics)}
	a.bus = broadcast.New(broadcast.Config{
		Hub: a.hub, Keyring: cfg.Keys, Topology: cfg.Topology, Metrics: metrics,
		Rabbit: rabbit.Config{URL: cfg.RabbitURL, Log: log},
	})
	a.restored = restore.New(pool, store.StartOver, log)
	a.eraser = erasure.New(pool, cfg.Keys, postgres.ErasureSteps(cfg.Keys), log)
	store.RefuseErased(a.eraser, cfg.Keys)
	mail := api.Mail{}
	if cfg.Mail.Enabled() {
		store.WriteMail(cfg.Mail.ReadFirst)
		if cfg.Mail.Officials != "" {
			store.WriteNotices(email.Officials)
		}
		mail = api.Mail{Store: store, Keys: email.NewKeys(cfg.Keys), BounceSecret: cfg.Mail.BounceSecret}
	}
	pushes := api.Push{}
	if cfg.Push.Enabled() {
		store.WritePush()
		pushes = api.Push{Store: store, Keys: push.NewKeys(cfg.Keys), Config: &cfg.Push}
	}
	var err error
	a.schedule, err = schedule.New(schedule.Dependencies{Pool: pool, Audit: admin.AuditSchedule, Log: log, Metrics: metrics},
		retention.Job(append(cfg.Retention.Tasks(), erasure.Tasks(cfg.Retention.Audit)...), metrics))
	if err != nil {
		return nil, fmt.Errorf("set up schedules: %w", err)
	}
	a.groups, err = group.New(cfg.Consumer, group.Dependencies{
		Database: pool, RabbitURL: cfg.RabbitURL, ManagementURL: cfg.ManagementURL, Names: cfg.Topology, Log: log, Metrics: metrics,
		Await: a.awaitDatabase, Scrub: store.ScrubLetters,
	}, notifier.New(store, a.bus, cfg.Keys).Group(), webhook.Group(store, nil)) // which delivery-worker reads
	if err != nil {
		return nil, err
	}
	a.history = history.NewRecorder(pool, func(context.Context) history.Figures { return admin.PoolFigures(a.groups.Consumer) }, log)
	verifier, err := auth.New(ctx, cfg.Auth, log)
	if err != nil {
		return nil, fmt.Errorf("set up sign-in: %w", err)
	}
	verifier.RefuseErased(a.eraser.Erased)
	a.health = service.NewHealth(log, append(verifier.Checks(),
		service.Check{Name: "database", Probe: pool.Ping, Optional: true}, // streams stay, and clients wait for it
		service.Check{Name: "schema", Probe: func(ctx context.Context) error { return checkSchema(ctx, pool) }},
		service.Check{Name: "consumer", Probe: a.probeConsumer, Optional: true})...)
	cfg.Page.Mails, cfg.Page.Push = cfg.Mail.Enabled(), cfg.Push.Enabled()
	var places api.Geocoder
	if cfg.Geocoder.URL != nil {
		places = geocoder.New(*cfg.Geocoder.URL, cityOf(cfg.Page), cfg.Geocoder.Rate)
		cfg.Page.Geocoder = true
	}
	a.health.Describe(service.Details{
		Features: map[string]bool{
			"photos": cfg.Page.PhotoStore != "", "comments": bool(cfg.Page.Comments), "mail": cfg.Mail.Enabled(), "push": cfg.Push.Enabled(),
			"webhooks": true, "map": cfg.Page.MapFile != "", "geocoder": cfg.Geocoder.URL != nil,
		},
		Schema: func(ctx context.Context) (uint, error) { return migrations.Applied(ctx, pool) },
	})
	page, err := web.New(cfg.Page, cfg.Auth)
	if err != nil {
		return nil, fmt.Errorf("set up the page: %w", err)
	}
	operations := admin.New(deadletter.NewStore(pool), delay.NewStore(pool), a.groups.Consumer, a.groups.Checker).Handlers()
	maps.Copy(operations, admin.NewWebhooks(store, a.groups.Checker, cfg.Webhooks, cfg.Keys).Handlers())
	maps.Copy(operations, admin.ErasureHandlers(a.eraser))
	maps.Copy(operations, admin.ScheduleHandlers(a.schedule))
	maps.Copy(operations, admin.EmailHandlers(store))
	maps.Copy(operations, admin.HistoryHandlers(pool))
	problems := maps.Clone(admin.WebhookProblems)
	maps.Copy(problems, api.MailProblems)
	a.handler, err = api.New(api.Config{
		Store: store, Streams: a.hub, Auth: verifier, Health: a.health, Metrics: metrics, Page: page, Mail: mail, Push: pushes, Places: places, Log: log,
		Admin: operations, Problems: problems,
	})
	if err != nil {
		return nil, fmt.Errorf("set up API: %w", err)
	}
	streams := net.ListenConfig{Control: transport.Control} // bounds the send buffers, as streams need it
	if a.listener, err = streams.Listen(ctx, "tcp", cfg.Addr); err != nil {
		return nil, fmt.Errorf("listen for HTTP: %w", err)
	}
	if a.operations, err = service.Listen(ctx, cfg.Operations); err != nil {
		return nil, err
	}
	return a, nil
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
// what that asks for is done.
func (a *app) awaitDatabase(ctx context.Context) error {
	if err := a.restored.Await(ctx); err != nil {
		return err
	}
	a.hub.Compare() // a stream that was opened meanwhile may be of before a restore
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
// While it is away the check "database" says so, and streams go on.
func checkSchema(ctx context.Context, pool *pgxpool.Pool) error {
	err := migrations.Check(ctx, pool, migrations.Notification)
	if pgpool.Classify(err) != pgpool.Unknown {
		return nil
	}
	return err
}
