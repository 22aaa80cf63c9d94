package outbox

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// collectTimeout bounds how long a scrape waits for the database. Without an
// answer the scrape omits these metrics.
const collectTimeout = 2 * time.Second

var (
	pendingDesc = prometheus.NewDesc("outbox_pending", "Rows that wait to be published.", []string{"shard"}, nil)
	delayedDesc = prometheus.NewDesc("outbox_delayed", "Rows that wait for another attempt.", []string{"shard"}, nil)
	failedDesc  = prometheus.NewDesc("outbox_failed", "Rows that wait for an operator.", []string{"shard"}, nil)
	oldestDesc  = prometheus.NewDesc("outbox_oldest_pending_seconds", "Age of the oldest row that waits to be published.", nil, nil)
)

// A Collector counts the outbox whenever Prometheus scrapes it, and not before:
// an idle relay should not query the database for metrics.
type Collector struct {
	store *Store
}

// NewCollector returns a collector of store's figures.
func NewCollector(store *Store) *Collector { return &Collector{store} }

// Describe implements prometheus.Collector.
func (*Collector) Describe(descs chan<- *prometheus.Desc) {
	descs <- pendingDesc
	descs <- delayedDesc
	descs <- failedDesc
	descs <- oldestDesc
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	stats, err := c.store.Recent(ctx)
	if err != nil {
		return
	}
	for _, s := range stats.Shards {
		shard := strconv.Itoa(int(s.Shard))
		for desc, n := range map[*prometheus.Desc]int64{pendingDesc: s.Pending, delayedDesc: s.Delayed, failedDesc: s.Failed} {
			metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), shard)
		}
	}
	metrics <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, stats.OldestAge.Seconds())
}
