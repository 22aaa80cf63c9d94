// Command sse measures the hub of the live streams: the memory of an idle
// connection, an event to everyone, and events to one client each. Its last line
// sums up.
//
//	cd scripts/bench && GOWORK=off go run ./sse
//
// The hub runs alone, with positions in memory: what is measured is what it
// does with clients, not what a database does.
//
// With -base it measures the hub and the program of an earlier revision in turn,
// and its last line has their ratios.
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
	idleClients    = flag.Int("idle", 10_000, "connections whose memory is weighed")
	fanOutClients  = flag.Int("fanout", 5000, "connections that get the same event")
	unicastClients = flag.Int("unicast", 5000, "connections that get events of their own")
	unicastRate    = flag.Int("rate", 1000, "such events a second")
	passes         = flag.Int("passes", 3, "passes of each measurement, of which the median counts")
	passLength     = flag.Duration("length", 4*time.Second, "length of a pass")
	base           = flag.String("base", "", "the hub's `program` of an earlier revision, to compare with")
)

func main() { testbed.Main(run) }

// A result is what one pass of a hub measured, as the last line names it.
type result map[string]float64

// figures are all of them, in their order.
var figures = []string{"rss_per_conn_kb", "fanout_per_s", "cpu_us_per_delivery", "unicast_p99_ms"}

func run(ctx context.Context, b *testbed.Bed) error {
	ours, err := b.Build(ctx, "notification-service", "sse")
	if err != nil {
		return err
	}
	programs := []string{ours}
	if *base != "" {
		programs = append(programs, *base)
	}
	results := make([][]result, len(programs))
	for pass, side := range testbed.Turns(*passes, len(programs)) {
		r, err := measure(ctx, programs[side])
		if err != nil {
			return fmt.Errorf("%s: %w", programs[side], err)
		}
		fmt.Printf("pass %d  %s  %v\n", pass+1, []string{"ours", "base"}[side], r)
		results[side] = append(results[side], r)
	}
	var line testbed.Figures
	for _, name := range figures {
		if *base != "" {
			line.AddRatio(name+"_ratio", all(results[0], name), all(results[1], name))
		} else {
			line.Add(name, 2, stats.Median(all(results[0], name)))
		}
	}
	line.Print()
	return nil
}

// measure starts a hub for each measurement, so that none inherits memory.
func measure(ctx context.Context, program string) (result, error) {
	r := make(result)
	for _, step := range []func(*hub, result) error{weigh, fanOut, unicast} {
		h, err := startHub(ctx, program)
		if err != nil {
			return r, err
		}
		err = step(h, r)
		h.Stop()
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// all returns a figure of each pass.
func all(passes []result, name string) []float64 {
	values := make([]float64, len(passes))
	for i, r := range passes {
		values[i] = r[name]
	}
	return values
}
