package deadletter

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// gaugePoll is how often dead letters are counted: as often as most scrape.
const gaugePoll = 15 * time.Second

// A Gauge exports how many dead letters are open. They are those of all groups
// that share the database, so that each replica says the same.
type Gauge struct {
	store *Store
	open  *prometheus.GaugeVec
	known map[string]bool // queues that had any
	log   zerolog.Logger
}

// NewGauge returns a Gauge of the dead letters in store.
func NewGauge(store *Store, reg prometheus.Registerer, log zerolog.Logger) *Gauge {
	return &Gauge{store: store, known: make(map[string]bool), log: log, open: promauto.With(reg).NewGaugeVec(prometheus.GaugeOpts{
		Name: "dead_letters_open", Help: "Dead letters that wait for an operator, of all replicas.",
	}, []string{"queue"})}
}

// Run counts until ctx ends.
func (g *Gauge) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := g.count(ctx); err != nil && ctx.Err() == nil {
			g.log.Warn().Str("error", failure.Describe(err)).Msg("counting dead letters failed, will retry")
		}
		_ = backoff.Sleep(ctx, gaugePoll)
	}
	return nil
}

// count sets the gauge of each queue that has or had dead letters.
func (g *Gauge) count(ctx context.Context) error {
	open, err := g.store.OpenByQueue(ctx)
	if err != nil {
		return err
	}
	for queue := range open {
		g.known[queue] = true
	}
	for queue := range g.known {
		g.open.WithLabelValues(queue).Set(float64(open[queue]))
	}
	return nil
}

// OpenByQueue returns how many dead letters of each queue are open.
func (s *Store) OpenByQueue(ctx context.Context) (map[string]int64, error) {
	open := make(map[string]int64)
	var queue string
	var n int64
	err := pgpool.ForEach(ctx, s.pool, "count open dead letters", []any{&queue, &n}, func() error {
		open[queue] = n
		return nil
	}, `select queue, count(*) from dead_letters where state = 'open' group by queue`)
	return open, err
}
