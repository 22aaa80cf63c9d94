package group_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/group"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// tally counts the reports of each category.
func tally(ctx context.Context, tx pgx.Tx, messages []consumer.Message) error {
	for _, m := range messages {
		created := m.Event.(*event.ReportCreated)
		_, err := tx.Exec(ctx, `
			insert into tallies (category_id, reports) values ($1, 1)
			on conflict (category_id) do update set reports = tallies.reports + 1`, created.CategoryID)
		if err != nil {
			return fmt.Errorf("count report: %w", err)
		}
	}
	return nil
}

// run counts until ctx ends.
func run(ctx context.Context, database *pgxpool.Pool, rabbitURL string, log zerolog.Logger) error {
	runner, err := group.New(consumer.Defaults(), group.Dependencies{
		Database: database, RabbitURL: rabbitURL, Log: log, Metrics: prometheus.NewRegistry(),
	}, consumer.Group{
		Name:   "tallies",
		Queues: []topology.Queue{{Name: "queue.tallies", Keys: []event.Key{event.ReportCreatedKey}}},
		Effect: consumer.InTx(database, tally),
	})
	if err != nil {
		return err
	}
	return runner.Run(ctx)
}

// A group of its own for another service: its effect, and what starts it.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	database, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		panic(err)
	}
	defer database.Close()
	if err := run(ctx, database, os.Getenv("RABBITMQ_URL"), zerolog.New(os.Stderr)); err != nil {
		panic(err)
	}
}
