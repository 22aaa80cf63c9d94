// Command ingest measures what report-service accepts over HTTP, through its
// real binary, against a floor: a bare client that makes the same changes in
// plain transactions, one each, over as many connections.
//
// The passes of the two alternate on the same server, so that whatever else
// the machine does meets both. The broker is away: what is measured is the
// way into the database. The last line has the medians of the ratios.
//
// With -base it measures two revisions of report-service in the same way, each on
// a database of its own, and no floor.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"strconv"
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
	out     io.Writer
}

// A revision is a build of the service, and what it runs on.
type revision struct {
	service *testbed.ReportService
	floor   *floor // on the same database
	drop    func() error
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
	flags.IntVar(&b.pool, "pool", 0, "connections of report-service to its database, 0 for its own choice")
	service := flags.String("service", "../../bin/report-service", "report-service's `program`")
	migrate := flags.String("migrate", "../../bin/migrate", "the `program` that migrates")
	base := flags.String("base", "", "report-service's `program` of another revision, to compare with")
	baseMigrate := flags.String("base-migrate", "", "the `program` that migrates for -base")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if (*base == "") != (*baseMigrate == "") {
		return errors.New("-base and -base-migrate go together: both are programs of the other revision")
	}
	now, err := b.start(ctx, *service, *migrate)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, now.stop()) }()
	if *base == "" {
		return b.measure(ctx, now)
	}
	then, err := b.start(ctx, *base, *baseMigrate)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, then.stop()) }()
	return b.compareRevisions(ctx, then, now)
}

// start runs a revision on a database of its own. Its program migrates, not this
// module: it may be of another revision.
func (b *bench) start(ctx context.Context, service, migrate string) (_ *revision, err error) {
	database, drop, err := testbed.Migrated(ctx, migrate, "report")
	if err != nil {
		return nil, err
	}
	r := &revision{drop: drop}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.stop())
		}
	}()
	if r.floor, err = newFloor(ctx, database, b.conns, b.reports); err != nil {
		return nil, err
	}
	pooled, err := withPool(database, b.pool)
	if err != nil {
		return nil, err
	}
	r.service, err = testbed.StartReportService(ctx, service, pooled)
	return r, err
}

// stop ends whatever of r has begun.
func (r *revision) stop() error {
	if r.service != nil {
		r.service.Stop()
	}
	if r.floor != nil {
		r.floor.close()
	}
	return r.drop()
}

// measure makes every comparison with the floor and prints the line.
func (b *bench) measure(ctx context.Context, r *revision) error {
	c, err := connect(ctx, r.service, b.conns)
	if err != nil {
		return err
	}
	defer c.close()
	many, one := r.floor.reports, r.floor.reports[:1]
	var results []comparison
	for _, s := range []subject{
		{"creates", "floor", "over HTTP", r.floor.create, c.create},
		{"votes on many reports", "floor", "over HTTP", r.floor.voteOn(many), c.voteOn(many)},
		{"votes on one report", "floor", "over HTTP", r.floor.voteOn(one), c.voteOn(one)},
	} {
		result, err := b.compare(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		results = append(results, result)
	}
	p99, err := b.compareP99(ctx, results[0], r.floor.create, c.create)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.out, "create_ratio=%.2f votes_spread_ratio=%.2f votes_hot_ratio=%.2f p99_ratio_half_load=%.2f\n",
		results[0].ratio, results[1].ratio, results[2].ratio, p99)
	return err
}

// compareRevisions makes every comparison of two revisions and prints the line.
func (b *bench) compareRevisions(ctx context.Context, then, now *revision) error {
	var ratios []any
	for _, change := range []struct {
		name   string
		action func(*clients, *revision) action
	}{
		{"creates", func(c *clients, _ *revision) action { return c.create }},
		{"votes on many reports", func(c *clients, r *revision) action { return c.voteOn(r.floor.reports) }},
		{"votes on one report", func(c *clients, r *revision) action { return c.voteOn(r.floor.reports[:1]) }},
	} {
		ratio, err := b.compareChange(ctx, change.name, change.action, then, now)
		if err != nil {
			return fmt.Errorf("%s: %w", change.name, err)
		}
		ratios = append(ratios, ratio)
	}
	_, err := fmt.Fprintf(b.out, "create_to_base=%.2f votes_spread_to_base=%.2f votes_hot_to_base=%.2f\n", ratios...)
	return err
}

// compareChange has connections of its own: the services close what nobody uses
// for a while.
func (b *bench) compareChange(
	ctx context.Context, name string, action func(*clients, *revision) action, then, now *revision,
) (float64, error) {
	ofThen, err := connect(ctx, then.service, b.conns)
	if err != nil {
		return 0, err
	}
	defer ofThen.close()
	ofNow, err := connect(ctx, now.service, b.conns)
	if err != nil {
		return 0, err
	}
	defer ofNow.close()
	result, err := b.compare(ctx, subject{name, "base", "now", action(ofThen, then), action(ofNow, now)})
	return result.ratio, err
}

// A subject is what both sides do, and how they are called.
type subject struct {
	name, left, right string
	ofLeft, ofRight   action
}

// A comparison has the medians of both sides, in a second, and of the ratios
// of neighbouring passes.
type comparison struct {
	left, right, ratio float64
}

// compare runs both sides in turn; the first pass of each only warms up.
func (b *bench) compare(ctx context.Context, s subject) (comparison, error) {
	var rates [2][]float64
	for pass := range b.passes + 1 {
		var now [2]float64
		for turn := range 2 {
			side := (pass + turn) % 2 // who is first alternates
			n, err := closedLoop(ctx, b.conns, b.length, []action{s.ofLeft, s.ofRight}[side])
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
	_, err := fmt.Fprintf(b.out, "%-24s %s %7.0f/s   %s %7.0f/s   ratio %.2f\n", s.name, s.left, c.left, s.right, c.right, c.ratio)
	return c, err
}

// compareP99 has both sides create at half of what they can.
func (b *bench) compareP99(ctx context.Context, most comparison, floor, create action) (float64, error) {
	var floors, ours []float64
	for range b.passes {
		f, err := openLoop(ctx, b.conns, b.length, most.left/2, floor)
		if err != nil {
			return 0, err
		}
		o, err := openLoop(ctx, b.conns, b.length, most.right/2, create)
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
