package main

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// A histogram is one of the relay's metrics, read back from the registry.
type histogram struct {
	total  uint64
	bounds []float64
	upTo   []uint64 // cumulative
}

func gather(metrics *prometheus.Registry, name string) (histogram, error) {
	families, err := metrics.Gather()
	if err != nil {
		return histogram{}, fmt.Errorf("gather metrics: %w", err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		var h histogram
		gathered := family.GetMetric()[0].GetHistogram()
		h.total = gathered.GetSampleCount()
		for _, bucket := range gathered.GetBucket() {
			h.bounds = append(h.bounds, bucket.GetUpperBound())
			h.upTo = append(h.upTo, bucket.GetCumulativeCount())
		}
		return h, nil
	}
	return histogram{}, fmt.Errorf("no metric %s", name)
}

// quantile interpolates within the bucket, as Prometheus does.
func (h histogram) quantile(q float64) float64 {
	rank := q * float64(h.total)
	var below, bound float64
	for i, cumulative := range h.upTo {
		if float64(cumulative) >= rank && cumulative > 0 {
			inBucket := float64(cumulative) - below
			return bound + (h.bounds[i]-bound)*(rank-below)/max(inBucket, 1)
		}
		below, bound = float64(cumulative), h.bounds[i]
	}
	return bound
}
