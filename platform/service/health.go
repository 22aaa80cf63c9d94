package service

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

const (
	// probeTimeout bounds one check. Supervisors rarely wait longer for an answer.
	probeTimeout = 2 * time.Second
	// reportFor is for how long a report is the answer to others: anybody may ask, and
	// each probe costs something elsewhere.
	reportFor = time.Second
)

// A Check is one thing that a service depends on.
type Check struct {
	Name  string
	Probe func(context.Context) error
	// Optional says that the service does its main job without it: when the
	// probe fails, the service is degraded and still ready.
	Optional bool
}

// A Status is the state of a service or of one of its checks.
type Status string

// The states. Draining is that of a service which is about to end.
const (
	Up       Status = "up"
	Degraded Status = "degraded"
	Down     Status = "down"
	Draining Status = "draining"
)

// A HealthReport is the answer of /health and /readyz. It says what is down,
// never why: the reason may name hosts and users, and is in the log.
type HealthReport struct {
	Status Status            `json:"status"`
	Checks map[string]Status `json:"checks"`
}

// Health reports whether the service is alive and ready.
type Health struct {
	log      zerolog.Logger
	checks   []Check
	details  Details
	draining atomic.Bool
	metrics  atomic.Pointer[time.Time] // when they were last read

	mu   sync.Mutex
	last map[string]Status // so that the log has changes only

	reporting sync.Mutex // of both below, held while the checks run
	states    []Status
	at        time.Time
}

// NewHealth returns the health of a service that depends on checks. /health/detailed adds
// the details.
func NewHealth(log zerolog.Logger, details Details, checks ...Check) *Health {
	return &Health{log: log, details: details, checks: checks, last: make(map[string]Status)}
}

// Drain makes the service not ready until it ends, so that it gets no more requests.
func (h *Health) Drain() { h.draining.Store(true) }

// MetricsReadAt returns when the metrics of this process were last read, or zero.
func (h *Health) MetricsReadAt() time.Time {
	if at := h.metrics.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// noteMetrics notes when next is asked.
func (h *Health) noteMetrics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.metrics.Store(new(time.Now()))
		next.ServeHTTP(w, r)
	})
}

// probe runs all checks at once, or returns their states of up to a second ago. The end of
// the request does not end the checks, because other requests use their states.
func (h *Health) probe(ctx context.Context) []Status {
	h.reporting.Lock()
	defer h.reporting.Unlock()
	if !h.at.IsZero() && time.Since(h.at) < reportFor {
		return h.states
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	defer cancel()
	states := make([]Status, len(h.checks))
	var wg sync.WaitGroup
	for i, c := range h.checks {
		wg.Go(func() { states[i] = h.run(ctx, c) })
	}
	wg.Wait()
	h.states, h.at = states, time.Now()
	return states
}

// Report sums all checks up.
func (h *Health) Report(ctx context.Context) HealthReport {
	states := h.probe(ctx)
	report := HealthReport{Status: Up, Checks: make(map[string]Status, len(h.checks))}
	for i, c := range h.checks {
		report.Checks[c.Name] = states[i]
		switch {
		case states[i] == Down:
			report.Status = Down
		case states[i] == Degraded && report.Status == Up:
			report.Status = Degraded
		}
	}
	if h.draining.Load() {
		report.Status = Draining
	}
	return report
}

func (h *Health) run(ctx context.Context, c Check) Status {
	state, err := Up, c.Probe(ctx)
	switch {
	case err != nil && c.Optional:
		state = Degraded
	case err != nil:
		state = Down
	}
	h.mu.Lock()
	before, seen := h.last[c.Name]
	h.last[c.Name] = state
	h.mu.Unlock()
	if state != before && (seen || state != Up) {
		h.log.Warn().Err(err).Str("check", c.Name).Str("status", string(state)).Msg("health changed")
	}
	return state
}

// Live serves /livez: the process answers, that is all.
func (h *Health) Live(w http.ResponseWriter, _ *http.Request) {
	writeHealth(w, Up, HealthReport{Status: Up, Checks: map[string]Status{}})
}

// Ready serves /readyz and /health: 200 when requests are welcome, also when
// degraded, otherwise 503.
func (h *Health) Ready(w http.ResponseWriter, r *http.Request) {
	report := h.Report(r.Context())
	writeHealth(w, report.Status, report)
}

func writeHealth(w http.ResponseWriter, status Status, report any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if status == Down || status == Draining {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(report) // fails if the client has left
}
