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
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

// A plan is how much is measured.
type plan struct {
	idle    int           // connections whose memory is weighed
	fanout  int           // connections that get the same event
	unicast int           // connections that get one each, at rate
	rate    int           // events a second for unicast
	passes  int           // of each measurement, the servers in turn
	length  time.Duration // of each pass
	base    string        // a hub's program to compare with; empty: ours alone is measured
}

func main() {
	var p plan
	flag.IntVar(&p.idle, "idle", 10_000, "connections whose memory is weighed")
	flag.IntVar(&p.fanout, "fanout", 5000, "connections that get the same event")
	flag.IntVar(&p.unicast, "unicast", 5000, "connections that get events of their own")
	flag.IntVar(&p.rate, "rate", 1000, "such events a second")
	flag.IntVar(&p.passes, "passes", 3, "passes of each measurement, of which the median counts")
	flag.DurationVar(&p.length, "length", 4*time.Second, "length of a pass")
	flag.StringVar(&p.base, "base", "", "the hub's `program` of an earlier revision, to compare with")
	flag.Parse()
	if err := run(p); err != nil {
		fmt.Fprintln(os.Stderr, "bench sse:", err)
		os.Exit(1)
	}
}

// A result is what one pass of a hub measured.
type result struct{ kbPerConn, perSecond, cpuMicro, unicastP99 float64 }

// A figure is one of a result, as the last line names it.
type figure struct {
	name string
	of   func(result) float64
}

var figures = []figure{
	{"rss_per_conn_kb", func(r result) float64 { return r.kbPerConn }},
	{"fanout_per_s", func(r result) float64 { return r.perSecond }},
	{"cpu_us_per_delivery", func(r result) float64 { return r.cpuMicro }},
	{"unicast_p99_ms", func(r result) float64 { return r.unicastP99 }},
}

func run(p plan) error {
	ours, cleanup, err := buildHub()
	if err != nil {
		return err
	}
	defer cleanup()
	programs := []string{ours}
	if p.base != "" {
		programs = append(programs, p.base)
	}
	passes := make([][]result, len(programs))
	for n := range p.passes { // in turn, so that a busy minute harms both alike
		for i := range programs {
			if n%2 == 1 { // whoever comes second finds a machine that tidies up
				i = len(programs) - 1 - i
			}
			fmt.Fprintf(os.Stderr, "pass %d of %d: %s\n", n+1, p.passes, programs[i])
			r, err := pass(programs[i], p)
			if err != nil {
				return fmt.Errorf("%s: %w", programs[i], err)
			}
			passes[i] = append(passes[i], r)
		}
	}
	for _, f := range figures {
		if p.base != "" {
			ratios := stats.Ratios(all(passes[0], f), all(passes[1], f))
			fmt.Fprintf(os.Stderr, "%s: %.2f to %.2f\n", f.name, slices.Min(ratios), slices.Max(ratios))
			fmt.Printf("%s_ratio=%.2f ", f.name, stats.Median(ratios))
		} else {
			fmt.Printf("%s=%.2f ", f.name, stats.Median(all(passes[0], f)))
		}
	}
	fmt.Println()
	return nil
}

// pass starts a hub for each measurement, so that none inherits memory.
func pass(program string, p plan) (r result, err error) {
	for _, measure := range []func(*hub) error{
		func(h *hub) (err error) { r.kbPerConn, err = weigh(h, p); return err },
		func(h *hub) (err error) { r.perSecond, r.cpuMicro, err = fanOut(h, p); return err },
		func(h *hub) (err error) { r.unicastP99, err = unicast(h, p); return err },
	} {
		h, err := startHub(program)
		if err != nil {
			return r, err
		}
		err = measure(h)
		h.stop()
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// all returns a figure of each pass.
func all(passes []result, f figure) []float64 {
	values := make([]float64, len(passes))
	for i, r := range passes {
		values[i] = f.of(r)
	}
	return values
}
