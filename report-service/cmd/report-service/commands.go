package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/restore"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/config"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
	"github.com/cityconnect/cityconnect/report-service/internal/upkeep"
)

// commands are for operators, beside a running service or without one.
var commands = map[string]service.Command{
	"erase":     erase,
	"restored":  restored,
	"republish": republish,
}

// erase erases the person whose id it reads; see docs/privacy.md.
func erase(ctx context.Context, args []string, getenv func(string) string, in io.Reader, out io.Writer) error {
	if len(args) > 0 {
		return errors.New("usage: report-service erase < file with the user's id")
	}
	return withDatabase(ctx, getenv, func(cfg config.Config, pool *pgxpool.Pool, log zerolog.Logger) error {
		return erasure.Command(ctx, erasure.New(pool, cfg.Keys, upkeepOf(pool, cfg).ErasureSteps(), log), in, out)
	})
}

// restored declares that the database was restored, where the service cannot
// detect it; see docs/backup.md.
func restored(ctx context.Context, args []string, getenv func(string) string, _ io.Reader, out io.Writer) error {
	if len(args) > 0 {
		return errors.New("usage: report-service restored")
	}
	return withDatabase(ctx, getenv, func(cfg config.Config, pool *pgxpool.Pool, log zerolog.Logger) error {
		n, err := restore.New(pool, upkeepOf(pool, cfg).StartOver, log).Declare(ctx)
		if err == nil {
			fmt.Fprintf(out, "restore %d: the versions of all reports are above those that were lost\n", n)
		}
		return err
	})
}

// republish publishes the messages of a window of time again.
func republish(ctx context.Context, args []string, getenv func(string) string, _ io.Reader, out io.Writer) error {
	usage := errors.New("usage: report-service republish -since 2026-11-21T09:00:00Z [-until 2026-11-21T10:00:00Z]")
	var window outbox.Window
	flags := flag.NewFlagSet("republish", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error says what is wrong
	for name, at := range map[string]*time.Time{"since": &window.Since, "until": &window.Until} {
		flags.Func(name, "", func(value string) (err error) {
			if *at, err = time.Parse(time.RFC3339, value); err != nil {
				return errors.New("must be a time such as 2026-11-21T09:00:00Z")
			}
			return nil
		})
	}
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w; %w", err, usage)
	}
	if window.Since.IsZero() || flags.NArg() > 0 {
		return usage
	}
	return withDatabase(ctx, getenv, func(_ config.Config, pool *pgxpool.Pool, log zerolog.Logger) error {
		// Unlike for acts on the console, there is no audit row: anybody who
		// may run this command could also write such rows.
		who := "uid " + strconv.Itoa(os.Getuid())
		if account, err := user.Current(); err == nil {
			who = account.Username
		}
		fields := log.With().Str("actor", who).Time("since", window.Since)
		if !window.Until.IsZero() {
			fields = fields.Time("until", window.Until)
		}
		log = fields.Logger()
		log.Info().Msg("republishing started")
		messages := outbox.NewStore(pool, func(shards.Set) {}) // the relay finds them by polling
		var put int64
		err := messages.Republish(ctx, window, func(done, total int64) {
			put = done
			fmt.Fprintf(out, "%d of %d messages pending again\n", done, total)
		})
		if err != nil {
			log.Error().Err(err).Int64("messages", put).Msg("republishing failed, run it again to continue")
			return err
		}
		log.Info().Int64("messages", put).Msg("republishing finished")
		if !window.Until.IsZero() {
			return nil
		}
		_, err = consumer.Republished(ctx, pool, who, window.Since) // of the photo worker, whose tables are here
		return err
	})
}

// upkeepOf returns the upkeep of the database behind pool, in a process without
// a relay.
func upkeepOf(pool *pgxpool.Pool, cfg config.Config) *upkeep.Store {
	return upkeep.New(pool, cfg.Keys, postgres.NewDB(pool, cfg.Keys, func(shards.Set) {}, postgres.Rules{}))
}

// withDatabase runs do with the service's configuration.
func withDatabase(ctx context.Context, getenv func(string) string, do func(config.Config, *pgxpool.Pool, zerolog.Logger) error) error {
	cfg, err := config.Load(getenv)
	if err != nil {
		return fmt.Errorf("load config: %w", err)
	}
	pool, err := pgpool.Open(ctx, cfg.DatabaseURL, "report-service command")
	if err != nil {
		return err
	}
	defer pool.Close()
	return do(cfg, pool, service.NewLogger(os.Stderr, "report", cfg.LogLevel))
}
