package service

import (
	"context"
	"errors"
	"io"
	stdlog "log"
	"net/http"
	"regexp"
	"runtime/debug"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/google/uuid"
	"github.com/rs/zerolog"
)

// timeFormat is RFC 3339 with milliseconds: what one request does in two services
// happens within a few of them.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// zerolog has one format for the whole process.
func init() { zerolog.TimeFieldFormat = timeFormat }

// NewLogger returns the logger of a service: one JSON object a line. level is
// a level of zerolog, such as "info"; an unknown one counts as info, since the
// configuration has checked it before.
func NewLogger(w io.Writer, service, level string) zerolog.Logger {
	lvl, err := zerolog.ParseLevel(level)
	if err != nil || lvl == zerolog.NoLevel {
		lvl = zerolog.InfoLevel
	}
	return zerolog.New(w).Level(lvl).With().Timestamp().Str("service", service).Logger()
}

// requestIDHeader names a request in the log and to the client.
const requestIDHeader = "X-Request-ID"

// requestIDPattern is the form of an id that is taken over from a client: nothing
// that could carry a name or a token into the log unseen by its length.
var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9-]{8,36}$`)

type requestIDKey struct{}

// AccessLog writes one line a request. The line has the route's pattern and nothing
// about the caller: no size either, since the answers of two readers differ by the
// lengths of their names. AccessLog also gives the request its id.
func AccessLog(log zerolog.Logger) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			start, id := time.Now(), requestID(r)
			w.Header().Set(requestIDHeader, id)
			r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
			ww := wrapWriter(w, r)
			defer func() { // also for a handler that aborts
				requestEvent(log.WithLevel(accessLevel(route(r), status(ww))), r).
					Str("method", method(r)).Str("route", route(r)).
					Int("status", status(ww)).
					Dur("duration_ms", time.Since(start)).
					Msg("request")
			}()
			next.ServeHTTP(ww, r)
		})
	}
}

// accessLevel keeps the probes that every few seconds find all well out of
// sight: they would drown what people did.
func accessLevel(route string, status int) zerolog.Level {
	switch route {
	case "/livez", "/readyz", "/health":
		if status < http.StatusInternalServerError {
			return zerolog.DebugLevel
		}
	}
	return zerolog.InfoLevel
}

// Recover answers a panic of a handler with 500 and logs it with its stack.
func Recover(log zerolog.Logger) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ww := wrapWriter(w, r)
			defer func() {
				v := recover()
				if v == nil {
					return
				}
				if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
					panic(v) // the handler cuts the connection this way
				}
				requestEvent(log.Error(), r).Interface("panic", v).
					Bytes("stack", debug.Stack()).Msg("handler panicked")
				if ww.Status() == 0 {
					WriteProblem(ww, r, Internal.New(""))
				}
			}()
			next.ServeHTTP(ww, r)
		})
	}
}

// requestEvent adds to e the ids by which a request is found again.
func requestEvent(e *zerolog.Event, r *http.Request) *zerolog.Event {
	if id, ok := r.Context().Value(requestIDKey{}).(string); ok {
		e = e.Str("request_id", id)
	}
	return e.Str("trace_id", TraceID(r.Context()))
}

func requestID(r *http.Request) string {
	if id := r.Header.Get(requestIDHeader); requestIDPattern.MatchString(id) {
		return id
	}
	return uuid.NewString()
}

// wrapWriter lets the middlewares share one wrapper around the writer.
func wrapWriter(w http.ResponseWriter, r *http.Request) middleware.WrapResponseWriter {
	if ww, ok := w.(middleware.WrapResponseWriter); ok {
		return ww
	}
	return middleware.NewWrapResponseWriter(w, r.ProtoMajor)
}

// status returns the status of the answer; a handler that wrote nothing said 200.
func status(w middleware.WrapResponseWriter) int {
	if w.Status() == 0 {
		return http.StatusOK
	}
	return w.Status()
}

// route returns the pattern that served r, so that neither a log line nor a
// metric holds a path that a client made up.
func route(r *http.Request) string {
	if rc := chi.RouteContext(r.Context()); rc != nil {
		if p := rc.RoutePattern(); p != "" {
			return p
		}
	}
	return "unmatched"
}

// method returns r's method, or "other" for one that is not defined.
func method(r *http.Request) string {
	if slices.Contains(methods, r.Method) {
		return r.Method
	}
	return "other"
}

// serverLog carries what net/http itself complains about, such as a broken
// TLS handshake or a header that is too long, into our log.
func serverLog(log zerolog.Logger) *stdlog.Logger {
	return stdlog.New(log.With().Str("part", "net/http").Logger(), "", 0)
}
