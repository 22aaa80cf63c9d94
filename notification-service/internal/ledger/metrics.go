package ledger

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/cityconnect/cityconnect/notification-service/internal/crowd"
)

// metrics are those of a channel. No label names a lane: there are as many as
// there are targets, and their names are the operators'.
//
// A channel whose targets are people counts attempts and ends in crowds, and exports
// nothing else: two mails at the same moment lease one lane if both go to the same
// host, and two otherwise, and only the worker that leases the lane changes its
// figures.
type metrics struct {
	personal            bool
	attemptsOf, endedOf *crowd.Counter // of people
	attempts            *prometheus.CounterVec
	seconds             prometheus.Histogram
	ended               *prometheus.CounterVec
	claim               prometheus.Histogram
	inFlight            prometheus.Gauge
	lanes               prometheus.Gauge
	open                prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer, c Channel) *metrics {
	factory := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"channel": c.Name()}, reg))
	targets := factory
	if c.Personal() {
		targets = promauto.With(nil) // which registers nothing
	}
	m := &metrics{
		personal: c.Personal(),
		attempts: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "delivery_attempts_total", Help: "Delivery attempts, by outcome and reason.",
		}, []string{"verdict", "class"}),
		seconds: targets.NewHistogram(prometheus.HistogramOpts{
			Name: "delivery_attempt_duration_seconds", Help: "Time from the beginning of an attempt to its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15},
		}),
		ended: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "deliveries_ended_total", Help: "Deliveries finished, by final state (done or dead).",
		}, []string{"state"}),
		claim: targets.NewHistogram(prometheus.HistogramOpts{
			Name: "delivery_claim_duration_seconds", Help: "Time that the database takes to find due deliveries in the leased lanes.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1},
		}),
		inFlight: targets.NewGauge(prometheus.GaugeOpts{
			Name: "delivery_attempts_in_flight", Help: "Attempts that wait for their answer.",
		}),
		lanes: targets.NewGauge(prometheus.GaugeOpts{
			Name: "delivery_lanes_leased", Help: "Lanes that this worker leases.",
		}),
		open: targets.NewGauge(prometheus.GaugeOpts{
			Name: "delivery_circuits_open", Help: "Leased lanes whose circuit is open.",
		}),
	}
	for _, state := range []State{Done, Dead} {
		m.ended.WithLabelValues(string(state)) // 0 is a value to compare with
	}
	m.attemptsOf, m.endedOf = crowd.NewCounter(m.attempts), crowd.NewCounter(m.ended)
	return m
}

// observe counts an outcome that is in the database.
func (m *metrics) observe(target string, o Outcome) {
	if m.personal {
		m.attemptsOf.Add(target, string(o.Answer.Verdict), o.Answer.Class)
		if o.State != Waiting {
			m.endedOf.Add(target, string(o.State))
		}
		return
	}
	m.attempts.WithLabelValues(string(o.Answer.Verdict), o.Answer.Class).Inc()
	if o.Sent {
		m.seconds.Observe(o.Answer.Duration.Seconds())
	}
	if o.State != Waiting {
		m.ended.WithLabelValues(string(o.State)).Inc()
	}
}
