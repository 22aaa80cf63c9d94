package service

import (
	"context"
	"net/http"

	"github.com/cityconnect/cityconnect/platform/trace"
)

type traceKey struct{}

// Trace takes part in the caller's trace, or begins one. The tracestate
// header is not taken over: it is the one place in the context where a client
// could write what it likes. The gateway removes the trace context of clients, so
// that only programs behind it set one.
func Trace(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parent := ""
		if parents := r.Header.Values(trace.Header); len(parents) == 1 { // of two, neither is the caller's
			parent = parents[0]
		}
		child := trace.Child(parent)
		w.Header().Set(trace.Header, child)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), traceKey{}, child)))
	})
}

// TraceFrom returns the traceparent under which ctx's work goes on, such as
// for the header of a message; a fresh one if ctx has none.
func TraceFrom(ctx context.Context) string {
	if parent, ok := ctx.Value(traceKey{}).(string); ok {
		return parent
	}
	return trace.Child("")
}

// TraceID returns the trace's id, or "" if ctx belongs to no trace.
func TraceID(ctx context.Context) string {
	parent, ok := ctx.Value(traceKey{}).(string)
	if !ok {
		return ""
	}
	return trace.ID(parent)
}
