// Command relay measures the outbox relay against a floor, raw publishing with
// the same window, and against River, in one run and interleaved. All publish the
// same messages to the same durable quorum queue, with confirms; the relay and
// River read them from a PostgreSQL with fsync. Its last line is
//
//	relay_per_s= floor_ratio= river_ratio= wal_bytes_per_row= idle_p50_ms= p99_ms_at_1k=
//
// With -base it measures only ours and the program of an earlier revision, in
// turn, and its last line is relay_ratio=.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

var (
	passes  = flag.Int("passes", 5, "interleaved passes; medians count")
	rows    = flag.Int("rows", 60_000, "rows of a pass")
	seconds = flag.Int("seconds", 10, "how long 1,000 rows a second are kept up")
	base    = flag.String("base", "", "the `program` of an earlier revision: only it and ours are measured")
)

func main() { testbed.Main(run) }

func run(ctx context.Context, b *testbed.Bed) error {
	f, err := newFixture(ctx, b)
	if err != nil {
		return err
	}
	var figures testbed.Figures
	if *base != "" {
		rates, _, err := race(ctx, f, []contestant{{"base", relayBy(*base)}, {"relay", relayBy(f.program)}})
		if err != nil {
			return err
		}
		figures.AddRatio("relay_ratio", rates["relay"], rates["base"])
		figures.Print()
		return nil
	}
	rates, wal, err := race(ctx, f, []contestant{{"floor", runFloor}, {"relay", relayBy(f.program)}, {"river", runRiver}})
	if err != nil {
		return err
	}
	idle, err := measureAt(ctx, f, 5)
	if err != nil {
		return err
	}
	busy, err := measureAt(ctx, f, 1000)
	if err != nil {
		return err
	}
	figures.Add("relay_per_s", 0, stats.Median(rates["relay"]))
	figures.AddRatio("floor_ratio", rates["relay"], rates["floor"])
	figures.AddRatio("river_ratio", rates["relay"], rates["river"])
	figures.Add("wal_bytes_per_row", 0, stats.Median(wal))
	figures.Add("idle_p50_ms", 1, idle.P50)
	figures.Add("p99_ms_at_1k", 1, busy.P99)
	figures.Print()
	return nil
}

// A contestant publishes so many pending rows or messages, and says how long
// it took.
type contestant struct {
	name string
	run  func(context.Context, *fixture, int) (time.Duration, error)
}

// race runs all contestants in turn, several times.
func race(ctx context.Context, f *fixture, contestants []contestant) (rates map[string][]float64, wal []float64, err error) {
	rates = make(map[string][]float64)
	for pass, side := range testbed.Turns(*passes, len(contestants)) {
		c := contestants[side]
		if err := f.fresh(ctx); err != nil {
			return nil, nil, err
		}
		took, err := c.run(ctx, f, *rows)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", c.name, err)
		}
		rate := float64(*rows) / took.Seconds()
		rates[c.name] = append(rates[c.name], rate)
		fmt.Printf("pass %d  %-10s %7.0f/s\n", pass+1, c.name, rate)
		if c.name == "relay" {
			wal = append(wal, float64(f.walBytes)/float64(*rows))
		}
	}
	return rates, wal, nil
}
