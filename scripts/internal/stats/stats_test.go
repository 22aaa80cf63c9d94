package stats_test

import (
	"testing"

	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = 100 - i
	}
	for _, tt := range []struct {
		values []int
		p      int
		want   int
	}{
		{nil, 99, 0},
		{[]int{7}, 0, 7},
		{[]int{7}, 99, 7},
		{[]int{3, 1, 2}, 50, 2},
		{[]int{4, 1, 3, 2}, 50, 2},
		{hundred, 50, 50},
		{hundred, 99, 99},
		{hundred, 100, 100},
	} {
		if got := stats.Percentile(tt.values, tt.p); got != tt.want {
			t.Errorf("percentile %d of %d values: got %d, want %d", tt.p, len(tt.values), got, tt.want)
		}
	}
}

func TestRatios(t *testing.T) {
	t.Parallel()
	// One slow pass of both sides does not change their figures.
	if got := stats.Median(stats.Ratios([]float64{10, 2, 30}, []float64{5, 1, 10})); got != 2 {
		t.Errorf("got %v, want 2", got)
	}
}
