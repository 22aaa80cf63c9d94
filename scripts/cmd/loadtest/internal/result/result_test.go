package result

import (
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/latency"
	"github.com/cityconnect/cityconnect/scripts/internal/city"
)

func sample() *Result {
	r := &Result{
		Title: "default", Seconds: 10, Audit: city.Tally{Accepted: 1000, Expected: 1100, Once: 1100},
		Errors: map[string]int64{"vote: <no answer>": 3},
		Legs:   []Leg{{Name: ToScreen, Summary: latency.Summary{Count: 5, P50: 1.234, P99: 9.876}}},
	}
	for i := range 20 {
		r.Points = append(r.Points, Point{
			Second: float64(i), Planned: 100, Accepted: 99, Pending: -1, Screen: latency.Summary{Count: 1, P50: 1, P99: 2},
			Processes: map[string]Usage{
				"report-1": {Cores: 0.5, MiB: 50 + float64(i)}, "postgres": {Cores: 1, MiB: 100}, "loadtest": {MiB: 10 * float64(1+i)},
			},
		})
	}
	return r
}

func TestLine(t *testing.T) {
	t.Parallel()
	const want = "accepted_per_s=100.0 expected=1100 once=1100 lost=0 doubled=0 p50_ms=1.23 p99_ms=9.88 rss_growth_pct=21.8"
	if got := sample().Line(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestGood(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*Result){
		"nothing expected": func(r *Result) { r.Audit.Expected = 0 },
		"lost":             func(r *Result) { r.Audit.Lost = 1 },
		"doubled":          func(r *Result) { r.Audit.Doubled = 1 },
		"astray":           func(r *Result) { r.Audit.Astray = 1 },
		"number missing":   func(r *Result) { r.Screens.Missing = 1 },
		"number doubled":   func(r *Result) { r.Screens.Doubled = 1 },
		"out of order":     func(r *Result) { r.Screens.OutOfOrder = 1 },
	} {
		r := sample()
		if !r.Good() {
			t.Fatal("the sample is not good")
		}
		if spoil(r); r.Good() {
			t.Errorf("%s counts as good", name)
		}
	}
}

// Without the machine and the settings no figure means anything.
func TestTextNamesTheConditions(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Machine, r.Settings = map[string]string{"go": "go1.26", "cores": "2"}, map[string]any{"rate": 100.0}
	var out strings.Builder
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"machine: cores 2, go go1.26\n", "settings: rate 100\n", "vote: <no answer>", r.Line()} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the text has no %q:\n%s", want, &out)
		}
	}
}
