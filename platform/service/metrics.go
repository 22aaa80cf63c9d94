package service

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cityconnect/cityconnect/platform/build"
	"github.com/cityconnect/cityconnect/platform/metric"
)

// latencyBuckets reach from an answer out of memory to one that waited for a
// lock, in seconds.
var latencyBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}

// NewRegistry returns a registry with the metrics of the process, the Go runtime and
// the build.
func NewRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	info := build.Read()
	promauto.With(reg).NewGauge(prometheus.GaugeOpts{
		Name: "cityconnect_build_info", Help: "Build that runs, as labels; always 1.",
		ConstLabels: prometheus.Labels{"version": info.Version, "revision": info.Revision, "go_version": info.GoVersion},
	}).Set(1)
	return reg
}

// HTTPMetrics counts requests and measures their duration by route pattern.
// A stream is counted when it ends, but not measured: its length is not a latency.
func HTTPMetrics(reg prometheus.Registerer) func(http.Handler) http.Handler {
	factory := promauto.With(reg)
	requests := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "http_requests_total", Help: "Requests answered.",
	}, []string{"method", "route", "status"})
	seconds := metric.NewVec(reg, prometheus.HistogramOpts{
		Name: "http_request_duration_seconds", Help: "Time from the request's header to the end of the answer, without streams.",
		Buckets: latencyBuckets,
	}, "method", "route")
	inFlight := factory.NewGauge(prometheus.GaugeOpts{
		Name: "http_requests_in_flight", Help: "Requests being served, streams included.",
	})
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			start, ww := time.Now(), wrapWriter(w, r)
			inFlight.Inc()
			defer func() {
				inFlight.Dec()
				requests.WithLabelValues(method(r), route(r), strconv.Itoa(status(ww))).Inc()
				if !strings.HasPrefix(ww.Header().Get("Content-Type"), "text/event-stream") {
					now := time.Now()
					seconds.With(method(r), route(r)).Observe(now.Sub(start), now, TraceID(r.Context()))
				}
			}()
			next.ServeHTTP(ww, r)
		})
	}
}

// MetricsHandler serves reg at /metrics: with exemplars to those who ask for OpenMetrics,
// as Prometheus does.
func MetricsHandler(reg *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{Registry: reg, EnableOpenMetrics: true})
}
