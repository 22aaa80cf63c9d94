//go:build linux

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cityconnect/cityconnect/platform/client"
)

// Groups of both services count; one that is away takes back nothing of what it said,
// and an alarm that is over was one.
func TestAlarmsAreCounted(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"/admin/reports/reconciliation":       `{"groups": [{"group": "photos", "missing": 1}]}`,
		"/admin/notifications/reconciliation": `{"groups": [{"group": "notifications", "missing": 2}, {"group": "webhooks", "missing": 3}]}`,
	}
	services := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answers[r.URL.Path] == "" {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		fmt.Fprint(w, answers[r.URL.Path])
	}))
	defer services.Close()
	a, operator := alarms{missing: make(map[string]int64)}, client.New(services.URL)
	a.ask(t.Context(), operator)
	answers["/admin/notifications/reconciliation"], answers["/admin/reports/reconciliation"] = `{"groups": []}`, ""
	a.ask(t.Context(), operator)
	if a.sum() != 1 || a.highest != 6 {
		t.Errorf("missing are %d, at most %d; want 1 and 6", a.sum(), a.highest)
	}
}
