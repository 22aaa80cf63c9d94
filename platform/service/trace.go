package service

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"regexp"
	"strings"
)

// traceHeader carries the W3C trace context (https://www.w3.org/TR/trace-context/).
const traceHeader = "traceparent"

// traceParent matches version 00, the only one there is, and whatever a later
// version may append.
var traceParent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$`)

type traceKey struct{}

// Trace takes part in the caller's trace, or begins one. The tracestate
// header is not taken over: it is the one place in the context where a client
// could write what it likes.
func Trace(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		trace := childTrace(r.Header.Get(traceHeader))
		w.Header().Set(traceHeader, trace)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), traceKey{}, trace)))
	})
}

// TraceFrom returns the traceparent under which ctx's work goes on, such as
// for the header of a message; a fresh one if ctx has none.
func TraceFrom(ctx context.Context) string {
	if trace, ok := ctx.Value(traceKey{}).(string); ok {
		return trace
	}
	return childTrace("")
}

// TraceID returns the trace's id, or "" if ctx belongs to no trace.
func TraceID(ctx context.Context) string {
	trace, ok := ctx.Value(traceKey{}).(string)
	if !ok {
		return ""
	}
	return trace[3:35]
}

// childTrace returns a traceparent with a span id of its own, in the trace of
// parent if that is a valid one.
func childTrace(parent string) string {
	m := traceParent.FindStringSubmatch(parent)
	if m == nil || strings.HasPrefix(parent, "ff-") || strings.HasPrefix(parent, "00-") && m[4] != "" ||
		strings.Trim(m[1], "0") == "" || strings.Trim(m[2], "0") == "" {
		return "00-" + randomHex(16) + "-" + randomHex(8) + "-01"
	}
	return "00-" + m[1] + "-" + randomHex(8) + "-" + m[3]
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails, see crypto/rand
	return hex.EncodeToString(b)
}
