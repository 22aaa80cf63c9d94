package reconciliation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

const (
	checkEvery   = 5 * time.Second
	figuresEvery = 15 * time.Second // as often as most scrape
	// stepTimeout bounds a check, and the keeping of a manifest.
	stepTimeout = 30 * time.Second
	forgetEvery = 1000 // steps
	prefetch    = 10
	// unusedFor is when the broker deletes the queue of a group that is gone, in
	// milliseconds: 30 days, for as long as anything is kept.
	unusedFor = int64(30 * 24 * 60 * 60 * 1000)
)

// A Group is what a Reconciler needs to know of a group of consumers.
type Group struct {
	Name   string
	Queues []Queue
	// Since is consumer.Group.Since: the group does not get what was made before.
	// Nil is always.
	Since func(ctx context.Context) (time.Time, error)
	// EmptyAt returns when this process last saw a queue without messages that wait,
	// or the zero time.
	EmptyAt func(queue string) time.Time
	Retries []time.Duration // pauses before the attempts after the first
	// After is how long a message may take before it is missing, and how often it is then
	// looked for again.
	After time.Duration
}

// Dependencies are what a Reconciler works with.
type Dependencies struct {
	Database *pgxpool.Pool // with the tables of group/schema.sql
	Rabbit   rabbit.Config
	Names    event.Topology
	Metrics  *Metrics
	Log      zerolog.Logger
}

// Metrics are those of all groups of a process.
type Metrics struct{ missing, unknown, gap, late *prometheus.GaugeVec }

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return promauto.With(reg).NewGaugeVec(prometheus.GaugeOpts{Name: "reconciliation_" + name, Help: help}, []string{"group"})
	}
	return &Metrics{
		missing: gauge("missing", "Messages that were published within three days and did not reach the group, of all replicas."),
		unknown: gauge("unknown", "Messages that may not have reached the group, because a database was restored or a broker lost its disk."),
		gap:     gauge("gap", "Manifests of the last three days that did not reach the group."),
		late:    gauge("manifests_late_seconds", "Time since the end of the last manifest that the group has: about a minute."),
	}
}

// A Reconciler compares for one group.
type Reconciler struct {
	group Group
	queue string // of the manifests
	deps  Dependencies
	store *store
	waits []time.Duration
}

// New returns a Reconciler that Run starts.
func New(g Group, d Dependencies) *Reconciler {
	return &Reconciler{
		group: g, queue: d.Names.ManifestQueue(g.Name), deps: d,
		store: &store{pool: d.Database, group: g.Name}, waits: waits(g.After, g.Retries),
	}
}

// Run compares until ctx ends. Any number of replicas may run.
func (r *Reconciler) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return rabbit.Supervise(ctx, r.deps.Rabbit, r.receive) })
	g.Go(func() error { r.checkDue(ctx); return nil })
	g.Go(func() error { r.count(ctx); return nil })
	return g.Wait()
}

func (r *Reconciler) warn(ctx context.Context, err error, message string) {
	if ctx.Err() == nil {
		r.deps.Log.Warn().Str("group", r.group.Name).Str("error", failure.Describe(err)).Msg(message)
	}
}

// receive keeps the manifests that come over conn until ctx or the connection ends.
func (r *Reconciler) receive(ctx context.Context, conn *amqp.Connection) error {
	err := rabbit.DeclareExchange(conn, r.deps.Names.Exchange(), amqp.ExchangeTopic)
	if err != nil {
		return err
	}
	err = rabbit.DeclareQueue(conn, r.queue, amqp.Table{"x-queue-type": "quorum", "x-expires": unusedFor})
	if err != nil {
		return err
	}
	if err := rabbit.BindQueue(conn, r.queue, string(event.ManifestKey), r.deps.Names.Exchange()); err != nil {
		return err
	}
	deliveries, err := rabbit.Consume(ctx, conn, r.queue, prefetch)
	if err != nil {
		return err
	}
	for d := range deliveries {
		if err := r.keep(ctx, d.Body); err != nil {
			return err // delivered again on the next connection
		}
		if err := d.Ack(false); err != nil {
			return fmt.Errorf("acknowledge: %w", err)
		}
	}
	return nil
}

// keep writes a manifest, for as long as it takes. One that breaks the contract is
// dropped, and shows as a gap.
func (r *Reconciler) keep(ctx context.Context, body []byte) error {
	m, err := event.DecodeManifest(body)
	if err != nil {
		r.deps.Log.Error().Err(err).Str("group", r.group.Name).Msg("a manifest cannot be read and is dropped")
		return nil
	}
	delays := backoff.Backoff{First: time.Second, Max: 30 * time.Second}
	for {
		stepCtx, cancel := context.WithTimeout(ctx, stepTimeout)
		err := r.store.receive(stepCtx, m, body, r.waits[0])
		cancel()
		if err == nil {
			return nil
		}
		r.warn(ctx, err, "keeping a manifest failed, will retry")
		if err := backoff.Sleep(ctx, delays.Next()); err != nil {
			return err
		}
	}
}

