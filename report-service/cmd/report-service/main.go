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
	"fmt"
	"io"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/program"
	"github.com/cityconnect/cityconnect/platform/restore"
	"github.com/cityconnect/cityconnect/platform/retention"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/api"
	"github.com/cityconnect/cityconnect/report-service/internal/blob"
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
	base := program.Begin("report-service", cfg.Service, getenv, logs, map[string]string{"AUTH_JWKS_URL": cfg.Auth.JWKSURL})
	if err := base.Open(ctx); err != nil {
		return err
	}
	defer base.Pool.Close()
	core, err := newCore(base, cfg)
	if err != nil {
		return err
	}
	edge, err := newEdge(ctx, core, cfg)
	if err != nil {
		return err
	}
	_ = core.eraser.Refresh(ctx) // Run retries
	return program.Run(ctx,
		[]program.Part{
			core.relay.Run, core.schedules.Run, core.eraser.Run, edge.runMonitor, edge.people.Run,
			func(ctx context.Context) error { return core.duplicates.Run(ctx, base.Log) },
			func(ctx context.Context) error {
				return service.Serve(ctx, edge.requests, edge.handler, service.ServeOptions{Log: base.Log, Health: edge.health})
			},
			func(ctx context.Context) error {
				return service.ServeOperations(ctx, edge.operations, base.Metrics, edge.health, base.Log)
			},
		},
		[]program.Part{func(ctx context.Context) error { return core.write(ctx, cfg.Languages) }, core.past.Run})
}

// write writes the changes that requests wait for, once the database is known not to be
// older than what clients have seen.
func (c *core) write(ctx context.Context, languages []string) error {
	_ = c.restores.Await(ctx) // it fails only once there is nothing left to write
	_ = c.writes.Probe(ctx)   // advances sequences that a restore left behind; the health check repeats it
	c.nameCategories(ctx, languages)
	return c.db.Run(ctx)
}

// A core is the database, the relay, and the scheduled work.
type core struct {
	*program.Base
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
	files      blob.Store // nil in a city whose reports have no photos
	storage    []service.Check
	schedules  *schedule.Scheduler
	past       *history.Recorder
}

func newCore(base *program.Base, cfg config.Config) (*core, error) {
	pool, log, metrics := base.Pool, base.Log, base.Metrics
	c := &core{Base: base, relay: relay.New(cfg.Relay, relay.Dependencies{
		Pool: pool, Keys: cfg.Keys, RabbitURL: cfg.RabbitURL, Topology: cfg.Topology, Log: log, Metrics: metrics,
	})}
	c.outbox = outbox.NewStore(pool, c.relay.Wake)
	metrics.MustRegister(outbox.NewCollector(c.outbox))
	c.past = history.NewRecorder(pool, func(ctx context.Context) history.Figures { return api.OutboxFigures(ctx, c.outbox, c.relay) }, log)
	c.db = postgres.NewDB(pool, cfg.Keys, c.relay.Wake, postgres.Rules{
		Resolutions:  report.Resolutions{VerdictDays: cfg.VerdictDays, NeedPhoto: bool(cfg.ResolveNeedsPhoto)},
		QuestionDays: cfg.QuestionDays, GuestReports: cfg.GuestReports, Desk: cfg.Auth.DeskScope == auth.DepartmentDesk,
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
	if c.files, c.storage, err = openPhotos(cfg, log); err != nil {
		return nil, err
	}
	c.schedules, err = schedule.New(schedule.Dependencies{Pool: pool, Audit: c.upkeep.AuditSchedule, Log: log, Metrics: metrics},
		retention.Job(append(cfg.Retention.Tasks(), erasure.Tasks(cfg.Retention.Audit)...), metrics),
		c.deadlines.OverdueJob(), c.deadlines.DeadlinesJob(), c.questions.Job(), postgres.NewFirms(c.db).Schedule(), c.reports.NamesJob(), c.areas.Job(),
		c.upkeep.OldReportsJob(cfg.Words, c.files))
	if err != nil {
		return nil, fmt.Errorf("set up schedules: %w", err)
	}
	return c, nil
}

// nameCategories makes the city's first language that of messages, and logs which of
// its languages an operator still has to write texts in.
func (c *core) nameCategories(ctx context.Context, languages []string) {
	if err := c.categories.UseLanguage(ctx, languages[0]); err != nil {
		c.Log.Warn().Err(err).Msg("updating category names failed, messages keep the old names until the next start")
		return
	}
	list, err := c.categories.List(ctx)
	if err != nil {
		c.Log.Warn().Err(err).Msg("reading categories failed, it is not known whether texts are missing")
		return
	}
	for language, n := range list.Missing(languages) {
		c.Log.Warn().Str("variable", "CITY_LANGUAGES").Str("language", language).Int("categories", n).
			Msg("categories have no text in a language of the city, residents read that in its first language: an operator adds it in the console")
	}
}
