package drive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/latency"
	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/metrics"
	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/process"
	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/result"
	"github.com/cityconnect/cityconnect/scripts/internal/city"
)

// relayLatency is the relay's own measure: from the row's transaction to the
// broker's confirm.
const relayLatency = "relay_commit_to_confirm_seconds"

// linger is how long a run goes on after the last expected notification, so
// that one that comes twice is noticed.
const linger = 3 * time.Second

// A run is one load test.
type run struct {
	cfg              *Config
	base             *client.Client
	people           *people
	work             *work
	ledger           *city.Ledger
	consumer, screen *latency.Recorder
	watch            *watch
	say              func(string)
}

// Run puts the stack under the load that cfg describes. It calls say with
// what it is about to do, and tell at regular intervals with how it goes. An
// error means that the run could not be made; losses are in the result.
func Run(ctx context.Context, cfg *Config, say func(string), tell func(result.Point)) (*result.Result, error) {
	r := &run{cfg: cfg, base: client.New(cfg.Gateway), consumer: latency.NewRecorder(), screen: latency.NewRecorder(), say: say}
	r.ledger = city.NewLedger(func(d city.Delivery) {
		r.consumer.Record(d.ToConsumer)
		r.screen.Record(d.ToScreen)
	})
	if err := r.prepare(ctx, tell); err != nil {
		return nil, err
	}
	say(fmt.Sprintf("opening %d screens", cfg.Subscribers+cfg.Officials))
	if err := r.people.openScreens(ctx, r.ledger); err != nil {
		return nil, errors.Join(err, r.people.screens.Close())
	}
	out, err := r.measure(ctx)
	if err := errors.Join(err, r.people.screens.Close()); err != nil {
		return nil, err
	}
	return out, nil
}

// prepare signs everyone in and asks for the categories.
func (r *run) prepare(ctx context.Context, tell func(result.Point)) (err error) {
	r.say(fmt.Sprintf("signing in %d people", r.cfg.Users+r.cfg.Officials))
	if r.people, err = enter(ctx, r.cfg, r.base); err != nil {
		return err
	}
	operator, err := r.base.SignIn(ctx, "Load operator", "operator", "")
	if err != nil {
		return fmt.Errorf("sign in the operator: %w", err)
	}
	categories, err := r.base.Categories(ctx)
	if err != nil {
		return fmt.Errorf("ask for the categories: %w", err)
	}
	r.work = newWork(r.cfg, r.people, r.ledger, categories)
	r.watch = &watch{work: r.work, screen: r.screen, operator: operator, tell: tell, groups: []*process.Group{process.Self()}}
	if r.cfg.PIDs != "" {
		r.watch.groups = append(process.Stack(r.cfg.PIDs), r.watch.groups...)
	}
	return nil
}

// measure makes the requests, waits for their notifications and adds up.
func (r *run) measure(ctx context.Context) (*result.Result, error) {
	relay, relayErr := r.relay(ctx)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var background sync.WaitGroup
	background.Go(func() { r.watch.run(watching, interval(r.cfg.pattern().Duration())) })
	r.say(fmt.Sprintf("making %d requests, %g a second", r.cfg.Events(), r.cfg.Rate))
	began := time.Now()
	making, end := context.WithTimeout(ctx, r.cfg.Limit)
	defer end()
	r.work.run(ctx, making)
	cut, took := making.Err() != nil, time.Since(began)
	r.say("waiting for the last notifications")
	r.drain(ctx)
	stop()
	background.Wait()
	if err := r.people.sweep(ctx, r.ledger); err != nil {
		return nil, err
	}
	out := r.result(began, took)
	out.Cut = cut
	if after, err := r.relay(ctx); err == nil && relayErr == nil {
		out.Legs = append(out.Legs, brokerLeg(after.Since(relay)))
	}
	return out, nil
}

func (r *run) relay(ctx context.Context) (metrics.Histogram, error) {
	return metrics.Fetch(ctx, http.DefaultClient, r.cfg.ReportMetrics, relayLatency)
}

// drain waits until no notification is outstanding, and a little longer. Of
// people without a screen nothing is seen before the sweep.
func (r *run) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Drain)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	last, since := int64(-1), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		out := r.ledger.Outstanding()
		if out != last {
			last, since = out, time.Now()
		}
		if settled := out == 0 || r.cfg.Subscribers < r.cfg.Users; settled && time.Since(since) > linger {
			return
		}
	}
}

func (r *run) result(began time.Time, took time.Duration) *result.Result {
	w := r.work
	out := &result.Result{
		Began: began.UTC(), Seconds: took.Seconds(), Planned: w.planned.Load(), Skipped: w.skipped.Load(),
		Audit: r.ledger.Tally(), Errors: maps.Clone(w.errors), Points: r.watch.points,
	}
	for k, recorder := range w.answered {
		out.Answers = append(out.Answers, result.Leg{Name: kind(k).String(), Summary: recorder.Whole()})
	}
	out.Legs = []result.Leg{
		{Name: "load test's own delay", Summary: w.started.Whole()},
		{Name: result.ToDatabase, Summary: w.all.Whole()},
		{Name: result.ToConsumer, Summary: r.consumer.Whole()},
		{Name: result.ToScreen, Summary: r.screen.Whole()},
	}
	for _, who := range slices.Concat(r.people.officials, r.people.residents) {
		if who.screen != nil {
			out.Screens.Open++
			out.Screens.Connections += who.screen.Connects()
		}
	}
	out.Screens.Count = r.people.screens.Count()
	return out
}

// brokerLeg has milliseconds of what the relay measured in seconds.
func brokerLeg(h metrics.Histogram) result.Leg {
	ms := func(q float64) float64 { return 1000 * h.Quantile(q) }
	return result.Leg{Name: result.ToBroker, Summary: latency.Summary{
		Count: int64(h.Count()), P50: ms(0.5), P90: ms(0.9), P99: ms(0.99), P999: ms(0.999), Max: ms(1),
	}}
}
