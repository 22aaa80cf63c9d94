package service

import (
	"context"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

const (
	// mutexFraction and blockNanoseconds are how rarely contention is recorded: so
	// rarely that its cost cannot be measured, and profiles still show it.
	mutexFraction    = 100
	blockNanoseconds = 100_000_000
)

// NewOperations returns the handler for operators alone: metrics, the state of all
// dependencies, and profiles, which have the names of functions and no data. It has no
// sign-in, so it needs an address that only operators reach: counters that move with
// each delivery would show anybody who can cause one, by a vote say, whether the
// recipient is listening. It has the health checks, too, because nobody else asks a
// worker anything. No operation takes a body.
func NewOperations(metrics *prometheus.Registry, health *Health) http.Handler {
	runtime.SetMutexProfileFraction(mutexFraction)
	runtime.SetBlockProfileRate(blockNanoseconds)
	r := chi.NewRouter()
	r.Use(middleware.GetHead, limitBody(maxBody, bodyTimeout, nil))
	r.NotFound(NotFoundHandler)
	r.MethodNotAllowed(MethodNotAllowedHandler)
	r.Method(http.MethodGet, "/metrics", MetricsHandler(metrics))
	r.Get("/livez", health.Live)
	r.Get("/readyz", health.Ready)
	r.Get("/health/detailed", health.Detailed)
	r.Get("/debug/pprof/profile", pprof.Profile)
	r.Get("/debug/pprof/trace", pprof.Trace)
	r.Get("/debug/pprof/{profile}", pprof.Index) // heap, allocs, mutex, block, goroutine
	return r
}

// ServeOperations serves NewOperations on ln until ctx ends. It closes ln.
func ServeOperations(ctx context.Context, ln net.Listener, metrics *prometheus.Registry, health *Health, log zerolog.Logger) error {
	return Serve(ctx, ln, NewOperations(metrics, health), ServeOptions{Log: log.With().Str("part", "operations").Logger()})
}
