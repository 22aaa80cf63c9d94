package service

import (
	"context"
	"net/http"

	"github.com/cityconnect/cityconnect/platform/build"
)

// Details are what operators see of a process beside its health.
type Details struct {
	Features map[string]bool // whether each is on, by this process's settings
	// Schema reads the version of the database's schema. It may be nil.
	Schema func(context.Context) (uint, error)
}

// A detailedReport is what /health/detailed answers.
type detailedReport struct {
	HealthReport

	Version  string          `json:"version"`
	Schema   uint            `json:"schema_version,omitempty"` // left out while it cannot be read
	Features map[string]bool `json:"features,omitempty"`
}

// Detailed serves /health/detailed: what Ready says, with the versions of program
// and schema, and which features are on.
func (h *Health) Detailed(w http.ResponseWriter, r *http.Request) {
	report := detailedReport{HealthReport: h.Report(r.Context()), Version: build.Read().Version, Features: h.details.Features}
	if h.details.Schema != nil {
		ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
		defer cancel()
		report.Schema, _ = h.details.Schema(ctx) // the check of the schema says and logs why not
	}
	writeHealth(w, report.Status, report)
}
