// Package stats sums up measurements.
package stats

import (
	"cmp"
	"slices"
)

// Percentile returns the nearest-rank percentile of values: the least that p in
// a hundred do not exceed. It is zero if there are none.
func Percentile[T cmp.Ordered](values []T, p int) T {
	if len(values) == 0 {
		return *new(T)
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := (len(sorted)*p + 99) / 100 // rounded up
	return sorted[max(rank, 1)-1]
}

// Median returns the middle one of values, of an even number the lower of the
// two.
func Median[T cmp.Ordered](values []T) T { return Percentile(values, 50) }

// Ratios returns a over b, pass by pass. The two passes of a pair run one after
// the other, so that what else the machine did counts for both.
func Ratios(a, b []float64) []float64 {
	ratios := make([]float64, len(a))
	for pass := range a {
		ratios[pass] = a[pass] / b[pass]
	}
	return ratios
}
