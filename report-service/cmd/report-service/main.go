// Command report-service takes residents' reports and votes, and announces
// every change through the outbox to those whom it concerns.
//
// It is configured by its environment alone, see docs/configuration.md. With
// the argument healthcheck it checks whether a running one is ready, for
// containers without a shell. With erase, restored or republish it runs that
// command of commands.go, and exits.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/platform/auth"
	platformconfig "github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/monitor"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/reconciliation"
	"github.com/cityconnect/cityconnect/platform/restore"
	"github.com/cityconnect/cityconnect/platform/retention"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/story"
	"github.com/cityconnect/cityconnect/report-service/internal/api"
	"github.com/cityconnect/cityconnect/report-service/internal/blob"
	"github.com/cityconnect/cityconnect/report-service/internal/config"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

func main() { service.Main("report-service", run, config.Addr, commands) }

// run starts every part of the service and returns once all have drained.
func run(ctx context.Context, getenv func(string) string, logs io.Writer) error {
	service.TuneGC()
	cfg, err := config.Load(getenv)
	if err != nil {
		return fmt.Errorf("load config: %w", err)
	}
	log := service.NewLogger(logs, "report", cfg.LogLevel)
	platformconfig.WarnWithoutTLS(log, map[string]string{
		"DATABASE_URL": cfg.DatabaseURL, "RABBITMQ_URL": cfg.RabbitURL, "AUTH_JWKS_URL": cfg.Auth.JWKSURL,
	})
	metrics := service.NewRegistry()

	pool, err := pgpool.Open(ctx, cfg.DatabaseURL, "report-service")
	if err != nil {
		return err
	}
	defer pool.Close() // last, because everything below uses it
	if err := pgpool.SignIn(ctx, pool); err != nil {
		return err
	}
	core, err := newCore(pool, cfg, log, metrics)
	if err != nil {
		return err
	}
	edge, err := newEdge(ctx, core, cfg, log, metrics)
	if err != nil {
		return err
	}

	// The requests drain before what writes their changes ends.
	writing, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var background errgroup.Group
	background.Go(func() error {
		_ = core.restores.Await(writing) // it fails only once there is nothing left to write
		_ = core.writes.Probe(writing)   // advances sequences that a restore left behind; the health check repeats it
		core.nameCategories(writing, cfg.Languages, log)
		return core.db.Run(writing)
	})
	figures := func(ctx context.Context) history.Figures { return api.OutboxFigures(ctx, core.outbox, core.relay) }
	background.Go(func() error { return history.NewRecorder(pool, figures, log).Run(writing) })

	_ = core.eraser.Refresh(ctx) // Run retries
	g, ctx := errgroup.WithContext(ctx)
	for _, part := range []func(context.Context) error{
		core.relay.Run, core.schedules.Run, core.eraser.Run, edge.runMonitor,
		func(ctx context.Context) error { return core.duplicates.Run(ctx, log) },
		func(ctx context.Context) error {
			return service.Serve(ctx, edge.requests, edge.handler, service.ServeOptions{Log: log, Health: edge.health})
		},
		func(ctx context.Context) error {
			return service.ServeOperations(ctx, edge.operations, metrics, edge.health, log)
		},
	} {
		g.Go(func() error { return part(ctx) })
	}
	err = g.Wait()
	end()
	return errors.Join(err, background.Wait())
}

// A core is the database, the relay, and the scheduled work.
type core struct {
	pool       *pgxpool.Pool
	relay      *relay.Relay
	outbox     *outbox.Store
	db         *postgres.DB
	upkeep     *postgres.Upkeep
	categories *postgres.Categories
	areas      *postgres.Areas
	deadlines  *postgres.Deadlines
	questions  *postgres.Questions
	duplicates *postgres.Duplicates
	guests     *postgres.Guests
	restores   *restore.Watch
	writes     *pgpool.Writes
	eraser     *erasure.Eraser
	schedules  *schedule.Scheduler
}

