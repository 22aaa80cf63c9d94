package service_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/service"
)

// errDomain is of a kind that the service adds to those of package fault.
var errDomain = fault.New("gone", "no such report")

// newRouter is a service with every middleware, and a handler per outcome.
func newRouter(log zerolog.Logger, reg prometheus.Registerer) http.Handler {
	r := chi.NewRouter()
	r.Use(service.Trace, service.AccessLog(log), service.HTTPMetrics(reg), service.Recover(log), service.LimitBody(10, time.Minute, nil))
	r.NotFound(service.NotFoundHandler)
	r.MethodNotAllowed(service.MethodNotAllowedHandler)
	errs := service.Errors{Log: log, Problems: map[fault.Kind]service.ProblemType{"gone": service.NotFound}}
	handle := func(pattern string, err error) {
		r.Get(pattern, errs.Handle(func(http.ResponseWriter, *http.Request) error { return err }))
	}
	handle("/ok/{id}", nil)
	handle("/problem", fmt.Errorf("decode: %w", service.InvalidInput.New("bad", service.FieldError{Pointer: "/title", Detail: "missing"})))
	handle("/domain", fmt.Errorf("load: %w", errDomain))
	handle("/ours", errors.New("dial postgres://user:hunter2@db"))
	handle("/kind", fmt.Errorf("move: %w", &fault.Error{Kind: fault.Conflict, Msg: "already closed", Err: errors.New("ours")}))
	handle("/field", fault.NewInvalid("/note", "missing"))
	handle("/away", fmt.Errorf("select: %w", &pgconn.PgError{Code: "57P01", Message: "hunter2"}))
	r.Get("/panic", func(http.ResponseWriter, *http.Request) { panic("boom") })
	r.Post("/echo", errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, err = w.Write(body)
		}
		return err
	}))
	return r
}

func TestErrors(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	h := newRouter(zerolog.New(&logs), prometheus.NewRegistry())
	for _, tt := range []struct {
		method, path, body string
		status             int
		name, detail       string
	}{
		{"GET", "/problem", "", 400, "invalid-input", "bad"},
		{"GET", "/domain", "", 404, "not-found", "no such report"},
		{"GET", "/ours", "", 500, "internal", ""},
		{"GET", "/kind", "", 409, "conflict", "already closed"},
		{"GET", "/field", "", 400, "invalid-input", ""},
		{"GET", "/away", "", 503, "unavailable", "the database is away"},
		{"GET", "/panic", "", 500, "internal", ""},
		{"GET", "/nowhere", "", 404, "not-found", "no such path"},
		{"PUT", "/problem", "", 405, "method-not-allowed", ""},
		{"POST", "/echo", "elevenbytes", 413, "body-too-large", "the limit is 10 bytes"},
	} {
		r := httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var p service.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatalf("%s %s: answer %q: %v", tt.method, tt.path, w.Body, err)
		}
		if w.Code != tt.status || p.Status != tt.status || p.Detail != tt.detail || p.Title == "" ||
			p.Type != "/docs/problems#"+tt.name || len(p.TraceID) != 32 {
			t.Errorf("%s %s: got %d %+v", tt.method, tt.path, w.Code, p)
		}
		if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("%s %s: content type %q", tt.method, tt.path, got)
		}
		if allow := strings.Join(w.Header().Values("Allow"), " "); (w.Code == 405) != (allow == "GET HEAD") {
			t.Errorf("%s %s: Allow %q beside %d", tt.method, tt.path, allow, w.Code)
		}
		if !strings.Contains(logs.String(), p.TraceID) {
			t.Errorf("%s %s: the log does not know trace %s", tt.method, tt.path, p.TraceID)
		}
		if strings.Contains(w.Body.String(), "hunter2") || strings.Contains(w.Body.String(), "boom") {
			t.Errorf("%s %s: the answer tells what only the log may: %s", tt.method, tt.path, w.Body)
		}
	}
	if !strings.Contains(logs.String(), "boom") || !strings.Contains(logs.String(), "dial postgres") {
		t.Error("the cause of a 500 is not in the log")
	}
}

// A body whose length the client does not tell is cut off while it is read.
func TestBodyLimitWithoutLength(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(newRouter(zerolog.Nop(), prometheus.NewRegistry()))
	defer srv.Close()
	for body, want := range map[string]int{"tenbytes..": 200, "elevenbytes": 413} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL+"/echo", io.MultiReader(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%d bytes: got %d, want %d", len(body), resp.StatusCode, want)
		}
	}
}

