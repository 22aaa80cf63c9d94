// Command consumer is the program of `make bench-consumer`: it consumes what waits
// in the vote queue and prints how long that took. What fills the queue and starts
// this one is in scripts/bench/consumer.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/notifier"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/forwarder"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/topology"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
}

func run() error {
	good := flag.Int("good", 0, "how many messages must be done")
	batch := flag.Int("batch", 10, "messages in one transaction at the most")
	workers := flag.Int("workers", 1, "workers, each with a prefetch of 10")
	effect := flag.String("effect", "whole", "what to write: nothing, record or whole")
	flag.Parse()
	keyring, err := event.ParseKeyring(os.Getenv("RECIPIENT_KEY"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pool, err := pgpool.Open(ctx, os.Getenv("DATABASE_URL"), "bench")
	if err != nil {
		return err
	}
	defer pool.Close()
	watch := &stopwatch{Effect: consumer.Typed(notifier.New(postgres.New(pool, postgres.Options{}).Effects, silent{}, keyring)), pool: pool, effect: *effect, left: *good, done: cancel, failing: make(map[string]time.Time)}
	log := zerolog.Nop()
	fwd := forwarder.New(rabbit.Config{URL: os.Getenv("RABBITMQ_URL"), Log: log}, prometheus.NewRegistry(), func(string, string) {})
	cfg := consumer.Defaults()
	cfg.Workers, cfg.BatchSize = *workers, *batch
	c, err := consumer.New(cfg, consumer.Dependencies{
		Database: pool, Forwarder: fwd,
		Topology: topology.New(event.Topology{}, cfg.RetrySchedule(), topology.Group{Name: "notifications", Queues: topology.ContractQueues()}),
		Rabbit:   rabbit.Config{URL: os.Getenv("RABBITMQ_URL"), Log: log}, Log: log, Metrics: prometheus.NewRegistry(),
	}, consumer.Group{Name: "notifications", Queues: topology.ContractQueues(), Effect: watch})
	if err != nil {
		return err
	}
	var forwarding sync.WaitGroup
	forwarding.Go(func() { _ = fwd.Run(ctx) })
	err = c.Run(ctx)
	forwarding.Wait()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(watch.result())
}

// A silent announcer has no readers.
type silent struct{}

func (silent) Announce(notification.Batch) {}

// A stopwatch is an effect that takes the time, and fails for a second for the
// messages that are marked to.
type stopwatch struct {
	consumer.Effect
	pool   *pgxpool.Pool
	effect string
	done   func()

	mu          sync.Mutex
	left        int // good messages that are not done
	began, last time.Time
	stall       time.Duration
	failing     map[string]time.Time // since when
}

func (s *stopwatch) Apply(ctx context.Context, queue string, batch []consumer.Message) (seen int, err error) {
	s.mu.Lock()
	if s.began.IsZero() {
		s.began = time.Now()
		s.last = s.began
	}
	s.mu.Unlock()
	if s.sick(batch) {
		return 0, &pgconn.PgError{Code: "55P03"}
	}
	seen, err = s.write(ctx, queue, batch)
	if err == nil {
		s.count(batch)
	}
	return seen, err
}

// ApplyEach fails for the messages that are sick.
func (s *stopwatch) ApplyEach(ctx context.Context, queue string, batch []consumer.Message, failed func(i int, err error)) ([]bool, error) {
	applied := make([]bool, len(batch))
	var well []consumer.Message
	var places []int // of the well ones
	for i := range batch {
		if !s.sick(batch[i : i+1]) {
			well, places = append(well, batch[i]), append(places, i)
		} else {
			failed(i, &pgconn.PgError{Code: "55P03"})
		}
	}
	has, err := s.writeEach(ctx, queue, well)
	if err != nil {
		return nil, err
	}
	var counted []consumer.Message
	for k, i := range places {
		if applied[i] = has[k]; has[k] {
			counted = append(counted, batch[i])
		}
	}
	s.count(counted)
	return applied, nil
}

// recordSQL is what the others write, too, and no more.
const recordSQL = `insert into processed_messages (consumer, message_id) select 'bench', unnest($1::text[]) on conflict do nothing`

// ignore is for messages that are well: a failure of theirs shows in what is not applied.
func ignore(int, error) {}

// writeEach writes what write does, one message after another.
func (s *stopwatch) writeEach(ctx context.Context, queue string, batch []consumer.Message) (applied []bool, err error) {
	if s.effect == "whole" {
		return s.Effect.(consumer.EachEffect).ApplyEach(ctx, queue, batch, ignore)
	}
	statements := make([]consumer.Statement, len(batch))
	for i, m := range batch {
		statements[i] = consumer.Statement{SQL: recordSQL, Args: []any{[]string{m.ID}}}
	}
	return consumer.Each(ctx, s.pool, statements, func(int, pgx.Rows) (bool, error) { return true, nil }, ignore)
}

func (s *stopwatch) write(ctx context.Context, queue string, batch []consumer.Message) (seen int, err error) {
	switch s.effect {
	case "whole":
		return s.Effect.Apply(ctx, queue, batch)
	case "record":
		ids := make([]string, len(batch))
		for i, m := range batch {
			ids[i] = m.ID
		}
		_, err = s.pool.Exec(ctx, recordSQL, ids)
		return 0, err
	}
	return 0, nil
}

// sick reports whether a message in batch is in its first second.
func (s *stopwatch) sick(batch []consumer.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range batch {
		if !strings.HasSuffix(m.ID, "-fails") {
			continue
		}
		since, known := s.failing[m.ID]
		if !known {
			since = time.Now()
			s.failing[m.ID] = since
		}
		if time.Since(since) < time.Second {
			return true
		}
	}
	return false
}

func (s *stopwatch) count(batch []consumer.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range batch {
		if strings.HasSuffix(m.ID, "-fails") || s.left == 0 {
			continue
		}
		now := time.Now()
		s.stall = max(s.stall, now.Sub(s.last))
		s.last = now
		if s.left--; s.left == 0 {
			s.done()
		}
	}
}

// A result is what the benchmark reads.
type result struct {
	Seconds float64 `json:"seconds"`  // until the good messages were done
	StallMS float64 `json:"stall_ms"` // the longest time without a good one
}

func (s *stopwatch) result() result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return result{s.last.Sub(s.began).Seconds(), float64(s.stall.Microseconds()) / 1000}
}
