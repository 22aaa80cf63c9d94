// Command cluster measures what a RabbitMQ cluster of three nodes costs beside
// a single node: how fast the relay publishes a backlog, how fast the consumer
// empties the queue that it filled, and how long it takes from a commit to the
// effect of its message at an even rate.
//
// Both brokers run on this machine for the whole time, and have their turns one
// after the other. Each queue has a copy on each node of its broker, and
// connections take a node at random. On one machine the nodes share processor
// and disk: what is seen is the work of three copies, not the network between
// machines.
//
// The database is the one that TEST_DATABASE_URL names, as `scripts/stack
// test-up` prints it. The last line has ratios of three nodes to one, medians of
// those of the passes: rates in the first two, times in the others.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench cluster:", err)
		os.Exit(1)
	}
}

// A result is one turn of a broker.
type result struct {
	relay, consumer float64 // messages a second
	p50, p99        float64 // from commit to effect, in milliseconds
}

func run(ctx context.Context, args []string) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	passes := flags.Int("passes", 5, "turns of each broker; medians count")
	messages := flags.Int("messages", 20_000, "messages of a backlog")
	rate := flags.Int("rate", 300, "commits a second, to measure how long one takes to its effect")
	seconds := flags.Int("seconds", 10, "how long that rate is kept up")
	if err := flags.Parse(args); err != nil {
		return err
	}
	city, err := newCity(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, city.close()) }()
	turns := []turn{{name: "one node"}, {name: "three nodes"}}
	for i, nodes := range [][]string{{"bench0"}, {"bench1", "bench2", "bench3"}} {
		if turns[i].broker, err = startBroker(ctx, nodes...); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, turns[i].broker.close()) }()
	}
	for pass := range *passes {
		for i := range turns {
			t := &turns[(pass+i)%len(turns)] // neither always comes first
			var r result
			if r.relay, r.consumer, err = city.backlog(ctx, t.broker, *messages); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			if r.p50, r.p99, err = city.latency(ctx, t.broker, *rate, *seconds); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			t.results = append(t.results, r)
			fmt.Printf("pass %d  %-12s relay %6.0f/s  consumer %6.0f/s  commit to effect at %d/s: p50 %.1f ms, p99 %.1f ms\n",
				pass+1, t.name, r.relay, r.consumer, *rate, r.p50, r.p99)
		}
	}
	ratio := func(of func(result) float64) float64 {
		return stats.MedianRatio(turns[1].all(of), turns[0].all(of))
	}
	fmt.Printf("relay_ratio=%.2f consumer_ratio=%.2f effect_p50_ratio=%.2f effect_p99_ratio=%.2f\n",
		ratio(func(r result) float64 { return r.relay }), ratio(func(r result) float64 { return r.consumer }),
		ratio(func(r result) float64 { return r.p50 }), ratio(func(r result) float64 { return r.p99 }))
	return nil
}

// A turn is a broker with what was measured on it, pass by pass.
type turn struct {
	name    string
	broker  *broker
	results []result
}

func (t turn) all(of func(result) float64) []float64 {
	values := make([]float64, 0, len(t.results))
	for _, r := range t.results {
		values = append(values, of(r))
	}
	return values
}
