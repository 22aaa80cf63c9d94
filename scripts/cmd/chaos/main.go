//go:build linux

// Command chaos breaks a running native stack at random while people use it,
// and counts. It kills, stops and pauses every kind of process, and cuts their
// connections: both services, RabbitMQ, PostgreSQL and single backends of it,
// nginx and single workers of it. Where PostgreSQL is a cluster, its faults hit the
// primary, and one of them is that another node is made the primary. Where RabbitMQ
// is one, they hit a node, and one of them is that it is cut off from the others.
//
// Residents file reports and vote, officials move reports, both add photos, and
// everybody's notifications arrive on live streams that reconnect as browsers do.
// At the end each report's versions are compared with what its reporter was shown.
// The program ends with 0 only if every accepted change was shown exactly once,
// every accepted photo is ready, or refused because it is none, no request was
// answered with 500 (what is away for a while is answered with 502, 503 or 504), the
// stories of a thousand messages, chosen at random, are complete, and reconciliation
// never called a message missing: the last line has what is missing at the end as
// reconciliation_missing, and the most at any time as false_alarms. Each second it also
// looks at the operators' lights, findings and /readyz: lights_untrue are those that were
// wrong for longer than trueWithin, which a slow machine may cause, and false_findings
// those that name a fault while everything runs.
//
// The order of the faults follows from -seed alone. The last line has the sums as
// name=value pairs; above it stands, by kind of fault, how long it took until
// something new was on a screen again, and until nothing was late. A start
// of the stack that failed and had to be repeated is said, and counted as
// failed_starts; a RabbitMQ node that did not find the others by itself, and was
// started again as an operator would, as rejoined.
//
// A run of hours can be ended before its time: at SIGINT or SIGTERM it starts again
// what it broke, sums up what there was, and ends with 1.
//
// It reads /proc, and takes sockets of other processes: it runs on Linux, with the
// rights to debug them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/scripts/internal/command"
)

// errPromise says that a change or a photo was lost, a change shown twice, a story
// incomplete, a request answered with 500, a message called missing, or a finding false; the
// last line has the figures.
var errPromise = errors.New("not every accepted change was shown exactly once, not every photo was judged rightly, a message's story is incomplete, a request was answered with 500, a message was called missing, or a finding is false")

func main() {
	command.Main(func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdout) })
}

// options are what the command line says.
type options struct {
	gateway string
	stack   *stack
	faults  int
	seed    uint64
	rate    float64
	kinds   []string
}

func parse(args []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.StringVar(&o.gateway, "gateway", "http://127.0.0.1:8080", "address of the stack")
	state := flags.String("state", ".stack", "folder of the native stack, which has its pid files")
	program := flags.String("stack", "scripts/stack", "the program that starts what is missing")
	flags.IntVar(&o.faults, "faults", 200, "how many; 0 is one of each kind, or as many of it as -kinds says")
	flags.Uint64Var(&o.seed, "seed", 1, "of the choice of faults")
	flags.Float64Var(&o.rate, "rate", 40, "changes a second")
	chosen := flags.String("kinds", "", "only these kinds, by comma, all if empty; KIND*3 is three times as often as the others")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.stack, err = openStack(*state+"/native", *program); err != nil {
		return o, err
	}
	known := slices.Sorted(maps.Keys(o.stack.kinds))
	if o.kinds, err = parseKinds(*chosen, known); err != nil {
		return o, err
	}
	if len(o.kinds) == 0 {
		o.kinds = known
	}
	if o.faults == 0 {
		o.faults = len(o.kinds)
	}
	if o.faults < 0 || o.rate <= 0 {
		return o, errors.New("-faults must be at least 0, and -rate more than 0")
	}
	return o, nil
}

// parseKinds reads kinds with commas between them, some of which may be followed by
// how often they come, and returns each so often.
func parseKinds(text string, known []string) (kinds []string, err error) {
	for field := range strings.SplitSeq(text, ",") {
		if field == "" {
			continue
		}
		name, times, weighted := strings.Cut(field, "*")
		n := 1
		if weighted {
			n, err = strconv.Atoi(times)
		}
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-kinds %q: must have a number of at least 1 behind the asterisk", field)
		}
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("-kinds %q: this stack has %s", name, strings.Join(known, ", "))
		}
		for range n {
			kinds = append(kinds, name)
		}
	}
	return kinds, nil
}