func newCore(pool *pgxpool.Pool, cfg config.Config, log zerolog.Logger, metrics *prometheus.Registry) (*core, error) {
	c := &core{pool: pool, relay: relay.New(cfg.Relay, relay.Dependencies{
		Pool: pool, Keys: cfg.Keys, RabbitURL: cfg.RabbitURL, Topology: cfg.Topology, Log: log, Metrics: metrics,
	})}
	c.outbox = outbox.NewStore(pool, c.relay.Wake)
	metrics.MustRegister(outbox.NewCollector(c.outbox))
	c.db = postgres.NewDB(pool, cfg.Keys, c.relay.Wake, postgres.Rules{
		Resolutions:  report.Resolutions{VerdictDays: cfg.VerdictDays, NeedPhoto: bool(cfg.ResolveNeedsPhoto)},
		QuestionDays: cfg.QuestionDays, GuestReports: cfg.GuestReports,
	})
	c.guests = postgres.NewGuests(c.db)
	c.categories, c.areas = postgres.NewCategories(c.db), postgres.NewAreas(c.db)
	c.upkeep, c.deadlines, c.duplicates = postgres.NewUpkeep(c.db), postgres.NewDeadlines(c.db), postgres.NewDuplicates(c.db)
	c.questions = postgres.NewQuestions(c.db)
	tables, err := migrations.Tables(migrations.Report)
	if err != nil {
		return nil, err
	}
	c.writes = pgpool.NewWrites(pool, tables, log)
	c.restores = restore.New(pool, c.upkeep.StartOver, log)
	c.eraser = erasure.New(pool, cfg.Keys, c.upkeep.ErasureSteps(), log)
	c.schedules, err = schedule.New(schedule.Dependencies{Pool: pool, Audit: c.upkeep.AuditSchedule, Log: log, Metrics: metrics},
		retention.Job(append(cfg.Retention.Tasks(), erasure.Tasks(cfg.Retention.Audit)...), metrics),
		c.deadlines.OverdueJob(), c.deadlines.DeadlinesJob(), c.questions.Job(), c.upkeep.NamesJob(), c.areas.Job())
	if err != nil {
		return nil, fmt.Errorf("set up schedules: %w", err)
	}
	return c, nil
}

// nameCategories makes the city's first language that of messages, and logs which of
// its languages an operator still has to write texts in.
func (c *core) nameCategories(ctx context.Context, languages []string, log zerolog.Logger) {
	if err := c.categories.UseLanguage(ctx, languages[0]); err != nil {
		log.Warn().Err(err).Msg("naming categories failed, messages carry the names of before until the next start")
		return
	}
	list, err := c.categories.List(ctx)
	if err != nil {
		log.Warn().Err(err).Msg("reading categories failed, it is not known whether texts are missing")
		return
	}
	for language, n := range list.Missing(languages) {
		log.Warn().Str("variable", "CITY_LANGUAGES").Str("language", language).Int("categories", n).
			Msg("categories have no text in a language of the city, residents read that in its first language: an operator adds it in the console")
	}
}

// storageEvery is how often the console's reading asks the storage of photos, which
// may cost money.
const storageEvery = 15 * time.Second

// An edge is the API, with the two ports: the one of the API and the one of the
// operators.
type edge struct {
	handler              http.Handler
	health               *service.Health
	broker               *monitor.Broker
	monitor              *monitor.Monitor
	requests, operations net.Listener
}

// costlyShare is the part of the pool's connections that searches, sorted lists, maps
// and exports of everybody may have together, and as many again those of officials.
const costlyShare = 5

