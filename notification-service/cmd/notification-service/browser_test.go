package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/sse"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/platform/testing/ssetest"
)

// page opens an EventSource and leaves it alone. It reports every event to the
// test.
const page = `<!doctype html><script>
let reported = Promise.resolve();
const report = (e) => { reported = reported.then(() => fetch('/seen', {method: 'POST', body: JSON.stringify(e)})); };
const stream = new EventSource('/notifications/stream');
for (const type of ['ready', 'notification', 'reset'])
  stream.addEventListener(type, (e) => report({Type: type, ID: e.lastEventId}));
stream.addEventListener('error', () => { if (stream.readyState === EventSource.CLOSED) report({Type: 'closed'}); });
</script>`

// A browser's own EventSource gets each notification once, through three rolling
// restarts of two replicas.
func TestBrowserSurvivesRollingRestarts(t *testing.T) {
	t.Parallel()
	chromium := findChromium(t)
	c := newCluster(t, rabbittest.Vhost(t), pgtest.Notification(t).Config().ConnString())
	g := newGateway(t, c.start(), c.start())
	p := c.publisher()
	browse(t, chromium, g.server.URL)
	g.waitFor(0) // it is ready

	sent := 0
	vote := func() {
		t.Helper()
		if err := p.vote(t.Context(), "ann"); err != nil {
			t.Fatal(err)
		}
		sent++
	}
	for range 3 {
		for _, r := range g.replicas {
			vote()
			if code := r.Stop(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			vote() // while the browser may be between two connections
			r.Start()
			vote()
		}
		g.waitFor(sent)
	}
	got, want := g.ledger.Count(), ssetest.Count{Received: int64(sent)}
	t.Logf("sent=%d %+v connects=%d", sent, got, g.readies.Load())
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The client of docs/stream.md gives up a connection that is accepted and never
// answered, and has another one.
func TestDocumentedClientLeavesMuteConnection(t *testing.T) {
	t.Parallel()
	chromium := findChromium(t)
	document, err := os.ReadFile("../../../docs/stream.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sample, _ := strings.Cut(string(document), "```js\n")
	sample, _, found := strings.Cut(sample, "```")
	if !found || !strings.Contains(sample, "45_000") {
		t.Fatal("docs/stream.md has no sample that waits 45 s")
	}
	sample = strings.ReplaceAll(sample, "45_000", "500") // as the test waits for it

	var streams atomic.Int64
	shown := make(chan string, 10)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<script type="module">
			const token = 'token', reload = () => {}, show = (n) => fetch('/shown', {method: 'POST', body: n.report_title});
			%s</script>`, sample)
	})
	mux.HandleFunc("POST /session", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /notifications", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"last_event_id":"v1.a.1"}`) })
	mux.HandleFunc("GET /notifications/stream", func(w http.ResponseWriter, r *http.Request) {
		if streams.Add(1) > 1 {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: notification\ndata: {\"report_title\":\"Pothole\"}\nid: v1.a.2\n\n")
			_ = http.NewResponseController(w).Flush() // the browser may have left
		}
		<-r.Context().Done()
	})
	mux.HandleFunc("POST /shown", func(_ http.ResponseWriter, r *http.Request) {
		title, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the page shows: %v", err)
		}
		select {
		case shown <- string(title):
		default: // the test has seen enough
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.CloseClientConnections)
	browse(t, chromium, server.URL)
	select {
	case title := <-shown:
		if title != "Pothole" {
			t.Errorf("the page shows %q, want the notification", title)
		}
	case <-time.After(eventually.Patience):
		t.Errorf("the page has opened %d streams and shows nothing", streams.Load())
	}
}

// findChromium returns the path of the headless shell, or of a whole Chromium, and
// skips the test where there is neither.
func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no chromium is installed; `make test` installs one")
	return ""
}

// browse opens the address in a browser for the test's time.
func browse(t *testing.T, chromium, address string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "browser") // not t.TempDir: see below
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--remote-debugging-port=0", // keeps it open
		"--user-data-dir="+dir, address)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its helpers too
		_ = cmd.Wait()                                      // killed, so this is an error
		// Helpers that are still ending may write to it for a moment.
		eventually.True(t, "the browser's folder is removed", func() bool { return os.RemoveAll(dir) == nil })
	})
}

// A gateway is one origin for the page and the replicas, as nginx is. It also
// takes the page's reports.
type gateway struct {
	t        *testing.T
	server   *httptest.Server
	replicas []*replica
	token    string

	ledger  ssetest.Ledger
	readies atomic.Int64
}

func newGateway(t *testing.T, replicas ...*replica) *gateway {
	t.Helper()
	g := &gateway{t: t, replicas: replicas, token: replicas[0].token("ann", "resident")}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(page)) // the browser asks again if it must
	})
	mux.HandleFunc("POST /seen", g.seen)
	mux.HandleFunc("GET /notifications/stream", g.pass)
	g.server = httptest.NewServer(mux)
	t.Cleanup(g.server.CloseClientConnections)
	return g
}

// pass hands a request to the first replica that takes it.
func (g *gateway) pass(w http.ResponseWriter, r *http.Request) {
	r.Header.Set("Authorization", "Bearer "+g.token) // in the place of a cookie
	for _, replica := range g.replicas {
		target, err := url.Parse(replica.URL(""))
		if err != nil {
			g.t.Error(err)
			return
		}
		failed := false
		proxy := &httputil.ReverseProxy{
			Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target); p.Out.Host = p.In.Host },
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
				failed = true // the replica is away
			},
			FlushInterval: -1,
		}
		if proxy.ServeHTTP(w, r); !failed {
			return
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write([]byte("retry: 200\n\n")) // as nginx answers while no replica does
}

// seen records an event that the page reports.
func (g *gateway) seen(_ http.ResponseWriter, r *http.Request) {
	var e sse.Event
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		g.t.Errorf("report of the page: %v", err)
	}
	if e.Type == "closed" {
		g.t.Error("the browser gave up")
	}
	g.ledger.Observe(e)
	if e.Type == sse.Ready {
		g.readies.Add(1)
	}
}

// waitFor waits until the page has had n notifications, at least the first
// ready event.
func (g *gateway) waitFor(n int) {
	g.t.Helper()
	eventually.True(g.t, "the page has the notifications", func() bool {
		return g.readies.Load() > 0 && g.ledger.Count().Received >= int64(n)
	})
}
