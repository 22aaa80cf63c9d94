package delay

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/forwarder"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// How a Releaser works.
const (
	claimLimit     = 500
	claimLease     = 30 * time.Second // what a dead releaser had is published after it
	publishTimeout = 10 * time.Second // of the claimed messages, below the lease
	storeTimeout   = 5 * time.Second
	// loops claim in turn: while one waits for the confirms of its messages, the
	// other publishes those that are due next.
	loops = 2
	// pause gathers messages that are due soon after, which cost less together.
	pause = 5 * time.Millisecond
	// longestWait is how late another replica may notice a message that is due
	// before all that it knows of.
	longestWait = time.Second
	// postponed is how long a message waits that no queue takes.
	postponed = 30 * time.Second
	// countEvery is how often waiting messages are counted at most; countShare is
	// which part of the time that may take.
	countEvery = 15 * time.Second
	countShare = 100
)

// A Forwarder publishes under confirm; forwarder.Forwarder is one.
type Forwarder interface {
	// Publish tries once, and returns nil once the broker has confirmed that msg
	// is in a queue.
	Publish(ctx context.Context, exchange, key string, msg amqp.Publishing) error
}

// A Releaser publishes messages whose time has come to their queues. Several
// replicas may run one; they share the messages by lease.
//
//	waiting ──(due, claimed)──► leased ──(published, confirmed)──► deleted
//	   ▲                          │
//	   └──(the lease is over)─────┘
//
// A message that was published and not yet deleted, because the releaser died
// in between, is published twice, under the same id: it has one effect.
type Releaser struct {
	store      *Store
	forwarder  Forwarder
	unroutable func(exchange, key string)
	owner      uuid.UUID
	max        int
	limiter    *rate.Limiter
	log        zerolog.Logger
	wake       chan struct{} // holds one request to check again

	waiting  *prometheus.GaugeVec
	lateness prometheus.Histogram
	released *prometheus.CounterVec

	mu    sync.Mutex
	count int // messages that wait, as of the last count, and those that came since
}

// NewReleaser returns a Releaser of what store keeps. The forwarder must be
// running while Run is. It calls unroutable for a queue that is not there.
func NewReleaser(cfg Config, store *Store, fwd Forwarder, unroutable func(exchange, key string), reg prometheus.Registerer, log zerolog.Logger) *Releaser {
	f := promauto.With(reg)
	return &Releaser{
		store: store, forwarder: fwd, unroutable: unroutable, owner: uuid.New(), max: cfg.Max, log: log,
		limiter: rate.NewLimiter(rate.Limit(cfg.ReleaseRate), max(cfg.ReleaseRate/10, 1)),
		wake:    make(chan struct{}, 1),
		waiting: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "delay_messages_waiting", Help: "Messages that wait until a time, of all replicas.",
		}, []string{"queue"}),
		lateness: f.NewHistogram(prometheus.HistogramOpts{
			Name: "delay_lateness_seconds", Help: "Time from when a message was due to its confirm.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 14),
		}),
		released: f.NewCounterVec(prometheus.CounterOpts{
			Name: "delay_messages_released_total", Help: "Delayed messages published when due.",
		}, []string{"queue"}),
	}
}

// Park keeps those of messages from queue whose time has not come, and returns
// what became of each, by its id. With again they may have been released just now, and
// their time is another since.
func (r *Releaser) Park(ctx context.Context, queue string, messages []Message, again bool) (map[string]Outcome, error) {
	r.mu.Lock()
	full := r.count+len(messages) > r.max
	r.mu.Unlock()
	outcomes, err := r.store.Park(ctx, queue, messages, full, again)
	if err != nil {
		return nil, err
	}
	soon := false
	r.mu.Lock()
	for _, m := range messages {
		if outcomes[m.ID] == Parked {
			r.count++
			soon = soon || time.Until(m.DueAt) < 2*longestWait // others are found in time anyway
		}
	}
	r.mu.Unlock()
	if soon {
		select {
		case r.wake <- struct{}{}:
		default: // requested already
		}
	}
	return outcomes, nil
}

// Run releases until ctx ends.
func (r *Releaser) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for range loops {
		g.Go(func() error { r.loop(ctx); return nil })
	}
	g.Go(func() error { r.follow(ctx); return nil })
	return g.Wait()
}

