// Package latency keeps how long things took, without losing the rare slow
// ones: HDR histograms of the whole run, and of each interval of it.
package latency

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// ceiling is what a longer time counts as.
const ceiling = 10 * time.Minute

// A Recorder collects the times of one leg. It is safe for concurrent use.
type Recorder struct {
	mu       sync.Mutex
	whole    *hdrhistogram.Histogram
	interval *hdrhistogram.Histogram
}

// NewRecorder returns an empty recorder.
func NewRecorder() *Recorder {
	return &Recorder{whole: histogram(), interval: histogram()}
}

// histogram has microseconds to three digits.
func histogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, ceiling.Microseconds(), 3)
}

// Record notes one time.
func (r *Recorder) Record(d time.Duration) {
	micros := min(max(d, 0), ceiling).Microseconds()
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.interval.RecordValue(micros) // within the bounds, so it cannot fail
}

// Interval returns what was recorded since it was called last.
func (r *Recorder) Interval() Summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := summarize(r.interval)
	r.whole.Merge(r.interval)
	r.interval.Reset()
	return s
}

// Whole returns what was recorded since the beginning.
func (r *Recorder) Whole() Summary {
	r.Interval()
	r.mu.Lock()
	defer r.mu.Unlock()
	return summarize(r.whole)
}

// A Summary is what a report shows of one leg, in milliseconds.
type Summary struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean_ms"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	P999  float64 `json:"p999_ms"`
	Max   float64 `json:"max_ms"`
}

func summarize(h *hdrhistogram.Histogram) Summary {
	if h.TotalCount() == 0 {
		return Summary{}
	}
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
	return Summary{
		Count: h.TotalCount(), Mean: h.Mean() / 1000,
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: float64(h.Max()) / 1000,
	}
}
