package metrics_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/metrics"
)

func replica(t *testing.T, half, one, all int) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "# TYPE x histogram\nx_bucket{le=\"0.5\"} %d\nx_bucket{le=\"1\"} %d\nx_bucket{le=\"+Inf\"} %d\nx_sum 1\nx_count %d\n", half, one, all, all)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func fetch(t *testing.T, name string, addresses ...string) metrics.Histogram {
	t.Helper()
	h, err := metrics.Fetch(t.Context(), http.DefaultClient, addresses, name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHistogram(t *testing.T) {
	t.Parallel()
	before := fetch(t, "x", replica(t, 10, 10, 10))
	h := fetch(t, "x", replica(t, 30, 50, 50), replica(t, 30, 50, 60)).Since(before)
	if got := h.Count(); got != 100 {
		t.Errorf("got %v observations, want 100", got)
	}
	for q, want := range map[float64]float64{0.25: 0.25, 0.5: 0.5, 0.7: 0.75, 0.999: 1} {
		if got := h.Quantile(q); math.Abs(got-want) > 1e-9 {
			t.Errorf("quantile %v: got %v, want %v", q, got, want)
		}
	}
	if got := fetch(t, "y", replica(t, 1, 1, 1)).Count(); got != 0 {
		t.Errorf("a histogram that is not there has %v observations, want 0", got)
	}
}
