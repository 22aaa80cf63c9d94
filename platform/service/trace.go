package service

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"

	"github.com/cityconnect/cityconnect/platform/trace"
)

type traceKey struct{}

// Trace takes part in the caller's trace, or begins one. The tracestate
// header is not taken over: it is the one place in the context where a client
// could write what it likes.
func Trace(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		child := childTrace(r.Header.Get(trace.Header))
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
	return childTrace("")
}

// TraceID returns the trace's id, or "" if ctx belongs to no trace.
func TraceID(ctx context.Context) string {
	parent, ok := ctx.Value(traceKey{}).(string)
	if !ok {
		return ""
	}
	return parent[3:35]
}

// childTrace returns a traceparent with a span id of its own, in the trace of
// parent if that is a valid one.
func childTrace(parent string) string {
	id, flags, ok := trace.Parse(parent)
	if !ok {
		id, flags = randomHex(16), "01"
	}
	return "00-" + id + "-" + randomHex(8) + "-" + flags
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails, see crypto/rand
	return hex.EncodeToString(b)
}
