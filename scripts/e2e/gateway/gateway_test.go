package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// answer tells who was asked for what.
func answer(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s", name, r.URL, r.Header.Get("X-Forwarded-For"))
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	g := start(t, []string{serve(t, answer("reports"))}, []string{serve(t, answer("notifications"))})
	for path, want := range map[string]string{
		"/reports":                    "reports /reports",
		"/reports/1/vote?x=1":         "reports /reports/1/vote?x=1",
		"/reportsmore":                "notifications /reportsmore",
		"/categories":                 "reports /categories",
		"/open311/v2/services.json":   "reports /open311/v2/services.json",
		"/admin/outbox/stats":         "reports /admin/outbox/stats",
		"/dev/token":                  "reports /dev/token",
		"/report-service/health":      "reports /health",
		"/report-service/admin":       "notifications /report-service/admin",
		"/admin/dlq/stats":            "notifications /admin/dlq/stats",
		"/session":                    "notifications /session",
		"/health":                     "notifications /health",
		"/notifications/unread-count": "notifications /notifications/unread-count",
		"/":                           "notifications /",
	} {
		// What a client claims about its address is replaced.
		_, got := g.do(t, "GET", g.url+path, nil, "X-Forwarded-For", "192.0.2.1")
		if want += " 127.0.0.1"; got != want {
			t.Errorf("GET %s: asked %q, want %q", path, got, want)
		}
	}
}

// The gateway's log holds no query string, since people search for names.
func TestAccessLogKeepsNoQuery(t *testing.T) {
	t.Parallel()
	g := start(t, []string{serve(t, answer("reports"))}, []string{away})
	g.do(t, "GET", g.url+"/reports?q=canary", nil)
	g.do(t, "POST", g.url+"/reports?q=canary", strings.NewReader("canary"))
	g.client.CloseIdleConnections()
	g.stop() // every line is written then
	log, err := os.ReadFile(g.accessLog)
	if err != nil {
		t.Fatalf("read access log: %v", err)
	}
	if got := strings.Count(string(log), `"path":"/reports"`); got != 2 || strings.Contains(string(log), "canary") {
		t.Errorf("access log with %d requests, want 2, and without the query:\n%s", got, log)
	}
}

// A replica that dies over a request costs a reader nothing, and never makes
// the gateway send a write twice.
func TestRetryOnlyWhatIsIdempotent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method string
		status int
		asked  int32
	}{
		{"GET", 200, 2},
		{"POST", 503, 1},
		{"PATCH", 503, 1},
	} {
		t.Run(tt.method, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			replica := func(w http.ResponseWriter, _ *http.Request) {
				if asked.Add(1) == 1 {
					panic(http.ErrAbortHandler) // the first one asked dies
				}
			}
			g := start(t, []string{serve(t, replica), serve(t, replica)}, []string{away})
			res, body := g.do(t, tt.method, g.url+"/reports", nil)
			if res.StatusCode != tt.status || asked.Load() != tt.asked {
				t.Errorf("status %d after %d replicas, want %d after %d: %s", res.StatusCode, asked.Load(), tt.status, tt.asked, body)
			}
		})
	}
}

// A write that reached nobody goes to a replica that lives.
func TestWriteAvoidsReplicaThatIsAway(t *testing.T) {
	t.Parallel()
	g := start(t, []string{away, serve(t, answer("reports"))}, []string{away})
	for range 4 {
		if res, body := g.do(t, "POST", g.url+"/reports", strings.NewReader("{}")); res.StatusCode != 200 {
			t.Errorf("status %d, want 200: %s", res.StatusCode, body)
		}
	}
}

