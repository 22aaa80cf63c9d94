package metric_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/cityconnect/cityconnect/platform/metric"
)

var opts = prometheus.HistogramOpts{Name: "seconds", Help: "Time.", Buckets: []float64{.01, .1, 1}}

// gather returns the traces of reg's buckets, "" for one without.
func gather(t testing.TB, reg *prometheus.Registry) (traces []string, h *dto.Histogram) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("gathered %d families, error %v", len(families), err)
	}
	h = families[0].GetMetric()[0].GetHistogram()
	for _, b := range h.GetBucket() {
		trace := ""
		for _, l := range b.GetExemplar().GetLabel() {
			trace += l.GetName() + "=" + l.GetValue()
		}
		traces = append(traces, trace)
	}
	return traces, h
}

// Each bucket names the trace of one of its durations, at the most one a second.
func TestBucketsNameTraces(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	h := metric.NewHistogram(reg, opts)
	now := time.Now()
	h.Observe(time.Millisecond, now, "fast")
	h.Observe(10*time.Millisecond, now.Add(time.Second-1), "early") // the bound belongs to its bucket
	h.Observe(50*time.Millisecond, now, "")
	h.Observe(500*time.Millisecond, now, "slow")
	h.Observe(500*time.Millisecond, now.Add(time.Second), "slower")
	h.Observe(500*time.Millisecond, now.Add(2*time.Second), "")
	h.Observe(time.Minute, now, "stuck")

	traces, got := gather(t, reg)
	want := "trace_id=fast||trace_id=slower|trace_id=stuck" // the last of +Inf
	if text := strings.Join(traces, "|"); text != want {
		t.Errorf("exemplars %s, want %s", text, want)
	}
	if got.GetSampleCount() != 7 {
		t.Errorf("%d durations, want 7", got.GetSampleCount())
	}
}

// The series of a Vec have exemplars of their own.
func TestSeriesNameTraces(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	v := metric.NewVec(reg, opts, "route")
	now := time.Now()
	v.With("/a").Observe(time.Millisecond, now, "a")
	v.With("/b").Observe(time.Millisecond, now, "b")
	v.With("/a").Observe(time.Millisecond, now, "late")
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range families[0].GetMetric() {
		got = append(got, m.GetHistogram().GetBucket()[0].GetExemplar().GetLabel()[0].GetValue())
	}
	if strings.Join(got, " ") != "a b" {
		t.Errorf("exemplars %q, want a and b", got)
	}
}

// The relay and the hub observe each message. It allocates only for an exemplar, which is
// one a second in each bucket.
func TestObserveDoesNotAllocate(t *testing.T) {
	now := time.Now()
	h := metric.NewHistogram(prometheus.NewRegistry(), opts)
	h.Observe(300*time.Millisecond, now, "trace")
	if n := testing.AllocsPerRun(1000, func() { h.Observe(300*time.Millisecond, now, "trace") }); n != 0 {
		t.Errorf("%v allocations for each duration, must be 0", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	run := func(name string, observe func(i int)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				observe(i)
			}
		})
	}
	now := time.Now()
	plain := prometheus.NewHistogram(opts)
	run("plain", func(i int) { plain.Observe((time.Duration(i%1000) * time.Microsecond).Seconds()) })
	h := metric.NewHistogram(prometheus.NewRegistry(), opts)
	run("exemplar", func(i int) {
		h.Observe(time.Duration(i%1000)*time.Microsecond, now, "4bf92f3577b34da6a3ce929d0e0e4736")
	})
	vec := prometheus.NewHistogramVec(opts, []string{"method", "route"})
	run("plain vec", func(i int) {
		vec.WithLabelValues("GET", "/reports").Observe((time.Duration(i%1000) * time.Microsecond).Seconds())
	})
	v := metric.NewVec(prometheus.NewRegistry(), opts, "method", "route")
	run("exemplar vec", func(i int) {
		v.With("GET", "/reports").Observe(time.Duration(i%1000)*time.Microsecond, now, "4bf92f3577b34da6a3ce929d0e0e4736")
	})
}