// Two readers whose answers differ in size leave the same lines.
func TestAccessLogKeepsNoSizes(t *testing.T) {
	t.Parallel()
	line := func(answer string) string {
		var logs bytes.Buffer
		r := chi.NewRouter()
		r.With(service.AccessLog(zerolog.New(&logs))).Get("/session", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, answer)
		})
		request := httptest.NewRequest("GET", "/session", nil)
		request.Header.Set("X-Request-ID", "one-for-both")
		r.ServeHTTP(httptest.NewRecorder(), request)
		return regexp.MustCompile(`"duration_ms":[^,}]+`).ReplaceAllString(logs.String(), "")
	}
	if ann, ben := line("Ann"), line("Benedictus Maximilian"); ann != ben {
		t.Errorf("the log tells them apart:\n%s%s", ann, ben)
	}
}

// A client that promises a body and does not send it is answered all the same:
// at once by what needs none, and after the timeout by what reads it.
func TestBodyThatDoesNotCome(t *testing.T) {
	t.Parallel()
	errs := service.Errors{Log: zerolog.Nop()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("POST /echo", errs.Handle(func(_ http.ResponseWriter, r *http.Request) error {
		_, err := io.ReadAll(r.Body)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return service.RequestTimeout.New("")
		}
		return err
	}))
	limited := func(timeout time.Duration) http.Handler { return service.LimitBody(100, timeout, nil)(mux) }
	metrics, health := prometheus.NewRegistry(), service.NewHealth(zerolog.Nop(), service.Details{})
	public, operations := service.NewRouter("1.0.0", zerolog.Nop(), metrics, health), service.NewOperations(metrics, health)
	for _, tt := range []struct {
		server  http.Handler
		request string
		want    int
	}{
		{limited(time.Hour), "GET /livez", http.StatusNoContent},
		{limited(time.Hour), "GET /nowhere", http.StatusNotFound},
		{limited(50 * time.Millisecond), "POST /echo", http.StatusRequestTimeout},
		{public, "GET /livez", http.StatusOK},
		{public, "GET /nowhere", http.StatusNotFound},
		{operations, "GET /livez", http.StatusOK},
		{operations, "GET /readyz", http.StatusOK},
		{operations, "GET /health/detailed", http.StatusOK},
		{operations, "GET /metrics", http.StatusOK},
		{operations, "GET /nowhere", http.StatusNotFound},
		{operations, "POST /metrics", http.StatusMethodNotAllowed},
	} {
		t.Run(tt.request, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(tt.server)
			defer srv.Close()
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, tt.request+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n")
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("%v, want an answer", err)
			}
			if _ = res.Body.Close(); res.StatusCode != tt.want {
				t.Errorf("status %d, want %d", res.StatusCode, tt.want)
			}
		})
	}
}

// The limit of the body's arrival is none for the handler's work.
func TestBodyTimeoutEndsWithTheBody(t *testing.T) {
	t.Parallel()
	const timeout = 50 * time.Millisecond
	worked := make(chan error, 1)
	srv := httptest.NewServer(service.LimitBody(100, timeout, nil)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		select {
		case <-r.Context().Done():
		case <-time.After(3 * timeout):
		}
		worked <- r.Context().Err()
	})))
	defer srv.Close()
	resp, err := http.Post(srv.URL, "text/plain", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if err := <-worked; err != nil {
		t.Errorf("the handler's context ended: %v", err)
	}
}

// Nothing that a client says about itself, or asks for, is in a log line or a metric.
func TestAccessLogAndMetricsArePrivate(t *testing.T) {
	t.Parallel()
	const canary = "canary7f3a"
	var logs bytes.Buffer
	reg := prometheus.NewRegistry()
	h := newRouter(zerolog.New(&logs), reg)
	for _, path := range []string{"/ok/" + canary + "?q=" + canary, "/nowhere/" + canary, "/problem?" + canary} {
		for _, method := range []string{"GET", "CANARY7F3A"} {
			r := httptest.NewRequest(method, path, nil)
			for _, name := range []string{"Authorization", "Cookie", "X-Request-ID", "Traceparent", "Tracestate", "User-Agent", "Referer"} {
				r.Header.Set(name, canary+" "+canary)
			}
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	w := httptest.NewRecorder()
	service.MetricsHandler(reg).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))

	for name, text := range map[string]string{"log": logs.String(), "metrics": w.Body.String()} {
		if strings.Contains(strings.ToLower(text), canary) {
			t.Errorf("the %s shows what the client sent:\n%s", name, text)
		}
		if !strings.Contains(text, "/ok/{id}") || !strings.Contains(text, "unmatched") {
			t.Errorf("the routes are not in the %s:\n%s", name, text)
		}
	}
	if got := strings.Count(logs.String(), "\n"); got != 6 {
		t.Errorf("%d log lines for 6 requests", got)
	}
}

