package service

import (
	"context"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"runtime"
	"strings"

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
	r.Use(middleware.GetHead, limitBody(maxBody, bodyTimeout, nil), onlyOwnHost)
	r.NotFound(NotFoundHandler)
	r.MethodNotAllowed(MethodNotAllowedHandler)
	r.Method(http.MethodGet, "/metrics", health.noteMetrics(MetricsHandler(metrics)))
	r.Get("/livez", health.Live)
	r.Get("/readyz", health.Ready)
	r.Get("/health/detailed", health.Detailed)
	r.Get("/debug/pprof/profile", pprof.Profile)
	r.Get("/debug/pprof/trace", pprof.Trace)
	r.Get("/debug/pprof/{profile}", pprof.Index) // heap, allocs, mutex, block, goroutine
	return r
}

// onlyOwnHost refuses requests over the loopback for a name that is not the machine's
// own: a page of another site may have its name lead here, and would read the answer
// in the browser of an operator.
func onlyOwnHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		if local != nil && local.IP.IsLoopback() && !isOwnHost(r.Host) {
			WriteProblem(w, r, Forbidden.New("the Host must be localhost or an IP address"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isOwnHost reports whether host, with or without a port, is localhost or an IP
// address, which no other site can have for its name.
func isOwnHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}

// ServeOperations serves NewOperations on ln until ctx ends. It closes ln.
func ServeOperations(ctx context.Context, ln net.Listener, metrics *prometheus.Registry, health *Health, log zerolog.Logger) error {
	return Serve(ctx, ln, NewOperations(metrics, health), ServeOptions{Log: log.With().Str("part", "operations").Logger()})
}
