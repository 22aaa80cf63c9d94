// Command consumer measures how fast notification-service's consumer empties
// a queue: without an effect, with the record of handled messages, one message a
// transaction, with its whole effect (the record, the numbered notification and
// the stream's head), and while some of the messages fail.
//
// The passes alternate on the same broker and database, so that whatever else the
// machine does meets all of them. Each has one worker, which holds ten messages at
// the most, or four, which is how it ships.
//
// With -base it measures only ours and the program of an earlier revision, each
// with its own schema, and says how they compare. Who goes first alternates: the
// broker still tidies up after the first while the second runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"text/tabwriter"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
}

// A bench is what the command line says, and what it is measured on.
type bench struct {
	database string
	key      string // seals recipients
	topology event.Topology
	program  string // our contestant
	base     string // that of an earlier revision; empty: ours alone is measured
	before   string // the database of the base
	messages int
	failing  int // messages of the passes with failures
	passes   int
	out      io.Writer
	results  map[string][]result
}

// A result is one pass of a contestant.
type result struct {
	Messages int     // good ones
	Seconds  float64 `json:"seconds"`  // until they were done
	StallMS  float64 `json:"stall_ms"` // the longest time without one
}

func (r result) perSecond() float64 { return float64(r.Messages) / r.Seconds }

// A contestant empties the queue once.
type contestant struct {
	name string
	load load
	run  func(ctx context.Context, url string, l load) (result, error)
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	b := &bench{key: event.NewKey("k1"), out: out, results: make(map[string][]result)}
	flags := flag.NewFlagSet("consumer", flag.ContinueOnError)
	flags.IntVar(&b.messages, "messages", 30_000, "messages of 512 bytes in the queue")
	flags.IntVar(&b.failing, "failing", 30_000, "messages in the passes with failures")
	flags.IntVar(&b.passes, "passes", 3, "passes of each contestant, an odd number")
	flags.StringVar(&b.base, "base", "", "the `program` of an earlier revision: only it and ours are measured")
	baseMigrate := flags.String("base-migrate", "", "the `program` that migrates for -base")
	service := flags.String("service", "../../notification-service", "the `folder` of notification-service")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if (b.base == "") != (*baseMigrate == "") {
		return errors.New("-base and -base-migrate go together: both are programs of the other revision")
	}
	var drop func() error
	if b.database, drop, err = testbed.Database(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	if err := migrations.Up(ctx, b.database, migrations.Notification); err != nil {
		return err
	}
	if b.base != "" {
		var dropBefore func() error
		if b.before, dropBefore, err = testbed.Migrated(ctx, *baseMigrate, string(migrations.Notification)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, dropBefore()) }()
	}
	folder, err := os.MkdirTemp("", "bench-consumer")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if b.program, err = build(ctx, *service, folder); err != nil {
		return err
	}
	for pass := range b.passes {
		for _, c := range b.contestants(pass) {
			if err := b.pass(ctx, pass, c); err != nil {
				return err
			}
		}
	}
	if b.base != "" {
		return b.compare()
	}
	return b.report()
}

// contestants returns those of a pass, in their order.
func (b *bench) contestants(pass int) []contestant {
	if b.base != "" {
		return b.revisions(pass)
	}
	all := load{messages: b.messages}
	list := []contestant{
		{"ours, no effect", all, b.ours(b.program, b.database, "-effect=nothing")},
		{"ours", all, b.ours(b.program, b.database, "-effect=record")},
		{"ours, one message a transaction", all, b.ours(b.program, b.database, "-effect=record", "-batch=1")},
		{"ours, whole effect", all, b.ours(b.program, b.database, "-effect=whole")},
		{"ours, four workers", all, b.ours(b.program, b.database, "-effect=record", "-workers=4")},
	}
	for _, percent := range []int{1, 10} {
		l := load{messages: b.failing, failing: b.failing * percent / 100}
		list = append(list,
			contestant{fmt.Sprintf("ours, %d %% fail", percent), l, b.ours(b.program, b.database, "-effect=record")},
			contestant{fmt.Sprintf("ours, four workers, %d %% fail", percent), l, b.ours(b.program, b.database, "-effect=record", "-workers=4")})
	}
	return list
}

// pass fills a fresh queue and lets c empty it.
func (b *bench) pass(ctx context.Context, pass int, c contestant) error {
	url, drop, err := b.fill(c.load)
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	r, err := c.run(ctx, url, c.load)
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	r.Messages = c.load.good()
	b.results[c.name] = append(b.results[c.name], r)
	fmt.Fprintf(b.out, "pass %d  %-34s %8.0f/s  %8.2f s  longest stall %7.1f ms\n", pass+1, c.name, r.perSecond(), r.Seconds, r.StallMS)
	return drop()
}

// report prints medians, and last the line that is compared over time.
func (b *bench) report() error {
	table := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\ncontestant\tmessages/s\ts until the good are done\tlongest stall ms\t")
	for _, c := range b.contestants(0) {
		fmt.Fprintf(table, "%s\t%.0f\t%.2f\t%.1f\t\n", c.name, b.rate(c.name), b.median(c.name, seconds), b.median(c.name, stall))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	singly := stats.MedianRatio(b.values("ours, one message a transaction", seconds), b.values("ours", seconds))
	_, err := fmt.Fprintf(b.out, "drain_per_s=%.0f effect_per_s=%.0f single_tx_ratio=%.2f stall_ms_1pct=%.1f stall_ms_10pct=%.1f\n",
		b.rate("ours, no effect"), b.rate("ours"), singly, b.median("ours, 1 % fail", stall), b.median("ours, 10 % fail", stall))
	return err
}

func seconds(r result) float64 { return r.Seconds }
func stall(r result) float64   { return r.StallMS }

func (b *bench) rate(name string) float64 { return b.median(name, result.perSecond) }

func (b *bench) median(name string, of func(result) float64) float64 {
	return stats.Median(b.values(name, of))
}

func (b *bench) values(name string, of func(result) float64) []float64 {
	values := make([]float64, 0, b.passes)
	for _, r := range b.results[name] {
		values = append(values, of(r))
	}
	return values
}
