// Package relay publishes the outbox: it reads the rows of the shards that
// this replica owns, publishes them with confirms, and records the results.
//
// It promises that every committed row reaches a queue or ends as failed,
// visibly; that the messages of a report reach each queue in the order of
// their commits; that any number of replicas may run, and no two of them
// publish the same row except when one takes over from another; that a row
// which commits late is found, and a transaction that stays open delays
// nothing; and that an outage of the broker or the database costs no row an
// attempt.
//
// The replicas notify each other of commits. That makes the relay fast, but no
// promise depends on it.
//
// Rows go through these parts: a session, one per connection, reads them
// (reader, watermark), publishes them (publish, breaker) and has the results
// written (results). Their states are in row.go. From what is written, manifests
// tell consumers what they must have (manifests). docs/recoverability.md is for its
// operators.
package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

var errLeaseExpired = errors.New("the lease has expired")

// Dependencies are what a Relay works with.
type Dependencies struct {
	Pool      *pgxpool.Pool
	Keys      *event.Keyring // seal the recipients of rows without one
	RabbitURL string
	Topology  event.Topology
	Log       zerolog.Logger
	Metrics   prometheus.Registerer
}

// A Relay is one replica of the relay.
type Relay struct {
	id          uuid.UUID
	cfg         Config
	deps        Dependencies
	leases      *shards.Leases
	coordinator *shards.Coordinator
	reader      *reader
	breaker     *breaker
	notifier    *notifier
	cleaner     *cleaner
	broker      *brokerWatch
	manifests   *manifestPublisher
	status      *status
	metrics     *metrics
	log         zerolog.Logger

	// sending counts messages on their way to the broker.
	sending atomic.Int64
	// lostBefore is how many leases were lost before the session began.
	lostBefore atomic.Int64
	// besides tracks the goroutines that exchange wake-ups with other replicas, and
	// those that publish manifests. One that waits for the broker ends with its
	// connection, which is after its session.
	besides sync.WaitGroup
}

// New returns a relay that Run starts. The configuration is valid.
func New(cfg Config, deps Dependencies) *Relay {
	r := &Relay{id: uuid.New(), cfg: cfg, deps: deps, leases: shards.NewLeases(), breaker: newBreaker()}
	r.log = deps.Log.With().Str("part", "relay").Str("relay_id", r.id.String()).Logger()
	r.metrics = newMetrics(deps.Metrics, cfg.Window, r.leases, &r.sending)
	r.status = &status{metrics: r.metrics}
	r.reader = &reader{pool: deps.Pool, keys: deps.Keys, seconds: r.metrics.readSeconds}
	r.notifier = &notifier{
		exchange: deps.Topology.WakeExchange(), leases: r.leases, blocked: r.status.isBlocked, log: r.log, metrics: r.metrics,
		trigger: make(chan struct{}, 1), due: make(chan struct{}, 1),
	}
	r.cleaner = &cleaner{pool: deps.Pool, leases: r.leases, retention: cfg.Retention, log: r.log, deleted: r.metrics.cleaned}
	r.broker = &brokerWatch{
		pool: deps.Pool, messages: outbox.NewStore(deps.Pool, r.Wake), exchange: deps.Topology.OutboxExchange(),
		leases: r.leases, republished: r.metrics.republished, log: r.log, lost: make(chan struct{}, 1),
	}
	r.manifests = &manifestPublisher{
		pool: deps.Pool, exchange: deps.Topology.Exchange(), marker: deps.Topology.OutboxExchange(),
		every: manifestEvery, settled: settled, keep: cfg.Retention,
		leases: r.leases, blocked: r.status.isBlocked, timeout: cfg.ConfirmTimeout, metrics: r.metrics, log: r.log,
	}
	r.coordinator = shards.NewCoordinator(shards.Config{
		Database: deps.Pool.Config().ConnConfig, ID: r.id, Lease: cfg.Lease, Margin: cfg.margin(), Log: r.log,
	}, r.leases)
	return r
}

// Wake announces that rows were committed in shards: those that this replica
// owns are read soon, and the owners of the others are notified. It never
// blocks, and a wake-up may get lost: polling finds the rows then.
func (r *Relay) Wake(committed shards.Set) { r.notifier.committed(committed) }

