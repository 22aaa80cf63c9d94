package rabbit

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// observer returns the function that is called with each state: it keeps the gauges of the
// connection, and calls cfg's own.
func (cfg Config) observer() func(State) {
	observe := cfg.Observe
	if observe == nil {
		observe = func(State) {}
	}
	if cfg.Metrics == nil {
		return observe
	}
	connected := connectionGauge(cfg.Metrics, "rabbitmq_client_connected", "1 while the connection to the broker is open.").WithLabelValues(cfg.Name)
	blocked := connectionGauge(cfg.Metrics, "rabbitmq_client_blocked", "1 while the broker takes no publishes, because its memory or disk runs out.").WithLabelValues(cfg.Name)
	return func(s State) {
		connected.Set(oneIf(s.Connected))
		blocked.Set(oneIf(s.Blocked != ""))
		observe(s)
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// connectionGauge returns the gauges of the given name, which all connections
// of a process share.
func connectionGauge(metrics prometheus.Registerer, name, help string) *prometheus.GaugeVec {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"connection"})
	err := metrics.Register(gauge)
	if before, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return before.ExistingCollector.(*prometheus.GaugeVec)
	}
	if err != nil {
		panic(err) // another metric has the name
	}
	return gauge
}
