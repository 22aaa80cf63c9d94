package service_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/cityconnect/cityconnect/platform/service"
)

// Allow has the methods of the path itself, not those of a path with a
// parameter that would match it, too.
func TestMethodNotAllowed(t *testing.T) {
	t.Parallel()
	r := chi.NewRouter()
	r.MethodNotAllowed(service.MethodNotAllowedHandler)
	nothing := func(http.ResponseWriter, *http.Request) {}
	r.Get("/notifications/stream", nothing)
	r.Patch("/notifications/{id}", nothing)
	r.Delete("/notifications/{id}", nothing)
	r.Route("/admin", func(r chi.Router) { r.Get("/workers/{queue}", nothing) })
	for path, want := range map[string]string{
		"/notifications/stream": "GET, HEAD",
		"/notifications/7":      "PATCH, DELETE",
		"/admin/workers/votes":  "GET, HEAD",
	} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "OPTIONS", path, nil))
		if got := strings.Join(w.Header().Values("Allow"), ", "); w.Code != 405 || got != want {
			t.Errorf("OPTIONS %s: status %d, Allow %q; want 405 and %q", path, w.Code, got, want)
		}
	}
	for _, path := range []string{"*", "/nowhere"} { // such as the preface of HTTP/2
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "PRI", path, nil))
		if w.Code != 404 || w.Header().Get("Allow") != "" {
			t.Errorf("PRI %s: status %d, Allow %q; want 404: there is nothing that other methods could do", path, w.Code, w.Header().Get("Allow"))
		}
	}
}