// Run relays until ctx ends, then waits for outstanding confirms, records their
// results and releases its shards.
func (r *Relay) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	// The leases end last: until then the shards are ours alone.
	leaseCtx, release := context.WithCancel(context.WithoutCancel(ctx))
	g.Go(func() error { return r.coordinator.Run(leaseCtx) })
	g.Go(func() error { return r.cleaner.run(ctx) })
	g.Go(func() error { return r.broker.run(ctx) })
	g.Go(func() error {
		defer r.besides.Wait()
		defer release()
		cfg := rabbit.Config{
			URL: r.deps.RabbitURL, Name: "relay", Log: r.log, Metrics: r.deps.Metrics, Heartbeat: r.cfg.heartbeat(), Guard: r.guard,
			Observe: r.status.observe,
		}
		err := rabbit.Supervise(ctx, cfg, func(session context.Context, conn *amqp.Connection) error {
			return r.runSession(session, conn, ctx.Done())
		})
		if err != nil {
			return fmt.Errorf("relay: %w", err)
		}
		return nil
	})
	return g.Wait()
}

// guard is called right before bytes are written to the socket. A process that
// was paused between its own check and this one must not send: another replica
// may own its shards now. Bytes that waited for the socket when a lease was lost must
// not go out under the next one either: the connection ends with them.
func (r *Relay) guard() error {
	if r.sending.Load() > 0 && (!r.leases.Valid() || r.leases.Lost() != r.lostBefore.Load()) {
		return errLeaseExpired
	}
	return nil
}

// runSession publishes over a live connection until ctx ends, with the relay or
// with the connection. Stopping is closed when the relay ends.
func (r *Relay) runSession(ctx context.Context, conn *amqp.Connection, stopping <-chan struct{}) error {
	for _, exchange := range []string{r.deps.Topology.Exchange(), r.deps.Topology.DeadLetterExchange()} {
		if err := rabbit.DeclareExchange(conn, exchange, "topic"); err != nil {
			return err
		}
	}
	publisher, err := rabbit.NewPublisher(conn, r.cfg.Window)
	if err != nil {
		return err
	}
	r.coordinator.SetConnected(true)
	defer r.coordinator.SetConnected(false)
	r.broker.await(ctx, conn)

	// Published rows are recorded even after ctx ended, but not without limit.
	// The steps below follow a row: reading stops, the confirms arrive, the
	// publisher reports messages without one as lost, and the results are
	// written.
	resultCtx, stopResults := context.WithCancel(context.WithoutCancel(ctx))
	defer stopResults()
	r.lostBefore.Store(r.leases.Lost())
	s := r.newSession(conn, publisher)
	go s.results.run(resultCtx)
	workCtx, stopWork := context.WithCancel(resultCtx)
	// It also runs while the rest drains: requests may still be committing.
	r.besides.Go(func() { r.notifier.run(workCtx, conn) })
	r.besides.Go(func() { r.manifests.run(ctx, conn) })
	err = s.run(ctx, workCtx)
	if err == nil {
		s.drain()
	}
	stopWork()
	publisher.Close()
	s.finish(stopping, stopResults)
	return err
}

func (r *Relay) newSession(conn *amqp.Connection, publisher *rabbit.Publisher) *session {
	now := time.Now()
	room := r.cfg.Window + resultBatch // see session.publish
	watermark := &watermark{resetAt: now}
	return &session{
		cfg: r.cfg, exchange: r.deps.Topology.Exchange(), conn: conn, publisher: publisher,
		leases: r.leases, breaker: r.breaker, metrics: r.metrics, log: r.log,
		reader: r.reader, watermark: watermark,
		schedule: readSchedule{pollMin: r.cfg.PollMin, pollMax: r.cfg.PollMax, poll: r.cfg.PollMin, gap: readGap, next: now},
		rows: &rowTracker{
			leases: r.leases, watermark: watermark, sending: &r.sending,
			bySeq: make(map[int64]*row), blocked: make(map[uuid.UUID]int64),
		},
		results: &resultWriter{
			pool: r.deps.Pool, owner: r.id, cfg: r.cfg, log: r.log, seconds: r.metrics.recordSeconds,
			in: make(chan result, room), out: make(chan []result, room), done: make(chan struct{}),
		},
		readResults:   make(chan readResult, 1),
		confirmations: make(chan confirmation, r.cfg.Window),
		probeResults:  make(chan probeResult, 1),
		trigger:       r.notifier.trigger,
		blocking:      conn.NotifyBlocked(make(chan amqp.Blocking, 1)),
		progress:      now,
	}
}
