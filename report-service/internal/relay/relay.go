// Package relay publishes the outbox: it reads the rows of the shards that
// this replica owns, publishes them with confirms, and marks them.
//
// It promises that every committed row reaches a queue or ends as failed,
// visibly; that the messages of a report reach each queue in the order of
// their commits; that any number of replicas may run, and no two of them
// publish the same row but when one takes over from another; that a row which
// commits late is found, and a transaction that stays open holds nothing up;
// and that an outage of the broker or the database costs no row an attempt.
//
// The replicas tell each other what they committed. That makes it quick, and
// no promise rests on it.
//
// docs/outbox.md tells how it works to whoever operates it.
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
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

var errLeaseOver = errors.New("the lease is over")

// A Config is what a Relay needs.
type Config struct {
	Settings

	Pool      *pgxpool.Pool
	RabbitURL string
	Topology  event.Topology
	Log       zerolog.Logger
	Metrics   prometheus.Registerer
}

// A Relay is one replica of the relay.
type Relay struct {
	cfg         Config
	id          uuid.UUID
	leases      *shards.Leases
	coordinator *shards.Coordinator
	breakers    *breakers
	wake        chan struct{} // holds a value when there is something to read
	wakes       *wakes
	metrics     *metrics
	recent      *recent
	broker      broker
	stopping    <-chan struct{} // closed when Run is to end

	// outstanding counts messages that are on their way to the broker.
	outstanding atomic.Int64
	// talking are the goroutines that pass wakes on. One that waits for the
	// broker ends with its connection, which is after its session.
	talking sync.WaitGroup
}

// New returns a relay that Run starts.
func New(cfg Config) (*Relay, error) {
	if err := config.NewError(cfg.Validate()); err != nil {
		return nil, err
	}
	r := &Relay{
		cfg:      cfg,
		id:       uuid.New(),
		leases:   shards.NewLeases(),
		breakers: newBreakers(),
		wake:     make(chan struct{}, 1),
		wakes:    newWakes(),
		recent:   newRecent(time.Now()),
	}
	r.cfg.Log = cfg.Log.With().Str("part", "relay").Str("relay_id", r.id.String()).Logger()
	r.metrics = newMetrics(cfg.Metrics, cfg.Window)
	cfg.Metrics.MustRegister(outbox.NewCollector(outbox.NewStore(cfg.Pool, r.Wake)))
	r.coordinator = shards.NewCoordinator(shards.Config{
		Database: cfg.Pool.Config().ConnConfig, ID: r.id, Lease: cfg.Lease, Margin: cfg.margin(),
		Log: r.cfg.Log, Observe: r.metrics.owned,
	}, r.leases)
	return r, nil
}

// Run relays until ctx ends, then waits for the confirms that are under way,
// marks what was published and hands its shards over.
func (r *Relay) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	r.stopping = ctx.Done()
	// The leases end last: until then the shards are ours alone.
	leaseCtx, release := context.WithCancel(context.WithoutCancel(ctx))
	g.Go(func() error { return r.coordinator.Run(leaseCtx) })
	g.Go(func() error {
		r.runCleaner(ctx)
		return nil
	})
	g.Go(func() error {
		defer r.talking.Wait()
		defer release()
		if err := rabbit.Supervise(ctx, r.rabbitConfig(), r.session); err != nil {
			return fmt.Errorf("relay: %w", err)
		}
		return nil
	})
	return g.Wait()
}

func (r *Relay) rabbitConfig() rabbit.Config {
	return rabbit.Config{
		URL:       r.cfg.RabbitURL,
		Name:      "relay",
		Log:       r.cfg.Log,
		Heartbeat: r.cfg.heartbeat(),
		Guard:     r.guard,
		Observer: rabbit.Observer{
			Connected:    r.connected,
			Disconnected: r.disconnected,
			Blocked:      r.blocked,
			Unblocked:    r.unblocked,
		},
	}
}

// guard is asked right before bytes go to the socket. A process that was
// paused between its own check and this one must not send what it had in hand:
// its shards may be another's by now.
func (r *Relay) guard() error {
	if r.outstanding.Load() > 0 && !r.leases.Valid() {
		return errLeaseOver
	}
	return nil
}
