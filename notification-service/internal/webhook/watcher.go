package webhook

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/failure"
)

const (
	// watchEvery is how often endpoints that fail are looked for. The shortest time after
	// which one is disabled is an hour.
	watchEvery   = 15 * time.Second
	watchTimeout = 10 * time.Second
)

// A WatchedStore is the part of the database that a Watcher needs.
type WatchedStore interface {
	// WarnOfFailing marks endpoints that have failed for half of disableAfter, once until
	// they succeed. It returns those, and how many are marked in all.
	WarnOfFailing(ctx context.Context, disableAfter time.Duration) (warned []uuid.UUID, marked int, err error)
}

// A Watcher warns operators while there is time to act: when an endpoint has failed for
// half of the time after which it is disabled. It reads what the ledger has written
// down, so that no delivery waits for it.
type Watcher struct {
	store        WatchedStore
	disableAfter time.Duration
	log          zerolog.Logger
	failing      prometheus.Gauge
}

// NewWatcher returns a Watcher of endpoints that are disabled after disableAfter.
func NewWatcher(store WatchedStore, disableAfter time.Duration, reg prometheus.Registerer, log zerolog.Logger) *Watcher {
	return &Watcher{store: store, disableAfter: disableAfter, log: log, failing: promauto.With(reg).NewGauge(prometheus.GaugeOpts{
		Name: "webhook_endpoints_failing", Help: "Enabled endpoints that have failed for 60 hours or longer, in the whole database.",
	})}
}

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		w.look(ctx)
		_ = backoff.Sleep(ctx, watchEvery/2+rand.N(watchEvery)) // workers take turns by chance
	}
	return nil
}

func (w *Watcher) look(ctx context.Context) {
	lookCtx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	warned, marked, err := w.store.WarnOfFailing(lookCtx, w.disableAfter)
	if err != nil {
		if ctx.Err() == nil {
			w.log.Warn().Str("error", failure.Describe(err)).Msg("looking for failing webhooks failed, will retry")
		}
		return
	}
	w.failing.Set(float64(marked))
	for _, id := range warned {
		w.log.Warn().Str("endpoint", id.String()).Dur("disable_after", w.disableAfter).
			Msg("webhook endpoint has failed for half of the time after which it is disabled")
	}
}
