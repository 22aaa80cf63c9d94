package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/service"
)

// Operators see each dependency, the versions, and which features are on; those
// of the public see the former alone.
func TestDetailedHealth(t *testing.T) {
	t.Parallel()
	down := errors.New("away")
	health := service.NewHealth(zerolog.Nop(), service.Details{
		Features: map[string]bool{"mail": true, "push": false},
		Schema:   func(context.Context) (uint, error) { return 15, nil },
	}, service.Check{Name: "database", Probe: func(context.Context) error { return nil }},
		service.Check{Name: "consumer", Probe: func(context.Context) error { return down }, Optional: true})
	w := httptest.NewRecorder()
	health.Detailed(w, httptest.NewRequest("GET", "/health/detailed", nil))
	var got struct {
		Status   string            `json:"status"`
		Checks   map[string]string `json:"checks"`
		Version  string            `json:"version"`
		Schema   int               `json:"schema_version"`
		Features map[string]bool   `json:"features"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if w.Code != 200 || got.Status != "degraded" || got.Checks["database"] != "up" || got.Checks["consumer"] != "degraded" {
		t.Errorf("%d %+v", w.Code, got)
	}
	if push, listed := got.Features["push"]; got.Version == "" || got.Schema != 15 || !got.Features["mail"] || push || !listed {
		t.Errorf("%s", w.Body)
	}
}