// loop releases due messages, and rests until the next one is due.
func (r *Releaser) loop(ctx context.Context) {
	delays := backoff.Backoff{First: 100 * time.Millisecond, Max: 5 * time.Second}
	for ctx.Err() == nil {
		more, err := r.step(ctx)
		if err != nil {
			if ctx.Err() == nil {
				r.log.Warn().Str("error", failure.Describe(err)).Msg("releasing delayed messages failed, will retry")
			}
			_ = backoff.Sleep(ctx, delays.Next())
			continue
		}
		delays.Reset()
		if more {
			continue
		}
		if err := r.rest(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn().Str("error", failure.Describe(err)).Msg("looking for delayed messages failed, will retry")
			_ = backoff.Sleep(ctx, delays.Next())
		}
	}
}

// rest returns when a message may be due.
func (r *Releaser) rest(ctx context.Context) error {
	lookCtx, cancel := context.WithTimeout(ctx, storeTimeout)
	wait, err := r.store.untilNext(lookCtx, longestWait)
	cancel()
	if err != nil {
		return err
	}
	timer := time.NewTimer(max(wait, pause))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.wake:
	case <-ctx.Done():
	}
	return nil
}

// step claims due messages and publishes them. It reports whether more are likely
// due at once.
func (r *Releaser) step(ctx context.Context) (more bool, err error) {
	claimCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	messages, err := r.store.claim(claimCtx, r.owner, claimLease, claimLimit)
	cancel()
	if err != nil || len(messages) == 0 {
		return false, err
	}
	confirmed, refused, others, err := r.publish(ctx, messages)
	// Messages in hand are finished also when the releaser is stopped.
	endCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if len(confirmed) > 0 {
		err = errors.Join(err, r.store.remove(endCtx, r.owner, confirmed))
	}
	if len(refused) > 0 {
		r.unroutable("", refused[0].Queue)
		r.log.Error().Str("queue", refused[0].Queue).Int("messages", len(refused)).Dur("delay", postponed).
			Msg("no queue takes delayed messages, will retry")
		err = errors.Join(err, r.store.postpone(endCtx, r.owner, refused, postponed))
	}
	if len(others) > 0 { // claimed, and free for all again
		err = errors.Join(err, r.store.postpone(endCtx, r.owner, others, 0))
	}
	return len(messages) == claimLimit, err
}

// publish publishes messages, the oldest first, and returns which the broker
// has confirmed, and which no queue takes. The error has the reason for the others.
func (r *Releaser) publish(ctx context.Context, messages []claimed) (confirmed, refused, others []claimed, err error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	began := time.Now()
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(publishAtOnce)
	for i, m := range messages {
		if err := r.limiter.Wait(ctx); err != nil {
			mu.Lock()
			others = append(others, messages[i:]...)
			mu.Unlock()
			break
		}
		g.Go(func() error {
			err := r.forwarder.Publish(ctx, "", m.Queue, m.publishing())
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				confirmed = append(confirmed, m)
				r.lateness.Observe((m.Late + time.Since(began)).Seconds())
				r.released.WithLabelValues(m.Queue).Inc()
				return nil
			case errors.Is(err, rabbit.ErrReturned), errors.Is(err, forwarder.ErrTooLarge):
				refused = append(refused, m)
				return nil
			}
			others = append(others, m)
			return err
		})
	}
	err = g.Wait()
	return confirmed, refused, others, err
}

// publishAtOnce is how many messages may be unconfirmed.
const publishAtOnce = 128

// publishing returns m as it was delivered, but for the time that it waited
// for: it has come.
func (m *claimed) publishing() amqp.Publishing {
	headers := deadletter.DecodeHeaders(m.Headers)
	delete(headers, event.NotBeforeHeader)
	return m.Properties.Publishing(m.ID, m.Type, m.Body, headers)
}

// follow counts waiting messages until ctx ends.
func (r *Releaser) follow(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		countCtx, cancel := context.WithTimeout(ctx, 4*storeTimeout)
		counts, err := r.store.counts(countCtx)
		cancel()
		if err != nil && ctx.Err() == nil {
			r.log.Warn().Str("error", failure.Describe(err)).Msg("counting delayed messages failed, will retry")
		} else {
			r.waiting.Reset()
			total := 0
			for queue, n := range counts {
				r.waiting.WithLabelValues(queue).Set(float64(n))
				total += n
			}
			r.mu.Lock()
			r.count = total
			r.mu.Unlock()
		}
		_ = backoff.Sleep(ctx, max(countEvery, countShare*time.Since(began)))
	}
}
