// Command ingest measures what report-service accepts over HTTP, through its
// real binary, against a floor: a bare client that makes the same changes in
// plain transactions, one each, over as many connections.
//
// The passes of the two alternate on the same server, so that whatever else
// the machine does meets both. The broker is away: what is measured is the
// way into the database. The last line has the medians of the ratios.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

// A bench is what the command line says, and what it is measured on.
type bench struct {
	conns   int
	passes  int
	length  time.Duration // of a pass
	reports int           // that spread votes go to
	pool    int           // connections of the service to its database
	raw     bool          // no floor: lines as go test -bench writes them
	service *testbed.ReportService
	floor   *floor
	out     io.Writer
}

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ingest:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	b := &bench{out: out}
	flags := flag.NewFlagSet("ingest", flag.ContinueOnError)
	flags.IntVar(&b.conns, "conns", 64, "connections of each side")
	flags.IntVar(&b.passes, "passes", 5, "passes of each side, an odd number")
	flags.DurationVar(&b.length, "length", 3*time.Second, "length of a pass")
	flags.IntVar(&b.reports, "reports", 1000, "reports that spread votes go to")
	flags.BoolVar(&b.raw, "raw", false, "no comparison: lines for benchstat")
	flags.IntVar(&b.pool, "pool", 0, "connections of report-service to its database, 0 for its own choice")
	binary := flags.String("service", "../../bin/report-service", "report-service's `program`")
	migrate := flags.String("migrate", "../../bin/migrate", "the `program` that migrates")
	if err := flags.Parse(args); err != nil {
		return err
	}
	database, drop, err := testbed.Database(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	// The program migrates, not this module: it may be of another revision.
	up := exec.CommandContext(ctx, *migrate, "up", "-database", "report")
	up.Env = append(os.Environ(), "DATABASE_URL="+database)
	if output, err := up.CombinedOutput(); err != nil {
		return fmt.Errorf("migrate: %w: %s", err, output)
	}
	if b.floor, err = newFloor(ctx, database, b.conns, b.reports); err != nil {
		return err
	}
	defer b.floor.close()
	pooled, err := withPool(database, b.pool)
	if err != nil {
		return err
	}
	if b.service, err = testbed.StartReportService(ctx, *binary, pooled); err != nil {
		return err
	}
	defer b.service.Stop()
	return b.measure(ctx)
}

// measure makes every comparison and prints the line.
func (b *bench) measure(ctx context.Context) error {
	c, err := connect(ctx, b.service, b.conns)
	if err != nil {
		return err
	}
	defer c.close()
	many, one := b.floor.reports, b.floor.reports[:1]
	subjects := []subject{
		{"creates", b.floor.create, c.create},
		{"votes on many reports", b.floor.voteOn(many), c.voteOn(many)},
		{"votes on one report", b.floor.voteOn(one), c.voteOn(one)},
	}
	if b.raw {
		return b.list(ctx, subjects)
	}
	var results []comparison
	for _, s := range subjects {
		result, err := b.compare(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		results = append(results, result)
	}
	p99, err := b.compareP99(ctx, results[0], c)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.out, "create_ratio=%.2f votes_spread_ratio=%.2f votes_hot_ratio=%.2f p99_ratio_half_load=%.2f\n",
		results[0].ratio, results[1].ratio, results[2].ratio, p99)
	return err
}

// A subject is what both sides do.
type subject struct {
	name        string
	floor, ours action
}

// list prints what the service does, as go test prints benchmarks.
func (b *bench) list(ctx context.Context, subjects []subject) error {
	for _, s := range subjects {
		for pass := range b.passes + 1 {
			n, err := closedLoop(ctx, b.conns, b.length, s.ours)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if pass == 0 || n == 0 {
				continue // it only warms up
			}
			name := strings.ReplaceAll(s.name, " ", "_")
			if _, err := fmt.Fprintf(b.out, "BenchmarkIngest/%s %d %d ns/op\n", name, n, b.length.Nanoseconds()/n); err != nil {
				return err
			}
		}
	}
	return nil
}

// A comparison has the medians of both sides, in a second, and of the ratios
// of neighbouring passes.
type comparison struct {
	floor, ours, ratio float64
}

// compare runs both sides in turn; the first pass of each only warms up.
func (b *bench) compare(ctx context.Context, s subject) (comparison, error) {
	var rates [2][]float64
	for pass := range b.passes + 1 {
		var now [2]float64
		for side, do := range []action{s.floor, s.ours} {
			n, err := closedLoop(ctx, b.conns, b.length, do)
			if err != nil {
				return comparison{}, err
			}
			now[side] = float64(n) / b.length.Seconds()
		}
		if pass == 0 {
			continue
		}
		for side := range rates {
			rates[side] = append(rates[side], now[side])
		}
	}
	c := comparison{stats.Median(rates[0]), stats.Median(rates[1]), stats.MedianRatio(rates[1], rates[0])}
	_, err := fmt.Fprintf(b.out, "%-24s floor %7.0f/s   over HTTP %7.0f/s   ratio %.2f\n", s.name, c.floor, c.ours, c.ratio)
	return c, err
}

// compareP99 has both sides create at half of what they can.
func (b *bench) compareP99(ctx context.Context, most comparison, clients *clients) (float64, error) {
	var floors, ours []float64
	for range b.passes {
		f, err := openLoop(ctx, b.conns, b.length, most.floor/2, b.floor.create)
		if err != nil {
			return 0, err
		}
		o, err := openLoop(ctx, b.conns, b.length, most.ours/2, clients.create)
		if err != nil {
			return 0, err
		}
		floors, ours = append(floors, f), append(ours, o)
	}
	ratio := stats.MedianRatio(ours, floors)
	_, err := fmt.Fprintf(b.out, "%-24s floor %6.2f ms   over HTTP %6.2f ms   ratio %.2f\n",
		"p99 of a create, half load", stats.Median(floors), stats.Median(ours), ratio)
	return ratio, err
}

// withPool sets how many connections the service has to the database; 0 leaves
// it to the service.
func withPool(database string, size int) (string, error) {
	if size == 0 {
		return database, nil
	}
	u, err := url.Parse(database)
	if err != nil {
		return "", fmt.Errorf("parse database URL: %w", err)
	}
	query := u.Query()
	query.Set("pool_max_conns", strconv.Itoa(size))
	u.RawQuery = query.Encode()
	return u.String(), nil
}
