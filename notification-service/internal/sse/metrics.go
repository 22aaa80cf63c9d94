package sse

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/cityconnect/cityconnect/notification-service/internal/sse/transport"
)

// latencyBuckets run from what a write on the loopback takes to what a user
// notices.
var latencyBuckets = []float64{.0002, .0005, .001, .002, .005, .01, .02, .05, .1, .25, .5, 1, 2.5, 10}

// metrics counts what the hub does. No label names a user or a stream.
type metrics struct {
	connections   *prometheus.GaugeVec
	connects      *prometheus.CounterVec
	disconnects   *prometheus.CounterVec
	resumes       *prometheus.CounterVec
	events        prometheus.Counter
	bytes         prometheus.Counter
	overflows     prometheus.Counter
	commitToFlush prometheus.Histogram
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
	seconds := func(name, help string) prometheus.Histogram {
		return f.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: latencyBuckets})
	}
	return &metrics{
		connections: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sse_connections", Help: "Streams that are open."}, []string{"stream"}),
		connects:      vec("sse_connects_total", "Requests for a stream, by what became of them.", "result"),
		disconnects:   vec("sse_disconnects_total", "Streams that ended, by why.", "reason"),
		resumes:       vec("sse_resumes_total", "Streams opened, by how they went on: exact, reset, none.", "result"),
		events:        count("sse_events_total", "Events written, heartbeats included."),
		bytes:         count("sse_bytes_total", "Bytes of events written."),
		overflows:     count("sse_overflows_total", "Clients cut off because too much waited for them."),
		commitToFlush: seconds("sse_commit_to_flush_seconds", "From the commit of a notification to its write into a client's socket."),
		replayed:      count("sse_replayed_rows_total", "Notifications read from the database for clients that came back."),
		repairs:       count("sse_gap_repairs_total", "Holes in what came live that were filled from the database."),
		positionLag: f.NewGauge(prometheus.GaugeOpts{
			Name: "sse_position_lag", Help: "Notifications that the database had and the hub had not, at the last comparison."}),
		fanoutLag: seconds("sse_fanout_lag_seconds", "From the commit of a notification until this replica knew of it."),
	}
}

func (m *metrics) opened(kind string) {
	m.connects.WithLabelValues("open").Inc()
	m.connections.WithLabelValues(kind).Inc()
}

func (m *metrics) closed(kind string, why reason) {
	m.connections.WithLabelValues(kind).Dec()
	m.disconnects.WithLabelValues(string(why)).Inc()
	if why == reasonOverflow {
		m.overflows.Inc()
	}
}

// sent counts what was just written.
func (m *metrics) sent(l *transport.Load) {
	m.events.Add(float64(l.Events))
	m.bytes.Add(float64(len(l.Bytes)))
	if len(l.At) == 0 {
		return
	}
	now := time.Now()
	for _, at := range l.At {
		m.commitToFlush.Observe(now.Sub(at).Seconds())
	}
}
