// Command channels measures how what happens leaves the city: with the argument
// webhooks, how fast events become deliveries, how fast those are sent, and how long
// they take while some receivers do not answer, beside a FIFO of the same workers;
// with mails, how fast digests are claimed that are all due at once, how fast mails
// are handed over, and how long those to others take while one mail host defers.
// The programs that do so are notification-service/bench/webhooks and
// notification-service/bench/mails; this one gives them a database.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
)

func main() { testbed.Main(run) }

func run(ctx context.Context, b *testbed.Bed) error {
	program, err := b.Build(ctx, "notification-service", flag.Arg(0))
	if err != nil {
		return err
	}
	database, err := b.Database(ctx, migrations.Notification)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "DATABASE_URL="+database)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("measure %s: %w", flag.Arg(0), err)
	}
	return nil
}