func TestTrace(t *testing.T) {
	t.Parallel()
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	for _, tt := range []struct {
		name, header string
		kept         bool
	}{
		{"valid", "00-" + id + "-00f067aa0ba902b7-01", true},
		{"a later version", "01-" + id + "-00f067aa0ba902b7-01-more", true},
		{"none", "", false},
		{"version 00 with more", "00-" + id + "-00f067aa0ba902b7-01-more", false},
		{"the forbidden version", "ff-" + id + "-00f067aa0ba902b7-01", false},
		{"upper case", "00-" + strings.ToUpper(id) + "-00f067aa0ba902b7-01", false},
		{"all zero", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", false},
		{"two", "00-" + id + "-00f067aa0ba902b7-01, 00-" + id + "-00f067aa0ba902b7-01", false},
	} {
		var trace, traceID string
		h := service.Trace(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			trace, traceID = service.TraceFrom(r.Context()), service.TraceID(r.Context())
		}))
		r := httptest.NewRequest("GET", "/", nil)
		for header := range strings.SplitSeq(tt.header, ", ") {
			r.Header.Add("Traceparent", header)
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		if (traceID == id) != tt.kept || len(trace) != 55 || !strings.HasPrefix(trace, "00-"+traceID+"-") || trace == tt.header {
			t.Errorf("%s: %q became %q", tt.name, tt.header, trace)
		}
	}
	if got := service.TraceFrom(context.Background()); len(got) != 55 {
		t.Errorf("without a request: %q", got)
	}
}

// OpenMetrics has a trace with the durations of requests. The other format
// has none, and no more buckets.
func TestMetricsNameTraces(t *testing.T) {
	t.Parallel()
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	reg := prometheus.NewRegistry()
	r := httptest.NewRequest("GET", "/ok/1", nil)
	r.Header.Set("Traceparent", "00-"+id+"-00f067aa0ba902b7-01")
	newRouter(zerolog.Nop(), reg).ServeHTTP(httptest.NewRecorder(), r)
	for accept, want := range map[string]bool{"application/openmetrics-text": true, "text/plain": false} {
		r, w := httptest.NewRequest("GET", "/metrics", nil), httptest.NewRecorder()
		r.Header.Set("Accept", accept)
		service.MetricsHandler(reg).ServeHTTP(w, r)
		var found, buckets int
		for line := range strings.Lines(w.Body.String()) {
			if !strings.HasPrefix(line, "http_request_duration_seconds_bucket{") {
				continue
			}
			buckets++
			if strings.Contains(line, `route="/ok/{id}"`) && strings.Contains(line, ` # {trace_id="`+id+`"} `) {
				found++
			}
		}
		if found == 1 != want || buckets != 14 {
			t.Errorf("%s: %d of %d buckets name the trace, want one of 14: %t\n%s", accept, found, buckets, want, w.Body)
		}
	}
}

// millisecondTime is that of a log line.
var millisecondTime = regexp.MustCompile(`"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)"`)

func TestNewLogger(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]int{"debug": 3, "info": 2, "error": 1, "nonsense": 2, "": 2} {
		var out bytes.Buffer
		log := service.NewLogger(&out, "report", level)
		log.Debug().Msg("m")
		log.Info().Msg("m")
		log.Error().Msg("m")
		if got := strings.Count(out.String(), `"service":"report"`); got != want {
			t.Errorf("level %q: %d lines, want %d", level, got, want)
		}
		if got := len(millisecondTime.FindAllString(out.String(), -1)); got != want {
			t.Errorf("%d of %d lines have a time with milliseconds:\n%s", got, want, &out)
		}
	}
}

// Probes that find all well are for debugging; whatever else is asked, and a
// probe that fails, everybody sees.
func TestAccessLogKeepsProbesQuiet(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		route  string
		status int
		want   string
	}{
		{"/readyz", http.StatusOK, `"level":"debug"`},
		{"/readyz", http.StatusServiceUnavailable, `"level":"info"`},
		{"/reports", http.StatusOK, `"level":"info"`},
	} {
		var out bytes.Buffer
		router := chi.NewRouter()
		router.With(service.AccessLog(zerolog.New(&out))).Get(tt.route, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tt.status) })
		router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", tt.route, nil))
		if !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s %d: %s, want %s", tt.route, tt.status, out.String(), tt.want)
		}
	}
}
