package rabbit

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// observer returns cfg's Observer with no function missing, which also keeps
// the gauges of the connection.
func (cfg Config) observer() Observer {
	connected, blocked := prometheus.NewGauge(prometheus.GaugeOpts{}), prometheus.NewGauge(prometheus.GaugeOpts{})
	if cfg.Metrics != nil {
		connected = connectionGauge(cfg.Metrics, "rabbitmq_client_connected", "1 while the connection to the broker is open.").WithLabelValues(cfg.Name)
		blocked = connectionGauge(cfg.Metrics, "rabbitmq_client_blocked", "1 while the broker takes no publishes, because its memory or disk runs out.").WithLabelValues(cfg.Name)
	}
	own := cfg.Observer
	return Observer{
		Connected: func() {
			connected.Set(1)
			if own.Connected != nil {
				own.Connected()
			}
		},
		Disconnected: func(cause error) {
			connected.Set(0)
			blocked.Set(0)
			if own.Disconnected != nil {
				own.Disconnected(cause)
			}
		},
		Blocked: func(reason string) {
			blocked.Set(1)
			if own.Blocked != nil {
				own.Blocked(reason)
			}
		},
		Unblocked: func() {
			blocked.Set(0)
			if own.Unblocked != nil {
				own.Unblocked()
			}
		},
	}
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
