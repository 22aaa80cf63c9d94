package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/scripts/internal/gatewaytest"
)

// answer tells who was asked for what.
func answer(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s%s", name, r.URL, r.Header.Get("X-Forwarded-For"), r.Header.Get("Traceparent"))
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	g := start(t, []string{serve(t, answer("reports"))}, []string{serve(t, answer("notifications"))})
	for path, want := range map[string]string{
		"/reports":                        "reports /reports",
		"/reports/1/vote?x=1":             "reports /reports/1/vote?x=1",
		"/reportsmore":                    "notifications /reportsmore",
		"/reports/export":                 "reports /reports/export",
		"/admin/dlq/export":               "notifications /admin/dlq/export",
		"/categories":                     "reports /categories",
		"/map/points?zoom=1":              "reports /map/points?zoom=1",
		"/map/assets?asset=lamps/L-7":     "reports /map/assets?asset=lamps/L-7",
		"/admin/reports/import":           "reports /admin/reports/import",
		"/admin/reports/settings":         "reports /admin/reports/settings",
		"/reports/assets/lamps/sheet":     "reports /reports/assets/lamps/sheet",
		"/map/city.pmtiles":               "notifications /map/city.pmtiles",
		"/open-data/reports.csv?q=x":      "reports /open-data/reports.csv?q=x",
		"/open311/v2/requests.xml?page=1": "reports /open311/v2/requests.xml?page=1",
		"/admin/outbox/stats":             "reports /admin/outbox/stats",
		"/admin/outbox/messages/1/story":  "reports /admin/outbox/messages/1/story",
		"/admin/messages/1/story":         "notifications /admin/messages/1/story",
		"/dev/token":                      "reports /dev/token",
		"/report-service/health":          "reports /health",
		"/report-service/admin":           "notifications /report-service/admin",
		"/metricsmore":                    "notifications /metricsmore",
		"/admin/dlq/stats":                "notifications /admin/dlq/stats",
		"/session":                        "notifications /session",
		"/health":                         "notifications /health",
		"/notifications/unread-count":     "notifications /notifications/unread-count",
		"/":                               "notifications /",
	} {
		// A client's claim about its address is replaced, and its trace dropped.
		_, got := g.do(t, "GET", g.URL+path, nil, "X-Forwarded-For", "192.0.2.1",
			"Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		if want += " 127.0.0.1"; got != want {
			t.Errorf("GET %s: asked %q, want %q", path, got, want)
		}
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
			res, body := g.do(t, tt.method, g.URL+"/reports", nil)
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
		if res, body := g.do(t, "POST", g.URL+"/reports", strings.NewReader("{}")); res.StatusCode != 200 {
			t.Errorf("status %d, want 200: %s", res.StatusCode, body)
		}
	}
}

// A photo reaches its replica while it is sent, so that none of it is kept by the
// gateway; as large as one may be.
func TestUploadPassesAsItComes(t *testing.T) {
	t.Parallel()
	const size, begin = 12 << 20, 100_000
	begun := make(chan struct{})
	g := start(t, []string{serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.CopyN(io.Discard, r.Body, begin/2)
		close(begun)
		rest, restErr := io.Copy(io.Discard, r.Body)
		if err != nil || restErr != nil {
			t.Errorf("read the body: %v, %v", err, restErr)
		}
		fmt.Fprint(w, begin/2+rest)
	})}, []string{away})
	body, client := io.Pipe()
	go func() {
		_, _ = client.Write(make([]byte, begin)) // a failure is that of the request
		select {
		case <-begun:
			_, _ = client.Write(make([]byte, size-begin))
		case <-time.After(eventually.Patience):
			t.Error("the replica gets nothing before all is sent")
		}
		_ = client.Close()
	}()
	req, err := http.NewRequestWithContext(t.Context(), "PUT", g.URL+"/reports/1/photos/1", body)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = size
	res, err := g.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 200 || string(got) != fmt.Sprint(size) {
		t.Errorf("got %d %q, error %v; want %d bytes to arrive", res.StatusCode, got, err, size)
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
	res, _ := g.do(t, "GET", g.URL+"/reports/1", nil, "Accept-Encoding", "gzip")
	if got := res.Header.Get("ETag"); got != `"3"` {
		t.Errorf("ETag %s, want \"3\"", got)
	}
}

