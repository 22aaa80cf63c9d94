package relay

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	dto "github.com/prometheus/client_model/go"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/metric"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// metrics are the relay's metrics. Labels are routing keys and reasons, never
// ids. The operators' page reads the same metrics, so that it cannot differ
// from Prometheus.
type metrics struct {
	published       *prometheus.CounterVec
	refused         *prometheus.CounterVec
	overtaken       prometheus.Counter
	confirmSeconds  prometheus.Summary
	commitSeconds   *metric.Histogram
	recordSeconds   prometheus.Histogram
	readSeconds     prometheus.Histogram
	connects        prometheus.Counter
	blockedSeconds  prometheus.Counter
	circuitOpen     *prometheus.GaugeVec
	cleaned         prometheus.Counter
	republished     prometheus.Counter
	manifests       prometheus.Counter
	wakeupsSent     prometheus.Counter
	wakeupsReceived prometheus.Counter

	rate metric.Rate // of published messages
}

// Values of the label reason: why a message was refused.
const (
	nacked        = "nacked"
	returned      = "returned"
	unpublishable = "unpublishable"
)

// latencies reach from a local broker to a confirm timeout.
var latencies = []float64{.0005, .001, .002, .003, .004, .005, .0075, .01, .015, .02, .03, .04, .05, .075, .1, .2, .5, 1, 2, 5, 15, 60}

func newMetrics(registry prometheus.Registerer, window int, leases *shards.Leases, sending *atomic.Int64) *metrics {
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
		published: f.NewCounterVec(prometheus.CounterOpts{Name: "relay_published_total", Help: "Messages that a queue has confirmed."}, []string{"routing_key"}),
		refused:   f.NewCounterVec(prometheus.CounterOpts{Name: "relay_refused_total", Help: "Messages nacked, returned or unpublishable, by reason."}, []string{"reason"}),
		overtaken: counter("overtaken_total", "Messages confirmed while an earlier one of their report was refused: they were in flight together."),
		confirmSeconds: f.NewSummary(prometheus.SummaryOpts{
			Name: "relay_confirm_seconds", Help: "Time from publish to confirm, as quantiles over the last minute.",
			// With few messages, a p99 needs a minute of them to be meaningful.
			Objectives: map[float64]float64{0.5: 0.01, 0.99: 0.001}, MaxAge: time.Minute,
		}),
		commitSeconds: metric.NewHistogram(registry, prometheus.HistogramOpts{
			Name: "relay_commit_to_confirm_seconds", Help: "Time from the row's transaction to its confirm.", Buckets: latencies,
		}),
		recordSeconds:   histogram("record_seconds", "Time to record one batch of results."),
		readSeconds:     histogram("read_seconds", "Time of one read of the outbox."),
		connects:        counter("connects_total", "Connections made to the broker."),
		blockedSeconds:  counter("blocked_seconds_total", "Time for which the broker blocked publishers."),
		circuitOpen:     f.NewGaugeVec(prometheus.GaugeOpts{Name: "relay_circuit_open", Help: "Whether the circuit of a routing key is open, because its queue refuses messages."}, []string{"routing_key"}),
		cleaned:         counter("cleaned_total", "Published rows deleted after their retention."),
		republished:     counter("republished_total", "Published rows made pending again because the broker lost its messages."),
		manifests:       counter("manifests_sent_total", "Manifests of published messages that a queue has confirmed."),
		wakeupsSent:     counter("wakeups_sent_total", "Wake-ups sent to the other replicas."),
		wakeupsReceived: counter("wakeups_received_total", "Wake-ups of other replicas for shards that this one owns."),
	}
	gauge("window", "Limit of messages that wait for their confirm.").Set(float64(window))
	gaugeFunc := func(name, help string, value func() float64) {
		f.NewGaugeFunc(prometheus.GaugeOpts{Name: "relay_" + name, Help: help}, value)
	}
	gaugeFunc("in_flight", "Messages that wait for their confirm.", func() float64 { return float64(sending.Load()) })
	gaugeFunc("shards_owned", "Shards that this replica publishes.", func() float64 { return float64(leases.Owned()) })
	gaugeFunc("publish_until_timestamp_seconds", "Time until which the leases allow publishing, in Unix seconds.", func() float64 {
		return max(0, float64(leases.ValidUntil().UnixMilli())/1000) // zero before the first lease
	})
	for _, key := range event.AllKeys() {
		m.circuitOpen.WithLabelValues(string(key))
		m.published.WithLabelValues(string(key))
	}
	return m
}

// confirmQuantiles returns the median and the 99th percentile of the time from
// publish to confirm over about the last minute; zero if there was none.
func (m *metrics) confirmQuantiles() (p50, p99 time.Duration) {
	return metric.Quantiles(m.confirmSeconds)
}

// taken returns how many messages queues took since the start.
func (m *metrics) taken() (n int64) {
	for _, key := range event.AllKeys() {
		n += int64(total(m.published.WithLabelValues(string(key))))
	}
	return n
}

// total returns the value of c.
func total(c prometheus.Counter) float64 {
	var m dto.Metric
	_ = c.Write(&m) // a counter never fails
	return m.GetCounter().GetValue()
}
