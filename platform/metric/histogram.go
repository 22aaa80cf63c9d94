// Package metric has histograms of durations whose buckets name a trace, by which the logs
// have more about a request or a message of that duration; and the small figures that
// operators' pages show of a replica, rates and quantiles of the last seconds.
package metric

import (
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// TraceLabel names the trace in an exemplar. Everything else that identifies a request or a
// message is to be looked up by it, in the logs.
const TraceLabel = "trace_id"

// interval is how often a bucket gets another exemplar. Prometheus takes only the last
// one, and each allocates.
const interval = time.Second

// A Histogram counts durations, and keeps a trace of each bucket.
type Histogram struct {
	histogram interface {
		prometheus.Observer
		prometheus.ExemplarObserver
	}
	bounds []float64
	due    []atomic.Int64 // by bucket: when it gets another exemplar, in Unix nanoseconds
}

// NewHistogram returns a Histogram that is registered at reg.
func NewHistogram(reg prometheus.Registerer, opts prometheus.HistogramOpts) *Histogram {
	return observing(promauto.With(reg).NewHistogram(opts), opts.Buckets)
}

func observing(o prometheus.Observer, bounds []float64) *Histogram {
	return &Histogram{
		histogram: o.(interface { // as prometheus.Histogram's documentation promises
			prometheus.Observer
			prometheus.ExemplarObserver
		}),
		bounds: bounds, due: make([]atomic.Int64, len(bounds)+1),
	}
}

// Observe counts a duration that ended now, of the trace with the id. The id may be "".
func (h *Histogram) Observe(took time.Duration, now time.Time, traceID string) {
	seconds := took.Seconds()
	if traceID == "" || !h.isDue(sort.SearchFloat64s(h.bounds, seconds), now.UnixNano()) {
		h.histogram.Observe(seconds)
		return
	}
	h.histogram.ObserveWithExemplar(seconds, prometheus.Labels{TraceLabel: traceID})
}

// isDue reports whether the bucket gets another exemplar now, to one of its callers.
func (h *Histogram) isDue(bucket int, now int64) bool {
	due := h.due[bucket].Load()
	return now >= due && h.due[bucket].CompareAndSwap(due, now+interval.Nanoseconds())
}

// A Vec is a Histogram for each value of its labels.
type Vec struct {
	vec        *prometheus.HistogramVec
	bounds     []float64
	histograms sync.Map // *Histogram by prometheus.Observer
}

// NewVec returns a Vec that is registered at reg.
func NewVec(reg prometheus.Registerer, opts prometheus.HistogramOpts, labels ...string) *Vec {
	return &Vec{vec: promauto.With(reg).NewHistogramVec(opts, labels), bounds: opts.Buckets}
}

// With returns the Histogram for these values of the labels.
func (v *Vec) With(values ...string) *Histogram {
	o := v.vec.WithLabelValues(values...)
	h, ok := v.histograms.Load(o)
	if !ok {
		h, _ = v.histograms.LoadOrStore(o, observing(o, v.bounds))
	}
	return h.(*Histogram)
}