// An answer with a long head passes, and one that is too long is a failure of
// that request alone: no client can make the gateway give up a replica.
func TestClientCannotTakeReplicasAway(t *testing.T) {
	t.Parallel()
	replica := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/reports" {
			length, _ := strconv.Atoi(r.URL.Query().Get("z")) // 0 without one
			w.Header().Set("Link", strings.Repeat("x", length))
		}
	})
	g := start(t, []string{replica, replica, replica}, []string{away})
	for range 20 {
		if res, _ := g.do(t, "GET", g.URL+"/reports?z=12000", nil); res.StatusCode != 200 {
			t.Errorf("an answer with a head of 12 kB: got %d, want 200", res.StatusCode)
		}
		g.do(t, "GET", g.URL+"/reports?z=100000", nil)
		if res, _ := g.do(t, "GET", g.URL+"/categories", nil); res.StatusCode != 200 {
			t.Fatalf("another client: got %d, want 200", res.StatusCode)
		}
	}
	for file, wants := range map[string]int{"../../../docker-compose.yml": 2, "../../stack.d/gateway.sh": 1} {
		if got := strings.Count(read(t, file), " max_fails=0;"); got != wants {
			t.Errorf("%s has max_fails=0 %d times, want %d", file, got, wants)
		}
	}
}

// A report's page and its data have the same address: a browser that opens it
// asks for HTML, the page's own script does not. What changes a report is never
// the page's.
func TestPageAtTheAddressOfItsData(t *testing.T) {
	t.Parallel()
	g := start(t, []string{serve(t, answer("reports"))}, []string{serve(t, answer("notifications"))})
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	const report = "/reports/0198c0de-0000-7000-8000-000000000001"
	for _, tt := range []struct{ method, path, accept, want string }{
		{"GET", "/reports/1", browser, "notifications"},
		{"GET", "/reports/1", "application/json", "reports"},
		{"GET", report, browser, "notifications"},
		{"GET", report, "application/json", "reports"},
		{"GET", report, "application/json, text/plain, */*", "reports"},
		{"GET", report, "application/problem+json", "reports"},
		{"GET", report, "*/*", "notifications"}, // what shows a link with its title
		{"HEAD", report, "*/*", ""},
		{"GET", report, "", "notifications"},
		{"GET", report, "text/*;q=0.9,*/*;q=0.8", "notifications"},
		{"GET", report + "?fbclid=x", "*/*", "notifications"},
		{"GET", report + "/", "*/*", "notifications"},
		{"GET", report + "/history", "*/*", "reports"},
		{"PATCH", report + "/status", "*/*", "reports"},
		{"GET", "/reports/export", "*/*", "reports"},
		{"GET", "/reports/1", "*/*", "reports"},
		{"GET", "/reports", "*/*", "reports"},
		{"POST", "/reports", browser, "reports"},
		{"DELETE", "/reports/1/vote", browser, "reports"},
	} {
		if _, got := g.do(t, tt.method, g.URL+tt.path, nil, "Accept", tt.accept); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s %s as %s: got %q from it, want %s", tt.method, tt.path, tt.accept, got, tt.want)
		}
	}
	for _, header := range [][]string{{"Authorization", "Bearer x"}, {"Sec-Fetch-Mode", "cors"}} { // a program that signs in, and the page's own script
		if _, got := g.do(t, "GET", g.URL+report, nil, append(header, "Accept", "*/*")...); !strings.HasPrefix(got, "reports") {
			t.Errorf("with %s: got %q from it, want the data", header[0], got)
		}
	}
	for _, accept := range []string{"*/*", "application/json"} {
		if res, _ := g.do(t, "GET", g.URL+report, nil, "Accept", accept); !strings.Contains(strings.Join(res.Header.Values("Vary"), ","), "Accept") {
			t.Errorf("as %s: Vary %q, want Accept", accept, res.Header.Values("Vary"))
		}
	}
}

