package incidents_test

import (
	"math"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/incidents"
)

func TestIncidentIsTheSameAgain(t *testing.T) {
	t.Parallel()
	differ := false
	for n := range 100 {
		if a, b := incidents.At(7, n), incidents.At(7, n); a != b {
			t.Fatalf("incident %d: %+v and %+v", n, a, b)
		}
		differ = differ || incidents.At(7, n) != incidents.At(7, n+1)
	}
	if !differ {
		t.Error("all incidents are alike")
	}
}

// All requests are due within about the planned time, and in order.
func TestPattern(t *testing.T) {
	t.Parallel()
	p := incidents.Pattern{Events: 20_000, Rate: 500, Seed: 3}
	count, last := 0, time.Duration(0)
	for at := range p.All() {
		if at < last {
			t.Fatalf("request %d is due at %v, before %v", count, at, last)
		}
		count, last = count+1, at
	}
	if off := math.Abs(float64(last)/float64(p.Duration()) - 1); count != p.Events || off > 0.1 {
		t.Errorf("%d requests until %v, want %d until about %v", count, last, p.Events, p.Duration())
	}
}
