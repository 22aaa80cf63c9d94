// Command notification-service turns what happened to reports into
// notifications and streams them live to whom they concern.
//
// It is configured by its environment alone, see docs/configuration.md. With
// the argument healthcheck it asks a running one whether it is ready, for
// containers without a shell. With erase, restored or vapid-key it does what
// commands.go says, and exits.
package main

import (
	"context"
	"fmt"
	"io"

	"github.com/cityconnect/cityconnect/notification-service/internal/config"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	platformconfig "github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/service"
)

func main() { service.Main("notification-service", run, config.Addr, commands) }

// run starts every part of the service and returns once all have drained.
func run(ctx context.Context, getenv func(string) string, logs io.Writer) error {
	cfg, err := config.Load(getenv)
	if err != nil {
		return fmt.Errorf("load config: %w", err)
	}
	log := service.NewLogger(logs, "notification", cfg.LogLevel)
	platformconfig.WarnOfRemoved(log, getenv)
	platformconfig.WarnWithoutTLS(log, map[string]string{
		"DATABASE_URL": cfg.DatabaseURL, "RABBITMQ_URL": cfg.RabbitURL,
		"RABBITMQ_MANAGEMENT_URL": cfg.ManagementURL, "AUTH_JWKS_URL": cfg.Auth.JWKSURL, "GEOCODER_URL": cfg.Geocoder.URL.Server(),
	})
	sse.WarnOfFiles(cfg.Stream, log)
	pool, err := pgpool.Open(ctx, cfg.DatabaseURL, "notification-service")
	if err != nil {
		return err
	}
	defer pool.Close() // last, because everything else uses it
	if err := pgpool.SignIn(ctx, pool); err != nil {
		return err
	}
	a, err := build(ctx, cfg, pool, log)
	if err != nil {
		return err
	}
	return a.run(ctx)
}
