package topology

import (
	"slices"
	"testing"
	"time"
)

// The standard delays always have their queues; others come beside them.
func TestTiers(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, tt := range []struct{ delays, want []time.Duration }{
		{nil, []time.Duration{s, 5 * s, 30 * s}},
		{[]time.Duration{s, 5 * s}, []time.Duration{s, 5 * s, 30 * s}},
		{[]time.Duration{12 * s, 24 * s, 30 * s}, []time.Duration{s, 5 * s, 12 * s, 24 * s, 30 * s}},
	} {
		if got := retryDelays(tt.delays); !slices.Equal(got, tt.want) {
			t.Errorf("delays %v have queues for %v, want %v", tt.delays, got, tt.want)
		}
	}
}
