// Package profile lets operators look into a running process: where it spends
// its processor time, who holds its memory, and what waits for what.
//
// Profiles have the names of functions and no data. Nothing here sets labels,
// which could name users.
package profile

import (
	"net/http"
	"net/http/pprof"
	"runtime"

	"github.com/go-chi/chi/v5"

	"github.com/cityconnect/cityconnect/platform/auth"
)

const (
	// mutexFraction and blockNanoseconds are how rarely contention is noted: so
	// that it costs nothing that could be measured, and is there when asked for.
	mutexFraction    = 100
	blockNanoseconds = 1_000_000
)

// Mount serves the profiles below /debug/pprof/, to operators alone. It may
// be called several times; the rates are those of the process.
func Mount(r chi.Router, verifier *auth.Verifier) {
	runtime.SetMutexProfileFraction(mutexFraction)
	runtime.SetBlockProfileRate(blockNanoseconds)
	r.Group(func(r chi.Router) {
		r.Use(verifier.Middleware, auth.Require(auth.Operator))
		r.Method(http.MethodGet, "/debug/pprof/profile", http.HandlerFunc(pprof.Profile))
		r.Method(http.MethodGet, "/debug/pprof/trace", http.HandlerFunc(pprof.Trace))
		r.Method(http.MethodGet, "/debug/pprof/{profile}", http.HandlerFunc(pprof.Index)) // heap, allocs, mutex, block, goroutine
	})
}