func TestProblemsOfTheGateway(t *testing.T) {
	t.Parallel()
	g := start(t, []string{away}, []string{away})
	for _, tt := range []struct {
		name, path string
		body       io.Reader
		status     int
	}{
		{"nobody answers", "/reports", strings.NewReader("{}"), 503},
		{"body too large", "/reports", strings.NewReader(strings.Repeat(" ", 1<<20+1)), 413},
	} {
		res, body := g.do(t, "POST", g.url+tt.path, tt.body)
		if res.StatusCode != tt.status || res.Header.Get("Content-Type") != "application/problem+json" ||
			!strings.Contains(body, fmt.Sprintf(`"status":%d`, tt.status)) {
			t.Errorf("%s: got %d %v %s, want a problem with status %d", tt.name, res.StatusCode, res.Header, body, tt.status)
		}
	}
}

// An error status would end a browser's EventSource for ever.
func TestStreamIsToldToComeBack(t *testing.T) {
	t.Parallel()
	g := start(t, []string{away}, []string{away})
	for _, path := range []string{"/notifications/stream", "/feed/stream"} {
		res, body := g.do(t, "GET", g.url+path, nil)
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" || !strings.HasPrefix(body, "retry: ") {
			t.Errorf("GET %s: got %d %v %q, want 200 and a retry", path, res.StatusCode, res.Header, body)
		}
	}
}

// Replicas that were all away for a moment get their streams back at once:
// none of them waits for the others to end.
func TestStreamsComeBackTogether(t *testing.T) {
	t.Parallel()
	replicas := freePorts(t, 2)
	g := start(t, []string{away}, replicas)
	for range 4 {
		if _, got := g.do(t, "GET", g.url+"/notifications/stream", nil); !strings.HasPrefix(got, "retry:") {
			t.Fatalf("got %q, want to be told when to come back", got)
		}
	}
	for _, addr := range replicas {
		serveAt(t, addr, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "event: ready\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
	}
	for n := range 20 {
		res, err := g.client.Get(g.url + "/notifications/stream")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		if line, _ := bufio.NewReader(res.Body).ReadString('\n'); line != "event: ready\n" {
			t.Errorf("stream %d: got %q, want it open", n, line)
		}
	}
}

// Every event passes at once and as it is, over plain HTTP/1.1 and over HTTP/2.
func TestStreamIsNotHeldBack(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{})
	g := start(t, []string{away}, []string{serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-seen: // only then comes the next one
			case <-r.Context().Done():
				return
			}
		}
	})})
	for url, proto := range map[string]string{g.url: "HTTP/1.1", g.tlsURL: "HTTP/2.0"} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", url+"/notifications/stream", nil)
		if err != nil {
			t.Fatalf("make request: %v", err)
		}
		req.Header.Set("Accept-Encoding", "gzip")
		res, err := g.client.Do(req)
		if err != nil {
			t.Fatalf("open stream: %v", err)
		}
		defer res.Body.Close()
		if res.Proto != proto || res.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: stream over %s with %v, want %s and no encoding", url, res.Proto, res.Header, proto)
		}
		readEvents(t, res.Body, seen)
	}
}

// readEvents reads three events, allowing each next one.
func readEvents(t *testing.T, body io.Reader, seen chan<- struct{}) {
	t.Helper()
	lines := bufio.NewScanner(body)
	for i := range 3 {
		if !lines.Scan() || lines.Text() != fmt.Sprintf("data: %d", i) {
			t.Fatalf("event %d: got %q (error: %v)", i, lines.Text(), lines.Err())
		}
		lines.Scan() // the empty line
		seen <- struct{}{}
	}
}

// A strong ETag must reach the client as it is: a weak one fails every If-Match.
func TestETagStaysStrong(t *testing.T) {
	t.Parallel()
	g := start(t, []string{serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"3"`)
		fmt.Fprintf(w, "%4000s", "{}")
	})}, []string{away})
	res, _ := g.do(t, "GET", g.url+"/reports/1", nil, "Accept-Encoding", "gzip")
	if got := res.Header.Get("ETag"); got != `"3"` {
		t.Errorf("ETag %s, want \"3\"", got)
	}
}
