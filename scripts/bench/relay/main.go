// Command relay measures the outbox relay against a floor, in one run and
// interleaved: raw publishing with the same window. Both publish the same
// messages to the same durable quorum queue, with confirms, and the relay reads
// them from a PostgreSQL with fsync.
//
// It needs the servers that TEST_DATABASE_URL and the TEST_RABBITMQ_… variables
// name, as `scripts/stack test-up` prints them. Its last line is
//
//	relay_per_s= floor_ratio= wal_bytes_per_row= idle_p50_ms= p99_ms_at_1k=
//
// With -base it measures only ours and the program of an earlier revision, in
// turn, and its last line is relay_ratio=.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

// options are how much is measured.
type options struct {
	passes  int
	rows    int // of a pass
	history []int
	seconds int
	base    string // a program to compare with; empty: the floor is measured
}

func main() {
	var o options
	flag.IntVar(&o.passes, "passes", 5, "interleaved passes; medians count")
	flag.IntVar(&o.rows, "rows", 60_000, "rows of a pass")
	flag.IntVar(&o.seconds, "seconds", 10, "how long 1,000 rows a second are kept up")
	flag.StringVar(&o.base, "base", "", "the `program` of an earlier revision: only it and ours are measured")
	history := flag.String("history", "10000,1000000", "published rows already in the table, to see how cost grows; also 10000000")
	flag.Parse()
	for field := range strings.SplitSeq(*history, ",") {
		if n, err := strconv.Atoi(field); err == nil {
			o.history = append(o.history, n)
		}
	}
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "bench relay:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	f, err := newFixture(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if o.base != "" {
		return compare(ctx, f, o)
	}
	rates, wal, err := race(ctx, f, o, []contestant{{"floor", runFloor}, {"relay", relayBy(f.program)}})
	if err != nil {
		return err
	}
	if err := grow(ctx, f, o); err != nil {
		return err
	}
	idle, busy, err := latencies(ctx, f, o)
	if err != nil {
		return err
	}
	fmt.Printf("relay_per_s=%.0f floor_ratio=%.2f wal_bytes_per_row=%.0f idle_p50_ms=%.1f p99_ms_at_1k=%.1f\n",
		stats.Median(rates["relay"]), stats.MedianRatio(rates["relay"], rates["floor"]), stats.Median(wal), idle, busy)
	return nil
}

// compare prints how many times the base's rate the relay has.
func compare(ctx context.Context, f *fixture, o options) error {
	rates, _, err := race(ctx, f, o, []contestant{{"base", relayBy(o.base)}, {"relay", relayBy(f.program)}})
	if err != nil {
		return err
	}
	ratios := stats.Ratios(rates["relay"], rates["base"])
	fmt.Printf("the relay over the base: median of the passes, least and most\nrelay_ratio=%.2f relay_ratio_min=%.2f relay_ratio_max=%.2f\n",
		stats.Median(ratios), slices.Min(ratios), slices.Max(ratios))
	return nil
}

// A contestant publishes so many pending rows or messages, and says how long
// it took.
type contestant struct {
	name string
	run  func(context.Context, *fixture, int) (time.Duration, error)
}

// race runs all contestants in turn, several times.
func race(ctx context.Context, f *fixture, o options, contestants []contestant) (rates map[string][]float64, wal []float64, err error) {
	rates = make(map[string][]float64)
	for pass := range o.passes {
		for _, c := range contestants {
			if err := f.fresh(ctx); err != nil {
				return nil, nil, err
			}
			took, err := c.run(ctx, f, o.rows)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", c.name, err)
			}
			rate := float64(o.rows) / took.Seconds()
			rates[c.name] = append(rates[c.name], rate)
			fmt.Printf("pass %d  %-10s %7.0f/s", pass+1, c.name, rate)
			if c.name == "relay" {
				perRow := float64(f.walBytes) / float64(o.rows)
				wal = append(wal, perRow)
				fmt.Printf("  %.0f bytes of WAL a row", perRow)
			}
			fmt.Println()
		}
	}
	return rates, wal, nil
}

// grow shows the relay's rate over ever more published history.
func grow(ctx context.Context, f *fixture, o options) error {
	for _, rows := range o.history {
		var rates []float64
		for range min(o.passes, 3) {
			if err := f.fresh(ctx); err != nil {
				return err
			}
			if err := f.addHistory(ctx, rows); err != nil {
				return err
			}
			took, err := relayBy(f.program)(ctx, f, o.rows)
			if err != nil {
				return err
			}
			rates = append(rates, float64(o.rows)/took.Seconds())
		}
		fmt.Printf("history %9d rows: %7.0f/s\n", rows, stats.Median(rates))
	}
	return nil
}

// latencies measures commit to confirm: five rows a second, and a thousand.
func latencies(ctx context.Context, f *fixture, o options) (idleP50, busyP99 float64, err error) {
	for _, load := range []struct{ rate, seconds int }{{5, o.seconds}, {1000, o.seconds}} {
		if err := f.fresh(ctx); err != nil {
			return 0, 0, err
		}
		result, err := measureAt(ctx, f, load.rate, load.seconds)
		if err != nil {
			return 0, 0, err
		}
		fmt.Printf("%4d rows/s: commit to confirm p50 %.1f ms, p99 %.1f ms, %.1f reads/s\n",
			load.rate, result.P50, result.P99, result.Reads/float64(load.seconds))
		if load.rate == 1000 {
			busyP99 = result.P99
		} else {
			idleP50 = result.P50
		}
	}
	return idleP50, busyP99, nil
}
