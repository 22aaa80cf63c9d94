package relay

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	dto "github.com/prometheus/client_model/go"

	"github.com/cityconnect/cityconnect/platform/event"
)

// metrics are what the relay counts. Labels are routing keys and reasons,
// never ids.
type metrics struct {
	published      *prometheus.CounterVec
	refused        *prometheus.CounterVec
	overtaken      prometheus.Counter
	confirmSeconds prometheus.Histogram
	commitSeconds  prometheus.Histogram
	markSeconds    prometheus.Histogram
	readSeconds    prometheus.Histogram
	inFlight       prometheus.Gauge
	connected      prometheus.Gauge
	connects       prometheus.Counter
	blocked        prometheus.Gauge
	blockedSeconds prometheus.Counter
	shut           *prometheus.GaugeVec
	shards         prometheus.Gauge
	leaseEnds      prometheus.Gauge
	cleaned        prometheus.Counter
	announced      prometheus.Counter
	heard          prometheus.Counter
}

// Why a message was refused, as a label.
const (
	nacked        = "nacked"
	returned      = "returned"
	unpublishable = "unpublishable"
)

// latencies reach from a local broker to a confirm timeout.
var latencies = []float64{.0005, .001, .002, .003, .004, .005, .0075, .01, .015, .02, .03, .04, .05, .075, .1, .2, .5, 1, 2, 5, 15, 60}

func newMetrics(registry prometheus.Registerer, window int) *metrics {
	f := promauto.With(registry)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: "relay_" + name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return f.NewGauge(prometheus.GaugeOpts{Name: "relay_" + name, Help: help})
	}
	histogram := func(name, help string) prometheus.Histogram {
		return f.NewHistogram(prometheus.HistogramOpts{Name: "relay_" + name, Help: help, Buckets: latencies})
	}
	m := &metrics{
		published:      f.NewCounterVec(prometheus.CounterOpts{Name: "relay_published_total", Help: "Messages that a queue has taken."}, []string{"routing_key"}),
		refused:        f.NewCounterVec(prometheus.CounterOpts{Name: "relay_refused_total", Help: "Messages nacked, returned or unpublishable."}, []string{"reason"}),
		overtaken:      counter("overtaken_total", "Messages confirmed while an earlier one of their report was refused: they were in flight together."),
		confirmSeconds: histogram("confirm_seconds", "From publish to confirm."),
		commitSeconds:  histogram("commit_to_confirm_seconds", "From the row's transaction to the confirm."),
		markSeconds:    histogram("mark_seconds", "One batch of marks."),
		readSeconds:    histogram("read_seconds", "One read of the outbox."),
		inFlight:       gauge("in_flight", "Messages that wait for their confirm."),
		connected:      gauge("connected", "Whether there is a connection to the broker."),
		connects:       counter("connects_total", "Connections to the broker made."),
		blocked:        gauge("blocked", "Whether the broker takes no messages, as under a disk alarm."),
		blockedSeconds: counter("blocked_seconds_total", "Time for which the broker took no messages."),
		shut:           f.NewGaugeVec(prometheus.GaugeOpts{Name: "relay_held_back", Help: "Whether messages of a kind are held back because their queue does not take them."}, []string{"routing_key"}),
		shards:         gauge("shards_owned", "Shards that this replica publishes."),
		leaseEnds:      gauge("publish_until_timestamp_seconds", "Until when the lease allows publishing."),
		cleaned:        counter("cleaned_total", "Published rows deleted after their retention."),
		announced:      counter("wakes_announced_total", "Times that other replicas were told to look at the outbox."),
		heard:          counter("wakes_heard_total", "Times that another replica told this one to look at its shards."),
	}
	gauge("window", "How many messages may wait for their confirm.").Set(float64(window))
	for _, key := range event.Keys() {
		m.shut.WithLabelValues(string(key))
		m.published.WithLabelValues(string(key))
	}
	return m
}

// owned shows what the coordinator owns.
func (m *metrics) owned(shards int, validUntil time.Time) {
	m.shards.Set(float64(shards))
	m.leaseEnds.Set(float64(validUntil.UnixMilli()) / 1000)
}

// total returns what c has counted. The operators' page and Prometheus are
// told by the same counter, so that they cannot differ.
func total(c prometheus.Counter) float64 {
	var m dto.Metric
	_ = c.Write(&m) // a counter always can
	return m.GetCounter().GetValue()
}
