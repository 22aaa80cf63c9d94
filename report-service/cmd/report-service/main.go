// Command report-service takes residents' reports and votes, and announces
// every change to whom it concerns through the outbox.
//
// It is configured by its environment alone, see docs/configuration.md. With
// the argument healthcheck it asks a running one whether it is ready, for
// containers without a shell. With erase, restored or republish it does what
// commands.go says, and exits.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/platform/auth"
	platformconfig "github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/history"
	"github.com/cityconnect/cityconnect/platform/pgpool"
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
	publisher := relay.New(cfg.Relay, relay.Dependencies{
		Pool: pool, RabbitURL: cfg.RabbitURL, Topology: cfg.Topology, Log: log, Metrics: metrics,
	})
	messages := outbox.NewStore(pool, publisher.Wake)
	metrics.MustRegister(outbox.NewCollector(messages))
	store := postgres.NewStore(pool, cfg.Keys, publisher.Wake)
	files, storage, err := openPhotos(cfg, log)
	if err != nil {
		return err
	}
	watch := restore.New(pool, store.StartOver, log)
	eraser := erasure.New(pool, cfg.Keys, postgres.ErasureSteps(cfg.Keys), log)
	schedules, err := schedule.New(schedule.Dependencies{Pool: pool, Audit: postgres.AuditSchedule, Log: log, Metrics: metrics},
		retention.Job(append(cfg.Retention.Tasks(), erasure.Tasks(cfg.Retention.Audit)...), metrics),
		store.OverdueJob(), store.DeadlinesJob())
	if err != nil {
		return fmt.Errorf("set up schedules: %w", err)
	}
	verifier, err := auth.New(ctx, cfg.Auth, log)
	if err != nil {
		return fmt.Errorf("set up sign-in: %w", err)
	}
	verifier.RefuseErased(eraser.Erased)
	health := service.NewHealth(log, slices.Concat(verifier.Checks(), storage, checks(pool, watch, publisher))...)
	health.Describe(service.Details{
		Features: map[string]bool{"photos": files != nil, "comments": bool(cfg.Comments), "map_bounds": cfg.City != nil},
		Schema:   func(ctx context.Context) (uint, error) { return migrations.Applied(ctx, pool) },
	})
	handler, err := api.New(api.Config{
		Store: store, Files: files, Outbox: messages, Relay: publisher,
		History: func(ctx context.Context, span time.Duration) (history.History, error) {
			return history.Read(ctx, pool, span)
		},
		Erasures: eraser, Schedules: schedules, Auth: verifier, Health: health, Metrics: metrics, Log: log,
		City: cfg.City, Comments: bool(cfg.Comments),
		ReportsPerUser: cfg.ReportsPerUser, VotesPerUser: cfg.VotesPerUser, CommentsPerUser: cfg.CommentsPerUser,
	})
	if err != nil {
		return fmt.Errorf("set up API: %w", err)
	}
	listener, operations, err := listen(ctx, cfg)
	if err != nil {
		return err
	}

	// The requests drain before what writes their changes ends.
	writing, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var background errgroup.Group
	background.Go(func() error {
		_ = watch.Await(writing) // it ends without only if there is nothing to write any more
		return store.Run(writing)
	})
	figures := func(ctx context.Context) history.Figures { return api.OutboxFigures(ctx, messages, publisher) }
	background.Go(func() error { return history.NewRecorder(pool, figures, log).Run(writing) })

	_ = eraser.Refresh(ctx) // Run goes on with it
	g, ctx := errgroup.WithContext(ctx)
	for _, part := range []func(context.Context) error{
		publisher.Run, schedules.Run, eraser.Run,
		func(ctx context.Context) error { return store.RunDuplicates(ctx, log) },
		func(ctx context.Context) error {
			return service.Serve(ctx, listener, handler, service.ServeOptions{Log: log, Health: health})
		},
		func(ctx context.Context) error { return service.ServeOperations(ctx, operations, metrics, health, log) },
	} {
		g.Go(func() error { return part(ctx) })
	}
	err = g.Wait()
	end()
	return errors.Join(err, background.Wait())
}

// checks are what the service needs to answer, and the relay, which is only
// told of: changes are taken while the broker is away.
func checks(pool *pgxpool.Pool, watch *restore.Watch, publisher *relay.Relay) []service.Check {
	return []service.Check{
		{Name: "database", Probe: pool.Ping},
		{Name: "schema", Probe: func(ctx context.Context) error { return migrations.Check(ctx, pool, migrations.Report) }},
		{Name: "restore", Probe: watch.Probe},
		{Name: "relay", Probe: publisher.Probe, Optional: true},
	}
}

// listen opens the port of the API and the one of the operators.
func listen(ctx context.Context, cfg config.Config) (requests, operations net.Listener, err error) {
	if requests, err = service.Listen(ctx, cfg.Addr); err != nil {
		return nil, nil, err
	}
	if operations, err = service.Listen(ctx, cfg.Operations); err != nil {
		_ = requests.Close() // the process ends
		return nil, nil, err
	}
	return requests, operations, nil
}

// openPhotos returns where photos are kept, with its health check, or nothing in
// a city whose reports have none.
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
