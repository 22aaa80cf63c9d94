package ledger

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are those of a channel. No label tells a lane: there are as many as
// there are targets, and their names are the operators'.
type metrics struct {
	attempts *prometheus.CounterVec
	seconds  prometheus.Histogram
	ended    *prometheus.CounterVec
	claim    prometheus.Histogram
	inFlight prometheus.Gauge
	lanes    prometheus.Gauge
	open     prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer, channel string) *metrics {
	factory := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"channel": channel}, reg))
	m := &metrics{
		attempts: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "delivery_attempts_total", Help: "Attempts to deliver, by what followed and why.",
		}, []string{"verdict", "class"}),
		seconds: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "delivery_attempt_duration_seconds", Help: "Time from the beginning of an attempt to its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15},
		}),
		ended: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "deliveries_ended_total", Help: "Deliveries finished, by final state (done or dead).",
		}, []string{"state"}),
		claim: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "delivery_claim_duration_seconds", Help: "Time that the database takes to find what is due in the leased lanes.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1},
		}),
		inFlight: factory.NewGauge(prometheus.GaugeOpts{
			Name: "delivery_attempts_in_flight", Help: "Attempts that wait for their answer.",
		}),
		lanes: factory.NewGauge(prometheus.GaugeOpts{
			Name: "delivery_lanes_leased", Help: "Lanes that this worker leases.",
		}),
		open: factory.NewGauge(prometheus.GaugeOpts{
			Name: "delivery_circuits_open", Help: "Leased lanes whose circuit is open.",
		}),
	}
	for _, state := range []State{Done, Dead} {
		m.ended.WithLabelValues(string(state)) // 0 is a value to compare with
	}
	return m
}

// observe counts an outcome that is in the database.
func (m *metrics) observe(o Outcome) {
	m.attempts.WithLabelValues(string(o.Answer.Verdict), o.Answer.Class).Inc()
	if o.Sent {
		m.seconds.Observe(o.Answer.Duration.Seconds())
	}
	if o.State != Waiting {
		m.ended.WithLabelValues(string(o.State)).Inc()
	}
}
