package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/config"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/restore"
	"github.com/cityconnect/cityconnect/platform/service"
)

// commands are what operators do beside a running service, or without one.
var commands = map[string]service.Command{"erase": erase, "restored": restored, "republished": republished, "vapid-key": vapidKey, "words": words}

// erase erases the person whose id it reads; docs/privacy.md says what that is.
func erase(ctx context.Context, args []string, getenv func(string) string, in io.Reader, out io.Writer) error {
	if len(args) > 0 {
		return errors.New("usage: notification-service erase < file with the user's id")
	}
	return withDatabase(ctx, getenv, func(cfg config.Config, pool *pgxpool.Pool, log zerolog.Logger) error {
		return erasure.Command(ctx, erasure.New(pool, cfg.Keys, postgres.ErasureSteps(cfg.Keys), log), in, out)
	})
}

// restored says that the database was restored, where the service cannot notice;
// docs/backup.md says when.
func restored(ctx context.Context, args []string, getenv func(string) string, _ io.Reader, out io.Writer) error {
	if len(args) > 0 {
		return errors.New("usage: notification-service restored")
	}
	return withDatabase(ctx, getenv, func(_ config.Config, pool *pgxpool.Pool, log zerolog.Logger) error {
		n, err := restore.New(pool, postgres.New(pool, postgres.Options{}).Streams.StartOver, log).Declare(ctx)
		if err == nil {
			fmt.Fprintf(out, "restore %d: every stream has another epoch\n", n)
		}
		return err
	})
}

// republished records that report-service has published lost messages again;
// docs/recoverability.md says when to run it.
func republished(ctx context.Context, args []string, getenv func(string) string, _ io.Reader, out io.Writer) error {
	usage := errors.New("usage: notification-service republished -since 2026-11-21T09:00:00Z")
	if len(args) != 2 || args[0] != "-since" {
		return usage
	}
	since, err := time.Parse(time.RFC3339, args[1])
	if err != nil {
		return fmt.Errorf("-since must be a time such as 2026-11-21T09:00:00Z; %w", usage)
	}
	return withDatabase(ctx, getenv, func(_ config.Config, pool *pgxpool.Pool, _ zerolog.Logger) error {
		left, err := consumer.Republished(ctx, pool, "uid "+strconv.Itoa(os.Getuid()), since)
		for _, l := range left {
			fmt.Fprintf(out, "%s has lost messages since %s, which is earlier\n", l.Queue, l.Since.UTC().Format(time.RFC3339))
		}
		if err == nil && len(left) > 0 {
			err = errors.New("not all that was lost was published again")
		}
		return err
	})
}

// vapidKey prints a fresh key that signs pushes, and its public part.
func vapidKey(_ context.Context, args []string, _ func(string) string, _ io.Reader, out io.Writer) error {
	if len(args) > 0 {
		return errors.New("usage: notification-service vapid-key")
	}
	private, public := push.NewKey()
	_, err := fmt.Fprintf(out, "PUSH_VAPID_KEY=%s\n# public: %s\n", private, public)
	return err
}

// words writes the files that a language is translated in; docs/city.md says how.
func words(_ context.Context, args []string, _ func(string) string, _ io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: notification-service words xx folder")
	}
	if err := wording.WriteFolder(args[1], wording.Language(args[0])); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s has the files to translate: set CITY_WORDS to it\n", args[1])
	return err
}

// withDatabase runs do with the service's configuration.
func withDatabase(ctx context.Context, getenv func(string) string, do func(config.Config, *pgxpool.Pool, zerolog.Logger) error) error {
	cfg, err := config.Load(getenv)
	if err != nil {
		return fmt.Errorf("load config: %w", err)
	}
	pool, err := pgpool.Open(ctx, cfg.DatabaseURL, "notification-service command")
	if err != nil {
		return err
	}
	defer pool.Close()
	return do(cfg, pool, service.NewLogger(os.Stderr, "notification", cfg.LogLevel))
}
