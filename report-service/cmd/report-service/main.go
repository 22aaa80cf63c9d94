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

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/migrations"
	platformconfig "github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/restore"
	"github.com/cityconnect/cityconnect/platform/retention"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/api"
	"github.com/cityconnect/cityconnect/report-service/internal/config"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
	"github.com/cityconnect/cityconnect/report-service/internal/upkeep"
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
	platformconfig.WarnOfRemoved(log, getenv)
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
	upkeep     *upkeep.Store
	categories *settings.Categories
	areas      *settings.Areas
	deadlines  *postgres.Deadlines
	questions  *postgres.Questions
	duplicates *postgres.Duplicates
	reports    *postgres.Reports
	workbench  *postgres.Workbench
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
	c.guests, c.reports, c.workbench = postgres.NewGuests(c.db), postgres.NewReports(c.db), postgres.NewWorkbench(c.db)
	c.categories, c.areas = settings.NewCategories(c.db.City()), settings.NewAreas(c.db.City())
	c.upkeep, c.deadlines, c.duplicates = upkeep.New(pool, cfg.Keys, c.db), postgres.NewDeadlines(c.db), postgres.NewDuplicates(c.db)
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
		c.deadlines.OverdueJob(), c.deadlines.DeadlinesJob(), c.questions.Job(), c.reports.NamesJob(), c.areas.Job())
	if err != nil {
		return nil, fmt.Errorf("set up schedules: %w", err)
	}
	return c, nil
}

// nameCategories makes the city's first language that of messages, and logs which of
// its languages an operator still has to write texts in.
func (c *core) nameCategories(ctx context.Context, languages []string, log zerolog.Logger) {
	if err := c.categories.UseLanguage(ctx, languages[0]); err != nil {
		log.Warn().Err(err).Msg("updating category names failed, messages keep the old names until the next start")
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
