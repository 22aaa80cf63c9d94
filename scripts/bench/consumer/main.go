// Command consumer measures how fast notification-service's consumer empties
// a queue: without an effect, with the record of handled messages, one message a
// transaction, with its whole effect (the record, the numbered notification and
// the stream's head), and while some of the messages fail.
//
// The passes alternate on the same broker and database, so that whatever else the
// machine does meets all of them. Each has one worker, which holds ten messages at
// the most, or four, which is how it ships.
//
// With -base it measures the program of an earlier revision beside ours, each with
// its own schema, and says how they compare.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"github.com/cityconnect/cityconnect/migrations"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

var (
	messages    = flag.Int("messages", 30_000, "messages of 512 bytes in the queue")
	failing     = flag.Int("failing", 30_000, "messages in the passes with failures")
	passes      = flag.Int("passes", 3, "passes of each contestant, an odd number")
	base        = flag.String("base", "", "the `program` of an earlier revision, to compare with")
	baseMigrate = flag.String("base-migrate", "", "the `program` that migrates for -base")
)

func main() { testbed.Main(run) }

// A bench is what is measured on.
type bench struct {
	*testbed.Bed
	key      string // seals recipients
	topology event.Topology
}

// A contestant is a program that empties a queue into its database.
type contestant struct {
	program, database string
	results           map[string][]result // by the name of the load
}

// A result is one pass of a contestant.
type result struct {
	perSecond float64
	Seconds   float64 `json:"seconds"`  // until the good messages were done
	StallMS   float64 `json:"stall_ms"` // the longest time without one
}

// A load is what a queue is filled with, and what is done with it.
type load struct {
	name     string
	messages int
	failing  int // of them, those that fail in the first second
	args     []string
	ratio    string // of our rate to the base's, in the last line; empty: not compared
}

func (l load) good() int { return l.messages - l.failing }

// loads are all that are measured. Only those with a ratio are, where two
// revisions are compared.
func loads() []load {
	record := []string{"-effect=record"}
	all := []load{
		{"no effect", *messages, 0, []string{"-effect=nothing"}, "drain_ratio"},
		{"record", *messages, 0, record, "record_ratio"},
		{"one message a transaction", *messages, 0, append(record, "-batch=1"), ""},
		{"whole effect", *messages, 0, []string{"-effect=whole"}, "effect_ratio"},
		{"four workers", *messages, 0, []string{"-effect=whole", "-workers=4"}, "four_workers_ratio"},
		{"1 % fail", *failing, *failing / 100, record, ""},
		{"10 % fail", *failing, *failing / 10, record, "failing_ratio"},
	}
	if *base == "" {
		return all
	}
	var compared []load
	for _, l := range all {
		if l.ratio != "" {
			compared = append(compared, l)
		}
	}
	return compared
}

func run(ctx context.Context, bed *testbed.Bed) error {
	if (*base == "") != (*baseMigrate == "") {
		return errors.New("-base and -base-migrate go together: both are programs of the other revision")
	}
	b := &bench{Bed: bed, key: event.NewKey("k1")}
	ours := contestant{results: make(map[string][]result)}
	var err error
	if ours.program, err = b.Build(ctx, "notification-service", "consumer"); err != nil {
		return err
	}
	if ours.database, err = b.Database(ctx, migrations.Notification); err != nil {
		return err
	}
	sides := []contestant{ours}
	if *base != "" {
		before := contestant{program: *base, results: make(map[string][]result)}
		if before.database, err = b.Migrated(ctx, *baseMigrate, migrations.Notification); err != nil {
			return err
		}
		sides = append(sides, before)
	}
	measured := loads()
	for pass, turn := range testbed.Turns(*passes, len(measured)*len(sides)) {
		l, side := measured[turn/len(sides)], turn%len(sides)
		r, err := b.pass(ctx, sides[side], l)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		sides[side].results[l.name] = append(sides[side].results[l.name], r)
		fmt.Printf("pass %d  %-28s %s %8.0f/s  %8.2f s  longest stall %7.1f ms\n",
			pass+1, l.name, []string{"ours", "base"}[side], r.perSecond, r.Seconds, r.StallMS)
	}
	report(sides)
	return nil
}

// pass fills a fresh queue and lets a contestant empty it.
func (b *bench) pass(ctx context.Context, c contestant, l load) (r result, err error) {
	url, drop, err := b.Vhost()
	if err != nil {
		return r, err
	}
	if err := b.publish(url, l); err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, c.program, append(l.args[:len(l.args):len(l.args)], "-good", strconv.Itoa(l.good()))...)
	cmd.Env = append(os.Environ(), "RABBITMQ_URL="+url, "DATABASE_URL="+c.database, "RECIPIENT_KEY="+b.key)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("run the consumer: %w", err)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, err
	}
	r.perSecond = float64(l.good()) / r.Seconds
	return r, drop()
}

// report prints the line that is compared over time.
func report(sides []contestant) {
	var figures testbed.Figures
	ours := sides[0]
	if *base != "" {
		for _, l := range loads() {
			figures.AddRatio(l.ratio, ours.all(l.name, rate), sides[1].all(l.name, rate))
		}
		figures.Print()
		return
	}
	figures.Add("drain_per_s", 0, stats.Median(ours.all("no effect", rate)))
	figures.Add("effect_per_s", 0, stats.Median(ours.all("record", rate)))
	figures.AddRatio("single_tx_ratio", ours.all("record", rate), ours.all("one message a transaction", rate))
	figures.Add("stall_ms_1pct", 1, stats.Median(ours.all("1 % fail", stall)))
	figures.Add("stall_ms_10pct", 1, stats.Median(ours.all("10 % fail", stall)))
	figures.Print()
}

func rate(r result) float64  { return r.perSecond }
func stall(r result) float64 { return r.StallMS }

// all returns a figure of each pass of a load.
func (c contestant) all(load string, of func(result) float64) []float64 {
	var values []float64
	for _, r := range c.results[load] {
		values = append(values, of(r))
	}
	return values
}
