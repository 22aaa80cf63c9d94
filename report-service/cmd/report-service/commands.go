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

	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/restore"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/config"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// commands are what operators do beside a running service, or without one.
var commands = map[string]service.Command{
	"erase":     erase,
	"restored":  restored,
	"republish": republish,
}

// erase erases the person whose id it reads; docs/privacy.md says what that is.
func erase(ctx context.Context, args []string, getenv func(string) string, in io.Reader, out io.Writer) error {
	if len(args) > 0 {
		return errors.New("usage: report-service erase < file with the user's id")
	}
	return withDatabase(ctx, getenv, func(cfg config.Config, pool *pgxpool.Pool, log zerolog.Logger) error {
		return erasure.Command(ctx, erasure.New(pool, cfg.Keys, upkeepOf(pool, cfg).ErasureSteps(), log), in, out)
	})
}

// restored says that the database was restored, where the service cannot notice;
// docs/backup.md says when.
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

// republish puts back what was published within a window of time.
func republish(ctx context.Context, args []string, getenv func(string) string, _ io.Reader, out io.Writer) error {
	usage := errors.New("usage: report-service republish -since 2026-11-21T09:00:00Z [-until 2026-11-21T10:00:00Z]")
	var window outbox.Window
	flags := flag.NewFlagSet("republish", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error says what is wrong
	for name, at := range map[string]*time.Time{"since": &window.Since, "until": &window.Until} {
		flags.Func(name, "", func(value string) (err error) {
			if *at, err = time.Parse(time.RFC3339, value); err != nil {
				return errors.New("want a time such as 2026-11-21T09:00:00Z")
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
		// No row says who did it, as one does of what the console does: whoever may run
		// this could write such rows.
		who := "uid " + strconv.Itoa(os.Getuid())
		if account, err := user.Current(); err == nil {
			who = account.Username
		}
		told := log.With().Str("actor", who).Time("since", window.Since)
		if !window.Until.IsZero() {
			told = told.Time("until", window.Until)
		}
		log = told.Logger()
		log.Info().Msg("an operator has what was published put back")
		messages := outbox.NewStore(pool, func(shards.Set) {}) // the relay finds them by itself
		var put int64
		err := messages.Republish(ctx, window, func(done, total int64) {
			put = done
			fmt.Fprintf(out, "%d of %d messages put back\n", done, total)
		})
		if err != nil {
			log.Info().Int64("messages", put).Msg("putting back has ended early, and can be asked for again")
			return err
		}
		log.Info().Int64("messages", put).Msg("what was published is put back")
		return nil
	})
}

// upkeepOf returns the upkeep of the database behind pool, beside which no relay
// runs.
func upkeepOf(pool *pgxpool.Pool, cfg config.Config) *postgres.Upkeep {
	return postgres.NewUpkeep(postgres.NewDB(pool, cfg.Keys, func(shards.Set) {}))
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
