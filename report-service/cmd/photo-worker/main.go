// Command photo-worker checks uploaded photos: it consumes their messages from
// queue.photo_checks, makes the pictures that report-service serves, and
// deletes the uploads. It is a process of its own, so that decoding takes
// neither time nor memory from requests.
//
// Any number of them may run. It is configured by its environment alone, see
// docs/configuration.md. With the argument healthcheck it checks whether a
// running one is ready, for containers without a shell.
package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/group"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/program"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/blob"
	"github.com/cityconnect/cityconnect/report-service/internal/clamd"
	"github.com/cityconnect/cityconnect/report-service/internal/config"
	"github.com/cityconnect/cityconnect/report-service/internal/photoworker"
	"github.com/cityconnect/cityconnect/report-service/internal/picture"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
)

func main() { service.Main("photo-worker", run, config.WorkerAddr, nil) }

// run starts every part of the worker and returns once all have drained.
func run(ctx context.Context, getenv func(string) string, logs io.Writer) error {
	cfg, err := config.LoadWorker(getenv)
	if err != nil {
		return fmt.Errorf("load config: %w", err)
	}
	// The garbage of one picture is collected before the limit is reached.
	debug.SetMemoryLimit(int64(cfg.Memory))
	base := program.Begin("photo-worker", cfg.Service, getenv, logs, map[string]string{"RABBITMQ_MANAGEMENT_URL": cfg.ManagementURL})
	log, metrics := base.Log, base.Metrics
	if cfg.PhotoStore == "" {
		return idle(ctx, cfg.Operations, metrics, log)
	}

	if err := base.Open(ctx); err != nil {
		return err
	}
	pool := base.Pool
	defer pool.Close()
	files, err := blob.Open(cfg.Blob())
	if err != nil {
		return fmt.Errorf("open storage: %w", err)
	}
	tables, err := migrations.Tables(migrations.Report)
	if err != nil {
		return err
	}
	writes := pgpool.NewWrites(pool, tables, log)
	checks := []service.Check{
		{Name: "database", Probe: pool.Ping},
		{Name: "writes", Probe: writes.Probe},
		{Name: "schema", Probe: func(ctx context.Context) error { return migrations.Check(ctx, pool, migrations.Report) }},
		{Name: "storage", Probe: files.Check, Optional: true},
	}
	waker := relay.NewWaker(cfg.RabbitURL, cfg.Topology, log)
	announcer := photoworker.NewAnnouncer(cfg.RabbitURL, cfg.Topology, cfg.Keys, log)
	d := photoworker.Dependencies{
		Store: postgres.NewPhotoChecks(postgres.NewDB(pool, cfg.Keys, waker.Wake, postgres.Rules{})), Files: files,
		Maker: picture.NewMaker(config.MaxPixels, cfg.Budget(), config.LargeShare), Lanes: cfg.Lanes(), Hold: cfg.Hold(),
		Tell: announcer.Tell, Stopping: ctx, Log: log, Metrics: metrics,
	}
	if cfg.ClamdURL != "" {
		scanner, err := clamd.New(cfg.ClamdURL)
		if err != nil {
			return err
		}
		d.Scanner = scanner
		checks = append(checks, service.Check{Name: "clamd", Probe: scanner.Check, Optional: true})
	}
	worker := photoworker.New(d)
	groups, err := group.New(cfg.Consumer(), group.Dependencies{
		Database: pool, Writable: writes.Probe, RabbitURL: cfg.RabbitURL, ManagementURL: cfg.ManagementURL, Names: cfg.Topology, Log: log, Metrics: metrics,
	}, worker.Group())
	if err != nil {
		return err
	}
	health := service.NewHealth(log, service.Details{
		Features: map[string]bool{"photos": true, "virus_scanner": cfg.ClamdURL != "", "photo_moderation": cfg.Hold()},
		Schema:   func(ctx context.Context) (uint, error) { return migrations.Applied(ctx, pool) },
	}, append(checks, service.Check{Name: "consumer", Probe: func(context.Context) error { return groups.Consumer.Healthy() }, Optional: true})...)
	operations, err := service.Listen(ctx, cfg.Operations)
	if err != nil {
		return err
	}

	return program.Run(ctx, []program.Part{
		groups.Run, waker.Run, announcer.Run,
		func(ctx context.Context) error {
			return worker.RunUpkeep(ctx, cfg.Topology.Queue(event.PhotoUploadedKey))
		},
		func(ctx context.Context) error {
			return service.Serve(ctx, operations, service.NewOperations(metrics, health), service.ServeOptions{Log: log, Health: health})
		},
	}, nil)
}

// idle does nothing until ctx ends, and is healthy: a city whose reports have
// no photos may start the worker as well.
func idle(ctx context.Context, addr string, metrics *prometheus.Registry, log zerolog.Logger) error {
	log.Warn().Msg("PHOTO_STORE is empty: reports have no photos, and no upload is checked")
	operations, err := service.Listen(ctx, addr)
	if err != nil {
		return err
	}
	health := service.NewHealth(log, service.Details{})
	return service.Serve(ctx, operations, service.NewOperations(metrics, health), service.ServeOptions{Log: log, Health: health})
}