// run breaks things until ctx ends, and sums up in any case.
func run(ctx context.Context, args []string, out io.Writer) error {
	breaking, ctx := ctx, context.WithoutCancel(ctx)
	o, err := parse(args)
	if err != nil {
		return err
	}
	t, err := enter(ctx, o.gateway)
	if err != nil {
		return err
	}
	s := o.stack
	acting, stopActing := context.WithCancel(ctx)
	defer stopActing()
	acted := make(chan struct{})
	go func() {
		defer close(acted)
		t.makeChanges(acting, o.rate)
	}()

	alarmed := alarms{missing: make(map[string]int64)}
	t.lights = newLights(s, t.operator)
	var watching sync.WaitGroup
	watching.Go(func() { alarmed.watch(acting, t.operator) })
	watching.Go(func() { t.lights.watch(acting) })

	began := time.Now()
	recoveries, failed := t.faults(breaking, o, out)
	if failed != nil { // the sums still say whether the promise was kept
		failed = errors.Join(failed, s.restore(ctx))
	}
	stopActing()
	<-acted
	watching.Wait()

	sum, err := t.settle(ctx)
	if err := errors.Join(err, t.screens.Close()); err != nil {
		return errors.Join(failed, err)
	}
	alarmed.ask(ctx, t.operator)
	printRecoveries(out, recoveries)
	for _, fault := range sum.stories.examples[:min(5, len(sum.stories.examples))] {
		fmt.Fprintln(out, "story:", fault)
	}
	for _, err := range sum.errors[:min(5, len(sum.errors))] {
		fmt.Fprintln(out, "answered:", err)
	}
	for _, said := range slices.Sorted(maps.Keys(t.lights.untrue)) {
		fmt.Fprintln(out, "untrue:", said)
	}
	for _, finding := range slices.Sorted(maps.Keys(t.lights.findings)) {
		fmt.Fprintln(out, "false finding:", finding)
	}
	fmt.Fprintf(out, "%s reconciliation_missing=%d false_alarms=%d lights_looks=%d lights_untrue=%d false_findings=%d failed_starts=%d rejoined=%d faults=%d seed=%d seconds=%.0f\n", sum, alarmed.sum(), alarmed.highest, t.lights.looks, len(t.lights.untrue), len(t.lights.findings), s.failedStarts, s.rejoined, len(recoveries), o.seed, time.Since(began).Seconds())
	if !sum.good() || alarmed.highest > 0 || len(t.lights.findings) > 0 {
		failed = errors.Join(failed, errPromise)
	}
	return failed
}

// faults breaks one thing after the other, every kind as often as was asked for, in
// random order. It returns how long the city took to recover from each; after one
// that is not brought back, nothing else is broken.
func (t *town) faults(ctx context.Context, o options, out io.Writer) (recoveries []recovery, err error) {
	random := rand.New(rand.NewPCG(o.seed, 0))
	order := make([]string, 0, o.faults)
	for len(order) < o.faults {
		round := slices.Clone(o.kinds)
		random.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		order = append(order, round...)
	}
	for i, kind := range order[:o.faults] {
		fmt.Fprintf(out, "%3d/%d %-25s ", i+1, o.faults, kind)
		r, err := t.fault(ctx, o.stack, kind, random)
		if err != nil {
			fmt.Fprintln(out)
			return recoveries, fmt.Errorf("%s: %w", kind, err)
		}
		recoveries = append(recoveries, r)
		t.lights.settle(ctx)
		fmt.Fprintf(out, "up again after %5.1f s, first %5.1f s, full %5.1f s\n", r.up.Seconds(), r.first.Seconds(), r.full.Seconds())
	}
	return recoveries, nil
}

// settleWithin ends the wait for what is late at the end of all.
const settleWithin = 15 * time.Minute
