// Package result is what a load test found, and how it is shown: as text and as
// JSON.
package result

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/platform/testing/ssetest"
	"github.com/cityconnect/cityconnect/scripts/cmd/loadtest/internal/latency"
	"github.com/cityconnect/cityconnect/scripts/internal/city"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

// The legs of a notification's way. Each but the relay's is counted from when
// the request was due.
const (
	ToDatabase = "request to database (the answer)"
	ToBroker   = "database to broker (the relay's measure)"
	ToConsumer = "request to consumer's database"
	ToScreen   = "request to screen"
)

// A Result is everything that is known of a run.
type Result struct {
	Title    string            `json:"title"`
	Settings map[string]any    `json:"settings"`
	Machine  map[string]string `json:"machine"`
	Began    time.Time         `json:"began"`
	Seconds  float64           `json:"seconds"` // from the first request to the last answer
	Cut      bool              `json:"cut"`     // the limit came before the last request
	Planned  int64             `json:"planned"`
	Skipped  int64             `json:"skipped"` // were due while no report was open
	Errors   map[string]int64  `json:"errors"`
	Audit    city.Tally        `json:"audit"`
	Screens  Screens           `json:"screens"`
	Legs     []Leg             `json:"legs"`
	Answers  []Leg             `json:"answers"`
	Points   []Point           `json:"points"`
}

// A Leg is how long one part of the way took.
type Leg struct {
	Name string `json:"name"`
	latency.Summary
}

// A Point is one look at the run. The rates are per second.
type Point struct {
	Second      float64          `json:"second"`
	Planned     float64          `json:"planned"`
	Accepted    float64          `json:"accepted"`
	Received    float64          `json:"received"`
	Answer      latency.Summary  `json:"answer"`
	Screen      latency.Summary  `json:"screen"`
	Outstanding int64            `json:"outstanding"` // notifications on their way
	Pending     int64            `json:"pending"`     // in the outbox; -1 unknown
	Processes   map[string]Usage `json:"processes"`
}

// A Usage is what a process takes.
type Usage struct {
	Cores float64 `json:"cores"`
	MiB   float64 `json:"mib"`
}

// Screens is what the screens saw in the numbers of their streams.
type Screens struct {
	Open        int   `json:"open"`
	Connections int64 `json:"connections"` // those that were opened again included
	ssetest.Count
}

// Good reports whether the promise was kept for what was accepted: nothing lost, doubled,
// astray or out of order.
func (r *Result) Good() bool {
	a, s := r.Audit, r.Screens
	return a.Expected > 0 && a.Lost == 0 && a.Doubled == 0 && a.Astray == 0 &&
		s.Missing == 0 && s.Doubled == 0 && s.OutOfOrder == 0
}

// AcceptedPerSecond is the rate over the whole run.
func (r *Result) AcceptedPerSecond() float64 { return float64(r.Audit.Accepted) / r.Seconds }

// Leg returns the leg of that name.
func (r *Result) Leg(name string) latency.Summary {
	for _, l := range r.Legs {
		if l.Name == name {
			return l.Summary
		}
	}
	return latency.Summary{}
}

// Line is the result for other programs.
func (r *Result) Line() string {
	screen := r.Leg(ToScreen)
	lost := max(r.Audit.Lost, r.Screens.Missing)
	doubled := max(r.Audit.Doubled, r.Screens.Doubled)
	return fmt.Sprintf("accepted_per_s=%.1f expected=%d once=%d lost=%d doubled=%d p50_ms=%.2f p99_ms=%.2f rss_growth_pct=%.1f",
		r.AcceptedPerSecond(), r.Audit.Expected, r.Audit.Once, lost, doubled, screen.P50, screen.P99, r.WorstGrowth())
}

// A Consumption is what one process took over a run.
type Consumption struct {
	Name   string
	Cores  float64 // mean
	MiB    float64 // at the end
	Peak   float64 // MiB
	Growth float64 // percent, from the second fifth of the run to its last
}

// Consumptions returns what each process took, by name.
func (r *Result) Consumptions() []Consumption {
	by := make(map[string][]Usage)
	for _, p := range r.Points {
		for name, u := range p.Processes {
			by[name] = append(by[name], u)
		}
	}
	var all []Consumption
	for name, usages := range by {
		c := Consumption{Name: name, MiB: usages[len(usages)-1].MiB, Growth: growth(usages)}
		for _, u := range usages {
			c.Cores += u.Cores / float64(len(usages))
			c.Peak = max(c.Peak, u.MiB)
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Consumption) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// noise is the growth in MiB that is none: a garbage collection more or less.
const noise = 8

// growth compares medians, since memory goes up and down with collections. The
// first fifth of a run fills caches and pools, and is left out.
func growth(usages []Usage) float64 {
	fifth := len(usages) / 5
	if fifth == 0 {
		return 0
	}
	sizes := make([]float64, len(usages))
	for i, u := range usages {
		sizes[i] = u.MiB
	}
	before, after := stats.Median(sizes[fifth:2*fifth]), stats.Median(sizes[len(sizes)-fifth:])
	if after-before < noise {
		return 0
	}
	return 100 * (after - before) / before
}

// WorstGrowth is the growth of the stack's process that grew most, in percent.
// The load test itself remembers every event, and does not count.
func (r *Result) WorstGrowth() float64 {
	worst := 0.0
	for _, c := range r.Consumptions() {
		if c.Name != "loadtest" {
			worst = max(worst, c.Growth)
		}
	}
	return worst
}
