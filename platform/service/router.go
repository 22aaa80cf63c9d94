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

// requestTimeout bounds what a request may wait for the database. It is below
// what gateways and clients wait for us.
const requestTimeout = 15 * time.Second

// NewRouter returns a router with what every service has around its handlers:
// the trace, the access log, metrics, recovery from panics, limits of bodies,
// the health checks, and problems for paths and methods that do not exist.
func NewRouter(log zerolog.Logger, metrics *prometheus.Registry, health *Health) *chi.Mux {
	r := chi.NewRouter()
	r.Use(Trace, AccessLog(log), HTTPMetrics(metrics), Recover(log), middleware.GetHead, limitBody(maxBody, bodyTimeout))
	r.NotFound(NotFoundHandler)
	r.MethodNotAllowed(MethodNotAllowedHandler)

	r.Get("/livez", health.Live)
	r.Get("/readyz", health.Ready)
	r.Get("/health", health.Ready)
	return r
}

// Timeout bounds what h may wait for. Streams have limits of their own.
func Timeout(h HandlerFunc) HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		return h(w, r.WithContext(ctx))
	}
}