func newEdge(ctx context.Context, c *core, cfg config.Config, log zerolog.Logger, metrics *prometheus.Registry) (*edge, error) {
	files, storage, err := openPhotos(cfg, log)
	if err != nil {
		return nil, err
	}
	verifier, err := auth.New(ctx, cfg.Auth, log, auth.RefuseErased(c.eraser.Erased), auth.RefuseAdopted(c.guests.Adopted))
	if err != nil {
		return nil, fmt.Errorf("set up sign-in: %w", err)
	}
	var comments api.CommentStore
	if cfg.Comments {
		comments = postgres.NewComments(c.db)
	}
	e := &edge{health: service.NewHealth(log, service.Details{
		Features: map[string]bool{"photos": files != nil, "comments": bool(cfg.Comments), "map_bounds": cfg.City != nil, "open311": bool(cfg.Open311), "guests": bool(cfg.Auth.Guests)},
		Schema:   func(ctx context.Context) (uint, error) { return migrations.Applied(ctx, c.pool) },
	}, slices.Concat(verifier.Checks(), storage, c.checks())...)}
	photos := cfg.Topology.Queue(event.PhotoUploadedKey)
	compared := reconciliation.NewResults(c.pool, outbox.AuditClosing)
	var stored func(context.Context) error
	for _, check := range storage {
		stored = monitor.Sparingly(storageEvery, check.Probe)
	}
	e.broker = monitor.NewBroker(rabbit.Config{URL: cfg.RabbitURL, Name: "monitor", Log: log}, photos)
	e.monitor = monitor.New(api.HealthParts(api.HealthConfig{
		Database: monitor.NewDatabase(c.pool, c.writes.Probe), Broker: e.broker, Relay: c.relay, Outbox: c.outbox,
		Schedules: c.schedules.List, Storage: stored, PhotoQueue: photos, Compared: compared.Recent,
	})...)
	e.handler, err = api.New(api.Config{
		Reports: postgres.NewReports(c.db), Categories: c.categories, Areas: c.areas, CityName: string(cfg.CityName), Languages: cfg.Languages,
		Comments: comments, Photos: postgres.NewPhotos(c.db), Files: files,
		Moderation: postgres.NewModeration(c.db), Workbench: postgres.NewWorkbench(c.db), Duplicates: c.duplicates, Deadlines: c.deadlines, Questions: c.questions, OwnData: c.db.OwnData,
		Open311: api.Open311{On: bool(cfg.Open311), Applications: postgres.NewOpen311(c.db), PerKey: cfg.Open311PerKey},
		Guests: api.Guests{
			On: bool(cfg.Auth.Guests), Store: c.guests, PerDay: cfg.GuestReports, PerAddress: cfg.GuestsPerAddress,
			Votes: bool(cfg.GuestVotes), Comments: bool(cfg.GuestComments),
		},
		Outbox: c.outbox, Relay: c.relay, Story: story.NewStore(c.pool, photos), Reconciliation: compared, Erasures: c.eraser, Schedules: c.schedules, ScheduleAudit: c.upkeep.ScheduleAudit,
		History: func(ctx context.Context, span time.Duration) (history.History, error) {
			return history.Read(ctx, c.pool, span)
		},
		Monitor: e.monitor, Auth: verifier, Health: e.health, Metrics: metrics, Log: log, City: cfg.City,
		CostlyAtOnce:   int(c.pool.Config().MaxConns) / costlyShare,
		ReportsPerUser: cfg.ReportsPerUser, VotesPerUser: cfg.VotesPerUser, CommentsPerUser: cfg.CommentsPerUser,
	})
	if err != nil {
		return nil, fmt.Errorf("set up API: %w", err)
	}
	if e.requests, err = service.Listen(ctx, cfg.Addr); err != nil {
		return nil, err
	}
	if e.operations, err = service.Listen(ctx, cfg.Operations); err != nil {
		_ = e.requests.Close() // the process ends
		return nil, err
	}
	return e, nil
}

// runMonitor reads the state of the parts until ctx ends.
func (e *edge) runMonitor(ctx context.Context) error {
	defer e.broker.Close()
	return e.monitor.Run(ctx)
}

// checks are what the service needs to answer. The relay is optional: changes
// are accepted while the broker is away.
func (c *core) checks() []service.Check {
	return []service.Check{
		{Name: "database", Probe: c.pool.Ping},
		{Name: "schema", Probe: func(ctx context.Context) error { return migrations.Check(ctx, c.pool, migrations.Report) }},
		{Name: "writes", Probe: c.writes.Probe},
		{Name: "restore", Probe: c.restores.Probe},
		{Name: "relay", Probe: c.relay.Probe, Optional: true},
	}
}

// openPhotos returns the storage of photos with its health check, or nothing in
// a city whose reports have no photos.
func openPhotos(cfg config.Config, log zerolog.Logger) (api.Files, []service.Check, error) {
	if cfg.PhotoStore == "" {
		return nil, nil, nil
	}
	files, err := blob.Open(cfg.Blob())
	if err != nil {
		return nil, nil, fmt.Errorf("open storage of photos: %w", err)
	}
	if blob.IsFolder(cfg.PhotoStore) {
		log.Info().Msg("photos are kept in a folder: replicas on other machines need the same one, or PHOTO_STORE=s3://…")
	}
	return files, []service.Check{{Name: "storage", Probe: files.Check, Optional: true}}, nil
}
