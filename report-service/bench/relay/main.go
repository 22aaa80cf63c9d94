// Command relay runs a relay in a process of its own for scripts/bench, which
// is another module and cannot import the relay.
//
// It relays until its input ends, and runs two commands from its input: "wake"
// wakes the relay as a commit does, and "rate N SECONDS" commits N rows a
// second, each of which wakes the relay as report-service would. At the end it
// prints the relay's measurements as one line of JSON.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, commands io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("relay", flag.ContinueOnError)
	database := flags.String("database", "", "URL of a migrated reports database")
	broker := flags.String("broker", "", "URL of a RabbitMQ virtual host")
	if err := flags.Parse(args); err != nil {
		return err
	}
	service.TuneGC() // as report-service does
	pool, err := pgxpool.New(ctx, *database)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer pool.Close()
	keys, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		return err
	}
	metrics := prometheus.NewRegistry()
	r := relay.New(relay.Defaults(), relay.Dependencies{
		Pool: pool, Keys: keys, RabbitURL: *broker, Log: zerolog.New(os.Stderr).Level(zerolog.WarnLevel), Metrics: metrics,
	})
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.Run(ctx) })
	g.Go(func() error {
		defer stop()
		return runCommands(ctx, commands, r, pool)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	return report(metrics, out)
}

// runCommands runs the commands one after the other.
func runCommands(ctx context.Context, commands io.Reader, r *relay.Relay, pool *pgxpool.Pool) error {
	lines := bufio.NewScanner(commands)
	for lines.Scan() {
		var rate, seconds int
		switch n, _ := fmt.Sscanf(lines.Text(), "rate %d %d", &rate, &seconds); {
		case lines.Text() == "wake":
			r.Wake(shards.All)
		case n == 2:
			if err := write(ctx, r, pool, rate, time.Duration(seconds)*time.Second); err != nil {
				return err
			}
		default:
			return fmt.Errorf("unknown command %q", lines.Text())
		}
	}
	return lines.Err()
}

// report prints the quantiles of the relay's own histogram, from the row's
// transaction to its confirm.
func report(metrics *prometheus.Registry, out io.Writer) error {
	latency, err := gather(metrics, "relay_commit_to_confirm_seconds")
	if err != nil {
		return err
	}
	reads, err := gather(metrics, "relay_read_seconds")
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(map[string]float64{
		"p50_ms": 1000 * latency.quantile(0.50),
		"p99_ms": 1000 * latency.quantile(0.99),
		"reads":  float64(reads.total),
	})
}
