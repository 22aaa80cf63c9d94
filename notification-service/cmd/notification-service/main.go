// Command notification-service turns what happened to reports into
// notifications and streams them live to whom they concern.
//
// It is configured by its environment alone, see docs/configuration.md. With
// the argument healthcheck it asks a running one whether it is ready, for
// containers without a shell. With erase, restored, vapid-key or words it does
// what commands.go says, and exits.
package main

import (
	"context"
	"fmt"
	"io"

	"github.com/cityconnect/cityconnect/notification-service/internal/config"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/program"
	"github.com/cityconnect/cityconnect/platform/service"
)

func main() { service.Main("notification-service", run, config.Addr, commands) }

// run starts every part of the service and returns once all have drained.
func run(ctx context.Context, getenv func(string) string, logs io.Writer) error {
	cfg, err := config.Load(getenv)
	if err != nil {
		return fmt.Errorf("load config: %w", err)
	}
	base := program.Begin("notification-service", cfg.Service, getenv, logs, map[string]string{
		"RABBITMQ_MANAGEMENT_URL": cfg.ManagementURL, "AUTH_JWKS_URL": cfg.Auth.JWKSURL, "GEOCODER_URL": cfg.Geocoder.URL.Server(),
	})
	sse.WarnOfFiles(cfg.Stream, base.Log)
	wording.Use(cfg.Page.Words, cfg.Page.Languages, base.Log)
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
			core.groups.Run, core.schedule.Run, core.eraser.Run,
			func(ctx context.Context) error {
				return service.Serve(ctx, edge.requests, edge.handler, service.ServeOptions{Log: base.Log, Health: edge.health, Drain: core.hub.Drain})
			},
		},
		[]program.Part{
			core.hub.Run, core.bus.Run, core.past.Run, edge.runMonitor,
			func(ctx context.Context) error {
				return service.ServeOperations(ctx, edge.operations, base.Metrics, edge.health, base.Log)
			},
		})
}
