// Command notification-service turns what happened to reports into
// notifications and streams them live to whom they concern.
//
// It is configured by its environment alone, see docs/configuration.md. With
// the argument healthcheck it asks a running one whether it is ready, for
// containers without a shell.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/cityconnect/cityconnect/notification-service/internal/config"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/service"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "notification-service:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	switch {
	case len(args) == 0:
		return run(context.Background(), os.Getenv, os.Stdout)
	case len(args) == 1 && args[0] == "healthcheck":
		return service.Healthcheck(context.Background(), cmp.Or(os.Getenv("HTTP_ADDR"), "127.0.0.1:3003"))
	}
	return fmt.Errorf("unknown arguments %q; want none, or healthcheck", args)
}

// run starts every part of the service and returns once all have drained.
func run(ctx context.Context, getenv func(string) string, logs io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills at once
	defer stop()

	cfg, err := config.Load(getenv)
	if err != nil {
		return fmt.Errorf("load config: %w", err)
	}
	log := service.NewLogger(logs, "notification", cfg.LogLevel)
	pool, err := pgpool.Open(ctx, cfg.DatabaseURL, "notification-service")
	if err != nil {
		return err
	}
	defer pool.Close() // last, because everything else uses it
	p, err := assemble(ctx, cfg, pool, log)
	if err != nil {
		return err
	}
	return p.run(ctx)
}
