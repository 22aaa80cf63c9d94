// Command sse measures the hub of the live streams: the memory of an idle
// connection, an event to everyone, and events to one client each, the last two in
// turn with r3labs/sse. Its last line sums up.
//
//	cd scripts/bench && GOWORK=off go run ./sse
//
// The hub runs alone, with positions in memory: what is measured is what it
// does with clients, not what a database does. r3labs/sse is served by this program
// in a process of its own.
//
// With -base it measures the hub and the program of an earlier revision in turn
// instead, and its last line has their ratios.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
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
	addr           = flag.String("addr", "", "serve r3labs/sse at this `address`, as this program has itself do")
)

func main() { testbed.Main(run) }

// A contestant is a program that serves streams.
type contestant struct {
	name, program string
	steps         []func(*hub, result) error // what is measured of it
	results       []result
}

// A result is what one pass of a contestant measured, as the last line names it.
type result map[string]float64

// figures are all of them, in their order.
var figures = []string{"rss_per_conn_kb", "fanout_per_s", "cpu_us_per_delivery", "unicast_p99_ms"}

func run(ctx context.Context, b *testbed.Bed) error {
	if *addr != "" {
		return serveR3labs(ctx, *addr)
	}
	program, err := b.Build(ctx, "notification-service", "sse")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	steps := []func(*hub, result) error{weigh, fanOut, unicast}
	ours, other := contestant{name: "ours", program: program, steps: steps}, contestant{name: "r3labs", program: self, steps: steps[1:]}
	if *base != "" {
		other = contestant{name: "base", program: *base, steps: steps}
	}
	sides := []*contestant{&ours, &other}
	for pass, side := range testbed.Turns(*passes, len(sides)) {
		c := sides[side]
		r, err := c.measure(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Printf("pass %d  %-6s  %v\n", pass+1, c.name, r)
		c.results = append(c.results, r)
	}
	report(ours, other)
	return nil
}

// report prints the line that is compared over time.
func report(ours, other contestant) {
	var line testbed.Figures
	prefix := ""
	if *base == "" {
		prefix = "r3labs_"
		for _, name := range figures {
			line.Add(name, 2, stats.Median(ours.all(name)))
		}
	}
	for _, name := range figures {
		if _, measured := other.results[0][name]; measured {
			line.AddRatio(prefix+name+"_ratio", ours.all(name), other.all(name))
		}
	}
	line.Print()
}

// measure starts a hub for each measurement, so that none inherits memory.
func (c *contestant) measure(ctx context.Context) (result, error) {
	r := make(result)
	for _, step := range c.steps {
		h, err := startHub(ctx, c.program)
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
func (c *contestant) all(name string) []float64 {
	values := make([]float64, len(c.results))
	for i, r := range c.results {
		values[i] = r[name]
	}
	return values
}
