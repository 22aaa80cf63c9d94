// Command mails measures mails: how fast digests are claimed that are all due at
// once, how fast mails are written, signed and handed over, and how long those to
// others take while one mail host defers everything. The program that does so is
// notification-service/bench/mails; this one gives it a database.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "mails:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	service := flag.String("service", "../../notification-service", "the `folder` of notification-service")
	flag.Parse()
	database, drop, err := testbed.Database(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	if err := migrations.Up(ctx, database, migrations.Notification); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "run", "./bench/mails")
	cmd.Dir, cmd.Stdout, cmd.Stderr = *service, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "DATABASE_URL="+database)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	return nil
}
