// Command consumer measures how fast notification-service's consumer empties
// a queue: without an effect, with the record of handled messages, one message a
// transaction, with its whole effect (the record, the numbered notification and
// the stream's head), and while some of the messages fail. Where it records the
// handled messages, wagslane/go-rabbitmq does the same beside it.
//
// The passes alternate on the same broker and database, so that whatever else the
// machine does meets all of them. Each has one worker, which holds ten messages at
// the most, or four, which is how it ships.
//
// With -base it measures the program of an earlier revision beside ours instead,
// each with its own schema, and says how they compare.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
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
	database string // of ours, and of wagslane
	key      string // seals recipients
	topology event.Topology
}

// A contestant empties a queue into its database.
type contestant struct {
	name    string
	empty   func(ctx context.Context, brokerURL string, l load) (result, error)
	results map[string][]result // by the name of the load
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
	failing  int      // of them, those that fail in the first second
	workers  int      // each of which holds ten messages at the most
	args     []string // of our program

	// The names of our rate's ratio to theirs, in the last line; empty: not compared.
	toBase, toWagslane string
}

func (l load) good() int { return l.messages - l.failing }

// ratio is the name of our rate's ratio to that of the other contestant.
func (l load) ratio() string {
	if *base != "" {
		return l.toBase
	}
	return l.toWagslane
}

// loads are all that are measured. Only those with a ratio are, where two
// revisions are compared.
func loads() []load {
	record := []string{"-effect=record"}
	all := []load{
		{"no effect", *messages, 0, 1, []string{"-effect=nothing"}, "drain_ratio", ""},
		{"record", *messages, 0, 1, record, "record_ratio", "wagslane_ratio"},
		{"one message a transaction", *messages, 0, 1, append(record, "-batch=1"), "", ""},
		{"whole effect", *messages, 0, 1, []string{"-effect=whole"}, "effect_ratio", ""},
		{"four workers", *messages, 0, 4, []string{"-effect=whole"}, "four_workers_ratio", ""},
		{"1 % fail", *failing, *failing / 100, 1, record, "", "wagslane_ratio_1pct"},
		{"10 % fail", *failing, *failing / 10, 1, record, "failing_ratio", "wagslane_ratio_10pct"},
		{"10 % fail, four workers", *failing, *failing / 10, 4, record, "failing_four_ratio", "wagslane_ratio_10pct_four"},
	}
	if *base != "" {
		all = slices.DeleteFunc(all, func(l load) bool { return l.toBase == "" })
	}
	return all
}

func run(ctx context.Context, bed *testbed.Bed) error {
	if (*base == "") != (*baseMigrate == "") {
		return errors.New("-base and -base-migrate go together: both are programs of the other revision")
	}
	b := &bench{Bed: bed, key: event.NewKey("k1")}
	program, err := b.Build(ctx, "notification-service", "consumer")
	if err != nil {
		return err
	}
	if b.database, err = b.Database(ctx, migrations.Notification); err != nil {
		return err
	}
	ours := contestant{"ours", b.program(program, b.database), make(map[string][]result)}
	other := contestant{"wagslane", b.wagslane, make(map[string][]result)}
	if *base != "" {
		before, err := b.Migrated(ctx, *baseMigrate, migrations.Notification)
		if err != nil {
			return err
		}
		other.name, other.empty = "base", b.program(*base, before)
	}
	type turn struct {
		contestant
		load load
	}
	var turns []turn
	for _, l := range loads() {
		turns = append(turns, turn{ours, l})
		if l.ratio() != "" {
			turns = append(turns, turn{other, l})
		}
	}
	for pass, i := range testbed.Turns(*passes, len(turns)) {
		t := turns[i]
		r, err := b.pass(ctx, t.contestant, t.load)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", t.name, t.load.name, err)
		}
		t.results[t.load.name] = append(t.results[t.load.name], r)
		fmt.Printf("pass %d  %-28s %-8s %8.0f/s  %8.2f s  longest stall %7.1f ms\n",
			pass+1, t.load.name, t.name, r.perSecond, r.Seconds, r.StallMS)
	}
	report(ours, other)
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
	if r, err = c.empty(ctx, url, l); err != nil {
		return r, err
	}
	r.perSecond = float64(l.good()) / r.Seconds
	return r, drop()
}

// program has a program of notification-service's consumer empty a queue.
func (b *bench) program(path, database string) func(context.Context, string, load) (result, error) {
	return func(ctx context.Context, brokerURL string, l load) (r result, err error) {
		cmd := exec.CommandContext(ctx, path, append(l.args[:len(l.args):len(l.args)], "-good", strconv.Itoa(l.good()), "-workers", strconv.Itoa(l.workers))...)
		cmd.Env = append(os.Environ(), "RABBITMQ_URL="+brokerURL, "DATABASE_URL="+database, "RECIPIENT_KEY="+b.key)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return r, fmt.Errorf("run the consumer: %w", err)
		}
		return r, json.Unmarshal(out, &r)
	}
}

// report prints the line that is compared over time.
func report(ours, other contestant) {
	var figures testbed.Figures
	if *base == "" {
		figures.Add("drain_per_s", 0, stats.Median(ours.all("no effect", rate)))
		figures.Add("effect_per_s", 0, stats.Median(ours.all("record", rate)))
		figures.AddRatio("single_tx_ratio", ours.all("record", rate), ours.all("one message a transaction", rate))
		figures.Add("stall_ms_1pct", 1, stats.Median(ours.all("1 % fail", stall)))
		figures.Add("stall_ms_10pct", 1, stats.Median(ours.all("10 % fail", stall)))
	}
	for _, l := range loads() {
		if l.ratio() != "" {
			figures.AddRatio(l.ratio(), ours.all(l.name, rate), other.all(l.name, rate))
		}
	}
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
