// Package group runs groups of consumers with everything that belongs to them:
// queues, policies and dead-letter queues at the broker, a checker that keeps
// them, workers, retries, messages that wait until a time, the archive of dead
// letters, replays, upkeep, and reconciliation with what was published.
//
// A consumer.Effect and a database with the tables of schema.sql make a group;
// CONTRIBUTING.md shows one.
package group

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/delay"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/forwarder"
	"github.com/cityconnect/cityconnect/platform/program"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/reconciliation"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// Dependencies are what a Runner works with.
type Dependencies struct {
	Database      *pgxpool.Pool // with the tables of schema.sql, and those of the effects
	RabbitURL     string
	ManagementURL string         // of the broker's management API; may be empty, see topology.Checker
	Names         event.Topology // of exchanges and queues
	// Before are groups of other processes whose queues get the same messages and
	// must not miss any: they are declared, too, and first.
	Before  []topology.Group
	Log     zerolog.Logger
	Metrics prometheus.Registerer

	// Writable is for consumer.Dependencies, or nil.
	Writable func(ctx context.Context) error
	// Await returns when messages may be taken, or an error if ctx ends first;
	// nil does not wait. Scrub is for deadletter.Store.BeforeArchive and
	// delay.Store.BeforePark, or nil.
	Await func(ctx context.Context) error
	Scrub func(ctx context.Context, letters []deadletter.Letter) error
}

// A Runner runs the groups of a process.
type Runner struct {
	Consumer *consumer.Consumer
	Checker  *topology.Checker
	Releaser *delay.Releaser

	database  *pgxpool.Pool
	forwarder *forwarder.Forwarder
	archiver  *deadletter.Archiver
	replayer  *deadletter.Replayer
	letters   *deadletter.Gauge
	reconcile []*reconciliation.Reconciler // one for each group that has an effect here
	await     func(context.Context) error
	log       zerolog.Logger
}

// New returns a Runner of groups. A process has one.
func New(cfg consumer.Config, d Dependencies, groups ...consumer.Group) (*Runner, error) {
	connection := func(name string) rabbit.Config {
		return rabbit.Config{URL: d.RabbitURL, Name: name, Log: d.Log}
	}
	declared := slices.Clone(d.Before)
	for _, g := range groups {
		declared = append(declared, topology.Group{Name: g.Name, Queues: g.Queues, Elsewhere: g.Effect == nil})
	}
	broker := topology.New(d.Names, cfg.RetrySchedule(), declared...)
	r := &Runner{database: d.Database, await: d.Await, log: d.Log}
	var err error
	if r.Checker, err = topology.NewChecker(broker, d.ManagementURL, connection("checker")); err != nil {
		return nil, fmt.Errorf("RABBITMQ_MANAGEMENT_URL: %w", err)
	}
	r.Checker.AlsoFind(func(ctx context.Context) ([]topology.Finding, error) { return lostQueues(ctx, d.Database) })
	r.forwarder = forwarder.New(connection("forwarder"), d.Metrics, r.Checker.Unroutable)
	letters := deadletter.NewStore(d.Database)
	letters.BeforeArchive(d.Scrub)
	r.letters = deadletter.NewGauge(letters, d.Metrics, d.Log)
	r.replayer = deadletter.NewReplayer(letters, r.forwarder, d.Log)
	delayed := delay.NewStore(d.Database)
	delayed.BeforePark(d.Scrub)
	r.Releaser = delay.NewReleaser(cfg.Delay, delayed, r.forwarder, r.Checker.Unroutable, d.Metrics, d.Log)
	archiver := connection("archiver")
	archiver.Metrics = d.Metrics
	r.archiver = deadletter.NewArchiver(letters, archiver, broker)
	if r.Consumer, err = consumer.New(cfg, consumer.Dependencies{
		Database: d.Database, Writable: d.Writable, Forwarder: r.forwarder, Parker: r.Releaser, Topology: broker, Rabbit: connection("consumer"), Log: d.Log, Metrics: d.Metrics,
	}, groups...); err != nil {
		return nil, err
	}
	r.reconcile = r.reconcilers(cfg, d, connection("reconciler"), groups)
	return r, nil
}

func (r *Runner) reconcilers(cfg consumer.Config, d Dependencies, broker rabbit.Config, groups []consumer.Group) (all []*reconciliation.Reconciler) {
	metrics := reconciliation.NewMetrics(d.Metrics)
	for _, g := range groups {
		if g.Effect == nil {
			continue
		}
		of := reconciliation.Group{Name: g.Name, Since: g.Since, EmptyAt: r.Consumer.EmptyAt, Retries: cfg.RetrySchedule(), After: cfg.MissingAfter}
		for _, q := range g.Queues {
			of.Queues = append(of.Queues, reconciliation.Queue{Name: d.Names.Named(q.Name), Keys: q.Keys})
		}
		all = append(all, reconciliation.New(of, reconciliation.Dependencies{
			Database: d.Database, Rabbit: broker, Names: d.Names, Metrics: metrics, Log: d.Log,
		}))
	}
	return all
}

// lostQueues returns a finding for each queue that was deleted with its messages,
// until somebody has said that it was published again.
func lostQueues(ctx context.Context, database *pgxpool.Pool) (findings []topology.Finding, err error) {
	lost, err := consumer.LostQueues(ctx, database)
	for _, l := range lost {
		since := l.Since.UTC().Format(time.RFC3339)
		findings = append(findings, topology.Finding{
			What: "queue " + l.Queue + " was deleted with its messages",
			Remedy: "run report-service republish -since " + since + ", and for queues of notification-service and delivery-worker then " +
				"notification-service republished -since " + since + ", which ends this finding",
		})
	}
	return findings, err
}

// Run runs until ctx ends and everything in hand is settled. Messages in hand are
// forwarded until the last of the other parts has drained.
func (r *Runner) Run(ctx context.Context) error {
	parts := []program.Part{
		r.consume, r.Checker.Run, r.archiver.Run, r.replayer.Run, r.letters.Run, r.Releaser.Run,
		func(ctx context.Context) error { return RunUpkeep(ctx, r.database, r.log) },
	}
	for _, reconciler := range r.reconcile {
		parts = append(parts, reconciler.Run)
	}
	return program.Run(ctx, parts, []program.Part{r.forwarder.Run})
}

// consume consumes once messages may be taken.
func (r *Runner) consume(ctx context.Context) error {
	if r.await != nil && r.await(ctx) != nil {
		return nil // it ended before
	}
	return r.Consumer.Run(ctx)
}