// A report's page has its title and its preview without any script. Where there
// are none, such as while no replica answers, it is the page as it is.
func TestPageOfAReportNamesIt(t *testing.T) {
	t.Parallel()
	const (
		known, unknown = "0198c0de-0000-7000-8000-000000000001", "0198c0de-0000-7000-8000-000000000002"
		fragment       = `<title>Dark &lt;crossing&gt; <!--# echo var="remote_addr" --></title>`
	)
	reports := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/reports/"+known+"/preview" {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"status":404}`)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, fragment)
	})
	html, err := os.ReadFile("../../../notification-service/internal/web/dist/index.html")
	if err != nil {
		t.Fatal(err)
	}
	pages := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			t.Errorf("%s: the gateway asks for a compressed page, into which nothing can be put", r.URL.Path)
		}
		_, _ = w.Write(html)
	})
	g, broken := start(t, []string{reports}, []string{pages}), start(t, []string{away}, []string{pages})
	for _, tt := range []struct{ url, want string }{
		{g.URL + "/reports/" + known, fragment},
		{g.URL + "/reports/" + unknown, "<title>CityConnect</title>"},
		{g.URL + "/reports/abc", "<title>CityConnect</title>"},
		{broken.URL + "/reports/" + known, "<title>CityConnect</title>"},
	} {
		res, got := g.do(t, "GET", tt.url, nil, "Accept", "text/html", "Accept-Encoding", "gzip;q=0, identity")
		if res.StatusCode != http.StatusOK || strings.Count(got, "<title>") != 1 || !strings.Contains(got, tt.want) || !strings.Contains(got, `<div id="app">`) {
			t.Errorf("%s: got %d, want %s in it:\n%s", tt.url, res.StatusCode, tt.want, got)
		}
	}
	if res, got := g.do(t, "GET", g.URL+"/gateway/preview/reports/"+known, nil); got != "" {
		t.Errorf("the preview is at an address of its own: got %d %s, want nothing", res.StatusCode, got)
	}
}

// Lists come compressed to whom can read that. A report does not: it has an
// ETag, which If-Match must find as it is.
func TestListsAreCompressed(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`{"title":"Dark crossing"},`, 1000)
	g := start(t, []string{serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"7"`)
		_, _ = io.WriteString(w, long)
	})}, []string{away})
	for path, want := range map[string]string{"/reports": "gzip", "/map/points": "gzip", "/reports/1": "", "/reports/1/history": ""} {
		res, body := g.do(t, "GET", g.URL+path, nil, "Accept-Encoding", "gzip")
		if got := res.Header.Get("Content-Encoding"); got != want || want != "" && len(body) > len(long)/5 {
			t.Errorf("%s: got %q of %d bytes, want %q", path, got, len(body), want)
		}
		if want == "" && res.Header.Get("ETag") != `"7"` {
			t.Errorf("%s: the ETag became %q", path, res.Header.Get("ETag"))
		}
	}
	if res, body := g.do(t, "GET", g.URL+"/reports", nil, "Accept-Encoding", "identity"); res.Header.Get("Content-Encoding") != "" || body != long {
		t.Errorf("uncompressed: got %q of %d bytes", res.Header.Get("Content-Encoding"), len(body))
	}
}

// A replica that is frozen answers nothing. What the services answer in time is
// given up soon, and what may take as long as its client has longer.
func TestFrozenReplica(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	arrived := make(chan struct{}, 3)
	frozen := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		select {
		case <-goOn:
		case <-r.Context().Done():
		}
	}
	replica := serve(t, frozen)
	g := start(t, []string{replica}, []string{replica})
	patient := map[string]string{
		"/reports/export": "GET", "/admin/dlq/export": "GET",
		"/reports/" + aUUID + "/photos/" + aUUID: "PUT",
	}
	answers := make(chan string, len(patient))
	for path, method := range patient {
		go func() {
			res, _ := g.do(t, method, g.URL+path, strings.NewReader(map[string]string{"PUT": "file"}[method]))
			answers <- fmt.Sprintf("%s %s: %d", method, path, res.StatusCode)
		}()
		<-arrived
	}
	if res, body := g.do(t, "GET", g.URL+"/reports", nil); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Errorf("GET /reports: got %d %s, want 503 with Retry-After", res.StatusCode, body)
	}
	close(goOn)
	for range patient {
		if answer := <-answers; !strings.HasSuffix(answer, ": 200") {
			t.Errorf("%s, want 200: it was given up as soon as any other", answer)
		}
	}
	want := fmt.Sprintf("\nproxy_read_timeout %ds;\n", int(service.DefaultTimeout.Seconds())+2)
	if !strings.Contains(read(t, filepath.Join(gatewaytest.Folder(), "templates", "gateway.conf.template")), want) {
		t.Errorf("the template does not have%s, the time in which the services answer and a little", want)
	}
}

const aUUID = "0198c0de-0000-7000-8000-000000000001"
