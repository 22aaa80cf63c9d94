package service

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// DefaultTimeout bounds what a request may wait for the database. It is below
// what gateways and clients wait for us.
const DefaultTimeout = 15 * time.Second

// NewRouter returns a router of the API's version with what every service has
// around its handlers:
// the trace, the access log, metrics, recovery from panics, limits of bodies,
// the health checks, and problems for paths and methods that do not exist. The
// uploads may have larger bodies than other requests.
func NewRouter(version string, log zerolog.Logger, metrics *prometheus.Registry, health *Health, uploads ...Upload) *chi.Mux {
	r := chi.NewRouter()
	r.Use(Trace, AccessLog(log), HTTPMetrics(metrics), Recover(log), headers(version), middleware.GetHead, limitBody(maxBody, bodyTimeout, uploads))
	r.NotFound(NotFoundHandler)
	r.MethodNotAllowed(MethodNotAllowedHandler)

	r.Get("/livez", health.Live)
	r.Get("/readyz", health.Ready)
	r.Get("/health", health.Ready)
	return r
}

// headers says with every answer which version of the API gave it, and keeps
// browsers from guessing its type, and other sites from embedding it.
func headers(version string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("API-Version", version)
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
			next.ServeHTTP(w, r)
		})
	}
}

// An Operation is a handler with the time that it may take.
type Operation struct {
	Handler HandlerFunc
	Timeout time.Duration
}

// Unlimited is the Timeout of an Operation that takes as long as its client, such as
// a stream or a download.
const Unlimited time.Duration = -1

// Handle answers a request within the Timeout.
func (o Operation) Handle(w http.ResponseWriter, r *http.Request) error {
	if o.Timeout == Unlimited {
		return o.Handler(w, r)
	}
	return Timeout(o.Timeout, o.Handler)(w, r)
}

// Timeout lets h wait for as long as d.
func Timeout(d time.Duration, h HandlerFunc) HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), d)
		defer cancel()
		return h(w, r.WithContext(ctx))
	}
}
