// Command webhooks measures the delivery of webhooks: how fast events become
// deliveries, how fast those are sent, and how long they take while some
// receivers do not answer, beside a FIFO of the same workers. The program that
// does so is notification-service/bench/webhooks; this one gives it a database.
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
		fmt.Fprintln(os.Stderr, "webhooks:", err)
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
	cmd := exec.CommandContext(ctx, "go", "run", "./bench/webhooks")
	cmd.Dir, cmd.Stdout, cmd.Stderr = *service, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "DATABASE_URL="+database)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	return nil
}