// checkDue checks what is due until ctx ends.
func (r *Reconciler) checkDue(ctx context.Context) {
	for step := 0; ctx.Err() == nil; step++ {
		stepCtx, cancel := context.WithTimeout(ctx, stepTimeout)
		more, err := r.Check(stepCtx)
		if err == nil && step%forgetEvery == 0 {
			err = r.store.forget(stepCtx)
		}
		cancel()
		if err != nil {
			r.warn(ctx, err, "comparing with what was published failed, will retry")
		}
		if !more || err != nil {
			_ = backoff.Sleep(ctx, backoff.Jitter(checkEvery)) // the loop ends with ctx
		}
	}
}

// Check checks the manifest whose check has been due for longest, and reports whether
// there was one.
func (r *Reconciler) Check(ctx context.Context) (checked bool, err error) {
	since, err := r.since(ctx)
	if err != nil {
		return false, err
	}
	err = pgx.BeginFunc(ctx, r.deps.Database, func(tx pgx.Tx) error {
		d, there, err := r.store.take(ctx, tx)
		if err != nil || !there {
			return err
		}
		checked = true
		res, err := r.compare(ctx, tx, d, since)
		if err != nil {
			return err
		}
		if res.state == Missing && d.state != Missing {
			r.deps.Log.Error().Str("group", r.group.Name).Int64("manifest", d.number).Int("messages", len(res.missing)).
				Msg("messages that were published did not reach the group: see docs/recoverability.md")
		}
		return r.store.note(ctx, tx, d, res)
	})
	return checked, err
}

func (r *Reconciler) since(ctx context.Context) (time.Time, error) {
	if r.group.Since == nil {
		return time.Time{}, nil
	}
	return r.group.Since(ctx)
}

// compare looks for the messages of d that are for the group and not older than since.
func (r *Reconciler) compare(ctx context.Context, tx pgx.Tx, d due, since time.Time) (res result, err error) {
	m, err := event.DecodeManifest(d.body)
	if err != nil {
		return res, err
	}
	if since.Before(d.began) {
		since = d.began
	}
	d.drained = true
	for _, q := range r.group.Queues {
		ids := expected(m, q.Keys, since)
		if len(ids) == 0 {
			continue
		}
		left, err := r.store.left(ctx, tx, q.Name, ids, m.From, m.Until)
		if err != nil {
			return res, err
		}
		res.expected += len(ids)
		res.missing = append(res.missing, left...)
		if len(left) > 0 && d.drained {
			waits, err := r.store.waits(ctx, tx, q.Name, left)
			if err != nil {
				return res, err
			}
			d.drained = !waits && time.Since(r.group.EmptyAt(q.Name)) < emptyFor
		}
	}
	d.left = len(res.missing)
	res.state, res.checks, res.next = d.judge(r.waits, r.group.After)
	return res, nil
}

// expected returns the messages of m that a queue with keys must have got.
func expected(m event.Manifest, keys []event.Key, since time.Time) (ids []uuid.UUID) {
	for _, key := range keys {
		ids = append(ids, m.Messages[key].All()...)
	}
	return slices.DeleteFunc(ids, func(id uuid.UUID) bool { return madeBefore(id, since) })
}

// madeBefore reports whether a message got its id before t. An id without a time says
// nothing.
func madeBefore(id uuid.UUID, t time.Time) bool {
	return id.Version() == 7 && time.Unix(id.Time().UnixTime()).Before(t)
}

// count exports the figures until ctx ends.
func (r *Reconciler) count(ctx context.Context) {
	for ctx.Err() == nil {
		// A restore of the database may be noticed while this process runs.
		err := r.store.start(ctx)
		var f Figures
		if err == nil {
			f, err = r.Figures(ctx)
		}
		if err != nil {
			r.warn(ctx, err, "counting what got lost failed, will retry")
		} else {
			r.deps.Metrics.set(r.group.Name, f)
		}
		_ = backoff.Sleep(ctx, figuresEvery) // the loop ends with ctx
	}
}

// Figures returns the sums over the manifests of the group.
func (r *Reconciler) Figures(ctx context.Context) (Figures, error) { return r.store.figures(ctx) }

func (m *Metrics) set(group string, f Figures) {
	m.missing.WithLabelValues(group).Set(float64(f.Missing))
	m.unknown.WithLabelValues(group).Set(float64(f.Unknown))
	m.gap.WithLabelValues(group).Set(float64(f.Gap))
	m.late.WithLabelValues(group).Set(f.Late.Seconds())
}
