package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// A pending message is a job of River.
type pending struct {
	Body    []byte            `json:"body"`
	Headers map[string]string `json:"headers"`
}

// Kind names the job.
func (pending) Kind() string { return "pending" }

// A worker publishes messages, many at once on one pipelined channel.
type worker struct {
	river.WorkerDefaults[pending]

	publisher *rabbit.Publisher
	exchange  string
}

// Work returns once the broker has the message.
func (w *worker) Work(ctx context.Context, job *river.Job[pending]) error {
	table := amqp.Table{}
	for name, value := range job.Args.Headers {
		table[name] = value
	}
	return w.publisher.PublishWait(ctx, w.exchange, string(key), amqp.Publishing{
		MessageId: uuid.NewString(), Type: string(key), ContentType: "application/json", AppId: "bench",
		Timestamp: job.CreatedAt, DeliveryMode: amqp.Persistent, Headers: table, Body: job.Args.Body,
	})
}

// runRiver measures how long River takes for n jobs, with as many workers as the
// relay's window, until the last is marked. It keeps no order.
func runRiver(ctx context.Context, f *fixture, n int) (time.Duration, error) {
	pool, err := pgpool.Open(ctx, f.database, "river")
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	conn, err := rabbit.Dial(ctx, rabbit.Config{URL: f.broker, Name: "river"})
	if err != nil {
		return 0, err
	}
	defer conn.Close() // all is confirmed
	publisher, err := rabbit.NewPublisher(conn, window)
	if err != nil {
		return 0, err
	}
	client, err := newRiver(ctx, pool, &worker{publisher: publisher, exchange: f.topology.Exchange()})
	if err != nil {
		return 0, err
	}
	if err := addJobs(ctx, client, n); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := client.Start(ctx); err != nil {
		return 0, err
	}
	err = f.until(ctx, `select not exists (select from river_job where state <> 'completed')`)
	took := time.Since(began)
	return took, errors.Join(err, client.Stop(ctx))
}

// newRiver returns River with an empty table.
func newRiver(ctx context.Context, pool *pgxpool.Pool, w *worker) (*river.Client[pgx.Tx], error) {
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, `truncate river_job`); err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	return river.NewClient(driver, &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: window}},
		FetchCooldown:     river.FetchCooldownMin,
		FetchPollInterval: 10 * time.Millisecond,
		Workers:           workers,
		Logger:            slog.New(slog.DiscardHandler),
	})
}

func addJobs(ctx context.Context, client *river.Client[pgx.Tx], n int) error {
	const batch = 5000
	for from := 0; from < n; from += batch {
		jobs := make([]river.InsertManyParams, min(batch, n-from))
		for i := range jobs {
			jobs[i].Args = pending{body(uuid.New(), 1), headers()}
		}
		if _, err := client.InsertManyFast(ctx, jobs); err != nil {
			return fmt.Errorf("add jobs: %w", err)
		}
	}
	return nil
}
