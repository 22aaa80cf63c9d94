package service_test

import (
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/service"
)

// Operations are served at the operators' address, and none of them at the public one.
func TestOperationsAreApart(t *testing.T) {
	t.Parallel()
	metrics, health := prometheus.NewRegistry(), service.NewHealth(zerolog.Nop(), service.Details{})
	operations := service.NewOperations(metrics, health)
	public := service.NewRouter("1.0.0", zerolog.Nop(), metrics, health)
	for path, want := range map[string]int{
		"/metrics": 200, "/health/detailed": 200,
		"/debug/pprof/heap": 200, "/debug/pprof/allocs": 200, "/debug/pprof/mutex": 200, "/debug/pprof/block": 200,
		"/debug/pprof/goroutine": 200, "/debug/pprof/profile?seconds=1": 200, "/debug/pprof/trace?seconds=0.01": 200,
		"/debug/pprof/cmdline": 404, "/debug/vars": 404, "/reports": 404,
	} {
		w := httptest.NewRecorder()
		operations.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("GET %s for operators: got %d, want %d", path, w.Code, want)
		}
		w = httptest.NewRecorder()
		public.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != 404 {
			t.Errorf("GET %s for everyone: got %d, want 404", path, w.Code)
		}
	}
}

// A page of another site whose name leads to this machine reads nothing.
func TestOperationsOfAnotherName(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(service.NewOperations(prometheus.NewRegistry(), service.NewHealth(zerolog.Nop(), service.Details{})))
	defer server.Close()
	for host, want := range map[string]int{
		"": 200, "localhost:3012": 200, "LOCALHOST": 200, "localhost.": 200, "127.0.0.1": 200, "[::1]:3012": 200, "10.0.0.7:3012": 200,
		"evil.example": 403, "evil.example:3012": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403,
	} {
		req := httptest.NewRequest("GET", server.URL+"/metrics", nil)
		req.RequestURI, req.Host = "", host
		res, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("Host %q: got %d, want %d", host, res.StatusCode, want)
		}
	}
}
