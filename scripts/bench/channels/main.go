// Command channels measures how what happens leaves the city: how fast events become
// deliveries, how fast those are sent, and how long they take while some receivers do
// not answer, beside a FIFO of the same workers. Webhooks stand for mails and pushes,
// which have the same ledger. The program that does so is
// notification-service/bench/channels; this one gives it a database.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
)

func main() { testbed.Main(run) }

func run(ctx context.Context, b *testbed.Bed) error {
	program, err := b.Build(ctx, "notification-service", "channels")
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
		return fmt.Errorf("measure channels: %w", err)
	}
	return nil
}
