// Package metrics reads the histograms that the services publish for
// Prometheus: what happens inside, out of sight of the public API.
package metrics

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// A Histogram has the count of each bucket by its upper bound, cumulative as
// Prometheus has them.
type Histogram map[float64]float64

// Fetch adds up the histogram called name over all replicas, whose /metrics
// are at the addresses.
func Fetch(ctx context.Context, client *http.Client, addresses []string, name string) (Histogram, error) {
	sum := make(Histogram)
	for _, address := range addresses {
		if err := add(ctx, client, address, name, sum); err != nil {
			return nil, fmt.Errorf("%s: %w", address, err)
		}
	}
	return sum, nil
}

func add(ctx context.Context, client *http.Client, address, name string, sum Histogram) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	for _, metric := range families[name].GetMetric() {
		for _, bucket := range metric.GetHistogram().GetBucket() {
			sum[bucket.GetUpperBound()] += float64(bucket.GetCumulativeCount())
		}
	}
	return nil
}

// Since returns what h has beyond an earlier reading. A replica that was
// restarted begins at 0 again; what it lost is left out rather than counted
// backwards.
func (h Histogram) Since(before Histogram) Histogram {
	since := make(Histogram)
	for bound, count := range h {
		since[bound] = max(0, count-before[bound])
	}
	return since
}

// Count returns the number of observations.
func (h Histogram) Count() float64 { return h[math.Inf(1)] }

// Quantile returns the value below which the part q of the observations lies,
// as exactly as the buckets are fine: it takes each bucket as evenly filled.
func (h Histogram) Quantile(q float64) float64 {
	rank, below, lower := q*h.Count(), 0.0, 0.0
	for _, bound := range slices.Sorted(maps.Keys(h)) {
		count := h[bound]
		if count >= rank && count > below {
			if math.IsInf(bound, 1) {
				return lower
			}
			return lower + (bound-lower)*(rank-below)/(count-below)
		}
		below, lower = count, bound
	}
	return lower
}
