package courier

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	published prometheus.Histogram
	failed    prometheus.Counter
	blocked   prometheus.Gauge
	up        prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		published: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "rabbitmq_publish_duration_seconds", Help: "Time from publishing a retry, dead letter or replay to its confirm.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
		}),
		failed:  prometheus.NewCounter(prometheus.CounterOpts{Name: "rabbitmq_publish_failures_total", Help: "Publishes that have to be tried again."}),
		blocked: prometheus.NewGauge(prometheus.GaugeOpts{Name: "rabbitmq_connection_blocked", Help: "1 while the broker takes no publishes, for want of memory or disk."}),
		up: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rabbitmq_connection_up", Help: "1 while connected to the broker.", ConstLabels: prometheus.Labels{"connection": "courier"},
		}),
	}
	reg.MustRegister(m.published, m.failed, m.blocked, m.up)
	return m
}
