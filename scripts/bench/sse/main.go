// Command sse measures the hub of the live streams beside other servers of
// Server-Sent Events, in one run on one machine: Nchan (nginx), go-sse and
// r3labs/sse. Its last line sums up.
//
//	cd scripts/bench && GOWORK=off go run ./sse
//
// The hub runs alone, with positions in memory: what is measured is what it
// does with clients, not what a database does.
//
// With -base it measures only the hub and the program of an earlier revision,
// in turn, and its last line has their ratios.
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
	base    string        // a hub's program to compare with; empty: the peers are measured
}

func main() {
	var p plan
	serve := flag.String("serve", "", "serve as a peer: gosse or r3labs (used by the command itself)")
	addr := flag.String("addr", "", "where to serve")
	flag.IntVar(&p.idle, "idle", 10_000, "connections whose memory is weighed")
	flag.IntVar(&p.fanout, "fanout", 5000, "connections that get the same event")
	flag.IntVar(&p.unicast, "unicast", 5000, "connections that get events of their own")
	flag.IntVar(&p.rate, "rate", 1000, "such events a second")
	flag.IntVar(&p.passes, "passes", 3, "passes of each measurement, of which the median counts")
	flag.DurationVar(&p.length, "length", 4*time.Second, "length of a pass")
	flag.StringVar(&p.base, "base", "", "the hub's `program` of an earlier revision: only it and ours are measured")
	flag.Parse()
	do := func() error { return run(p) }
	if *serve != "" {
		do = func() error { return servePeer(*serve, *addr) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "bench sse:", err)
		os.Exit(1)
	}
}

// A result has the medians of one server.
type result struct {
	name                           string
	kbPerConn, perSecond, cpuMicro float64
	unicastP99                     time.Duration
	stall                          stallResult
}

func run(p plan) error {
	servers, cleanup, err := allServers(p.base)
	if err != nil {
		return err
	}
	defer cleanup()
	results := make([]result, len(servers))
	passes := make([][]result, len(servers))
	for n := range p.passes { // in turn, so that a busy minute harms all alike
		for i := range servers {
			if n%2 == 1 { // whoever comes second finds a machine that tidies up
				i = len(servers) - 1 - i
			}
			s := servers[i]
			fmt.Fprintf(os.Stderr, "pass %d of %d: %s\n", n+1, p.passes, s.name)
			r, err := pass(s, p)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			passes[i] = append(passes[i], r)
		}
	}
	if p.base != "" {
		compare(passes[0], passes[1])
		return nil
	}
	for i, s := range servers {
		fmt.Fprintf(os.Stderr, "a stalled reader: %s\n", s.name)
		results[i] = median(s.name, passes[i])
		if results[i].stall, err = stalled(s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	fmt.Fprintf(os.Stderr, "all clients sent away: %s\n", servers[0].name)
	gone, err := drained(servers[0], p.idle)
	if err != nil {
		return fmt.Errorf("%s: %w", servers[0].name, err)
	}
	report(results)
	fmt.Println(gone)
	summarize(results)
	return nil
}

// pass starts a server for each measurement, so that none inherits memory.
func pass(s server, p plan) (result, error) {
	r := result{name: s.name}
	for _, measure := range []func(*process) error{
		func(proc *process) (err error) { r.kbPerConn, err = weigh(proc, p); return err },
		func(proc *process) (err error) { r.perSecond, r.cpuMicro, err = fanOut(proc, p); return err },
		func(proc *process) (err error) { r.unicastP99, err = unicast(proc, p); return err },
	} {
		proc, err := s.start()
		if err != nil {
			return r, err
		}
		err = measure(proc)
		proc.stop()
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

func median(name string, passes []result) result {
	pick := func(get func(result) float64) float64 {
		values := make([]float64, len(passes))
		for i, r := range passes {
			values[i] = get(r)
		}
		return stats.Median(values)
	}
	return result{
		name:       name,
		kbPerConn:  pick(func(r result) float64 { return r.kbPerConn }),
		perSecond:  pick(func(r result) float64 { return r.perSecond }),
		cpuMicro:   pick(func(r result) float64 { return r.cpuMicro }),
		unicastP99: time.Duration(pick(func(r result) float64 { return float64(r.unicastP99) })),
	}
}

// compare prints how many times the base's figures ours are, pass by pass.
func compare(ours, base []result) {
	for _, figure := range []struct {
		name string
		of   func(result) float64
	}{
		{"fanout_ratio", func(r result) float64 { return r.perSecond }},
		{"cpu_ratio", func(r result) float64 { return r.cpuMicro }},
		{"unicast_p99_ratio", func(r result) float64 { return float64(r.unicastP99) }},
		{"rss_ratio", func(r result) float64 { return r.kbPerConn }},
	} {
		ratios := make([]float64, len(ours))
		for i := range ours {
			ratios[i] = figure.of(ours[i]) / figure.of(base[i])
		}
		fmt.Fprintf(os.Stderr, "%s: %.2f to %.2f\n", figure.name, slices.Min(ratios), slices.Max(ratios))
		fmt.Printf("%s=%.2f ", figure.name, stats.Median(ratios))
	}
	fmt.Println()
}

func report(results []result) {
	fmt.Printf("%-22s %12s %14s %14s %14s %12s %26s\n", "", "KB/idle conn", "deliveries/s", "CPU µs each", "unicast p99", "stalled gone", "others' p99 before, during")
	for _, r := range results {
		fmt.Printf("%-22s %12.1f %14.0f %14.1f %14s %12s %26s\n", r.name, r.kbPerConn, r.perSecond, r.cpuMicro,
			r.unicastP99.Round(10*time.Microsecond), r.stall.gone(), r.stall.others())
	}
}

// summarize prints the line that is compared over time.
func summarize(results []result) {
	best := 0.0
	for _, r := range results[ownServers:] {
		best = max(best, r.perSecond)
	}
	own := results[0]
	fmt.Printf("rss_per_conn_kb=%.1f fanout_per_s=%.0f best_peer_ratio=%.2f cpu_us_per_delivery=%.1f unicast_p99_ms=%.2f stalled_gone_s=%.1f\n",
		own.kbPerConn, own.perSecond, own.perSecond/best, own.cpuMicro,
		float64(own.unicastP99)/float64(time.Millisecond), own.stall.after.Seconds())
}
