package sse

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/cityconnect/cityconnect/notification-service/internal/sse/transport"
	"github.com/cityconnect/cityconnect/platform/metric"
)

// latencyBuckets run from what a write on the loopback takes to what a user
// notices.
var latencyBuckets = []float64{.0002, .0005, .001, .002, .005, .01, .02, .05, .1, .25, .5, 1, 2.5, 10}

// metrics counts what the hub does. No label names a user or a stream.
//
// events, bytes, commitToFlush and fanoutLag are those of the streams that many
// read: the feed and the officials'. Those of a reader's own stream would reveal, at
// each replica, whether one person is connected: a voter on an anonymous report would
// see them change where its author is, and a voter on a public report of each suspect
// would see where those are.
type metrics struct {
	connections   *prometheus.GaugeVec
	connects      *prometheus.CounterVec
	disconnects   *prometheus.CounterVec
	resumes       *prometheus.CounterVec
	events        prometheus.Counter
	bytes         prometheus.Counter
	overflows     prometheus.Counter
	commitToFlush *metric.Histogram
	replayed      prometheus.Counter
	repairs       prometheus.Counter
	positionLag   prometheus.Gauge
	fanoutLag     prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	vec := func(name, help, label string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	}
	count := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		connections: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sse_connections", Help: "Open streams."}, []string{"stream"}),
		connects:    vec("sse_connects_total", "Requests for a stream, by result.", "result"),
		disconnects: vec("sse_disconnects_total", "Streams that ended, by reason.", "reason"),
		resumes:     vec("sse_resumes_total", "Streams opened, by how they resumed: exact, reset, none.", "result"),
		events:      count("sse_events_total", "Events of the feed and the officials' stream written."),
		bytes:       count("sse_bytes_total", "Bytes of the events of the feed and the officials' stream written."),
		overflows:   count("sse_overflows_total", "Clients disconnected because too much waited for them."),
		commitToFlush: metric.NewHistogram(reg, prometheus.HistogramOpts{
			Name: "sse_commit_to_flush_seconds", Help: "From the commit of an event of the feed or the officials' stream to its write into a client's socket.",
			Buckets: latencyBuckets,
		}),
		replayed: count("sse_replayed_rows_total", "Notifications read from the database for clients that came back."),
		repairs:  count("sse_gap_repairs_total", "Gaps in what was announced that were filled from the database."),
		positionLag: f.NewGauge(prometheus.GaugeOpts{
			Name: "sse_position_lag", Help: "Notifications that the database had and the hub had not, at the last comparison."}),
		fanoutLag: f.NewHistogram(prometheus.HistogramOpts{
			Name: "sse_fanout_lag_seconds", Help: "From the commit of a notification for officials to its announcement at this replica.", Buckets: latencyBuckets}),
	}
	for _, why := range reasons[reasonNone+1:] { // 0 is a value to compare with
		m.disconnects.WithLabelValues(why)
	}
	for _, result := range []string{resultOpen, resultBusy} {
		m.connects.WithLabelValues(result)
	}
	for _, result := range []string{"exact", "reset", "none"} {
		m.resumes.WithLabelValues(result)
	}
	return m
}

func (m *metrics) opened(kind kind) {
	m.connects.WithLabelValues(resultOpen).Inc()
	m.connections.WithLabelValues(kind.String()).Inc()
}

func (m *metrics) closed(kind kind, why reason) {
	m.connections.WithLabelValues(kind.String()).Dec()
	m.disconnects.WithLabelValues(why.String()).Inc()
	if why == reasonOverflow {
		m.overflows.Inc()
	}
}

// sent counts written frames other than those of one reader alone.
func (m *metrics) sent(b *transport.Buffer) {
	if len(b.Commits) == 0 {
		return
	}
	m.events.Add(float64(len(b.Commits)))
	m.bytes.Add(float64(b.Shared))
	now := time.Now()
	for _, c := range b.Commits {
		m.commitToFlush.Observe(now.Sub(c.At), now, c.TraceID)
	}
}
