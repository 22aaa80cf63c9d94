package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/scripts/internal/gatewaytest"
)

// A client reads problem details whatever it sent, also where nginx answers by
// itself. Each type is documented, and the services' own have the same words.
func TestGatewayAnswersWithProblems(t *testing.T) {
	t.Parallel()
	g := start(t, []string{away}, []string{away})
	long := strings.Repeat("x", 9000)
	for _, tt := range []struct {
		name, request string
		status        int
		problem       string
	}{
		{"header of 9 kB", "GET /reports HTTP/1.1\r\nHost: a\r\nX-Z: " + long + "\r\n\r\n", 431, "header-too-large"},
		{"two Authorization headers", "GET /reports HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n", 400, "malformed-request"},
		{"URL of 9 kB", "GET /reports?" + long + " HTTP/1.1\r\nHost: a\r\n\r\n", 414, "uri-too-long"},
		{"broken escape", "GET /reports/%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed-request"},
		{"NUL in the path", "GET /reports/%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed-request"},
		{"lower-case method", "get /reports HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed-request"},
		{"no Host", "GET /reports HTTP/1.1\r\n\r\n", 400, "malformed-request"},
		{"two lengths", "POST /reports HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "malformed-request"},
		{"negative length", "POST /reports HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400, "malformed-request"},
		{"broken chunk", "POST /reports HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "malformed-request"},
		{"huge chunk", "POST /reports HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", 400, "malformed-request"},
		{"huge chunk of a photo", "PUT /reports/1/photos/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", 400, "malformed-request"},
		{"broken chunk of a photo", "PUT /reports/1/photos/1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "malformed-request"},
		{"broken chunk of borders", "PUT /reports/areas HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "malformed-request"},
		{"huge chunk later", "POST /reports HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\nffffffffffffffffff\r\n", 400, "malformed-request"},
		{"TRACE", "TRACE /reports HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method-not-allowed"},
		{"CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed-request"},
		{"unknown transfer coding", "POST /reports HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: zip\r\n\r\n", 501, "http-not-supported"},
		{"HTTP/2.0 in the request line", "GET /reports HTTP/2.0\r\nHost: a\r\n\r\n", 505, "http-not-supported"},
		{"stream with a broken escape", "GET /feed/stream/%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed-request"},
		{"stream with a body above 1 MiB", "POST /feed/stream HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n", 413, "body-too-large"},
		{"stream with a broken chunk", "POST /feed/stream HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "malformed-request"},
		{"body above 1 MiB", "POST /reports HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n", 413, "body-too-large"},
		{"things above 64 MiB", "PUT /reports/assets/lamps HTTP/1.1\r\nHost: a\r\nContent-Length: 68157441\r\n\r\n", 413, "body-too-large"},
		{"reports of before above 128 MiB", "POST /admin/reports/import HTTP/1.1\r\nHost: a\r\nContent-Length: 135266305\r\n\r\n", 413, "body-too-large"},
		{"photo above 12 MiB", "PUT /reports/1/photos/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 12582913\r\n\r\n", 413, "body-too-large"},
		{"no replica", "GET /reports HTTP/1.1\r\nHost: a\r\n\r\n", 503, "unavailable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res, body := g.send(t, tt.request)
			var p service.Problem
			if err := json.Unmarshal([]byte(body), &p); err != nil {
				t.Fatalf("got %d %v %q, want a problem (error: %v)", res.StatusCode, res.Header, body, err)
			}
			_, name, _ := strings.Cut(p.Type, "/docs/problems#")
			if res.StatusCode != tt.status || p.Status != tt.status || name != tt.problem || p.Title == "" {
				t.Errorf("got %d and %s, want %d and the problem %s", res.StatusCode, body, tt.status, tt.problem)
			}
			if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("Content-Type %q, want application/problem+json", got)
			}
			if got := res.Header.Get("X-Request-ID"); len(got) != 32 {
				t.Errorf("X-Request-ID %q, want the one in the log", got)
			}
			if allow, want := res.Header.Get("Allow"), tt.status == 405; (allow != "") != want {
				t.Errorf("Allow: %q, want it with 405 alone", allow)
			}
			if retry, want := res.Header.Get("Retry-After"), tt.status == 503; (retry != "") != want {
				t.Errorf("Retry-After: %q, want it with 503 alone", retry)
			}
		})
	}
}

// So does one whose body is malformed where the request is refused for another reason, or
// answered without its body.
func TestMalformedBodyOfARefusedRequest(t *testing.T) {
	t.Parallel()
	g := start(t, []string{away}, []string{away}, "GATEWAY_WRITES", "1")
	for range 100 {
		g.do(t, "POST", g.URL+"/reports", nil)
	}
	for _, line := range []string{"POST /reports", "PUT /reports/1/photos/1", "GET /metrics", "GET /gateway/livez", "POST /nowhere"} {
		res, body := g.send(t, line+" HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n")
		if res.Header.Get("Content-Type") != "application/problem+json" || !strings.HasPrefix(body, `{"type":"/docs/problems#`) {
			t.Errorf("%s: got %d %s, want a problem:\n%s", line, res.StatusCode, res.Header.Get("Content-Type"), body)
		}
	}
}

// The template's problems are those of the services and the manual.
func TestGatewayProblemsAreDocumented(t *testing.T) {
	t.Parallel()
	template := read(t, filepath.Join(gatewaytest.Folder(), "templates", "gateway.conf.template"))
	manual := read(t, "../../../docs/problems.md")
	found := regexp.MustCompile(`"type":"([^"]+#)([^"]+)","title":"([^"]+)"`).FindAllStringSubmatch(template, -1)
	if len(found) < 5 {
		t.Fatalf("the template has %d problems, want some", len(found))
	}
	shared := []service.ProblemType{service.MethodNotAllowed, service.BodyTooLarge, service.Unavailable}
	for _, problem := range found {
		base, name, title := problem[1], problem[2], problem[3]
		if !strings.Contains(manual, "\n## "+name+"\n") {
			t.Errorf("docs/problems.md has no section %q", name)
		}
		i := slices.IndexFunc(shared, func(p service.ProblemType) bool { return p.Name == name })
		if i >= 0 && (shared[i].URI() != base+name || shared[i].Title != title) {
			t.Errorf("%s is %q here, and %q of the services", base+name, title, shared[i].Title)
		}
	}
}

// send writes a request as it is, which net/http would not let out, and returns
// the answer with its whole body.
func (g gateway) send(t *testing.T, request string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(g.URL, "http://"))
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if _, err := fmt.Fprint(conn, request); err != nil {
		t.Fatalf("write request: %v", err)
	}
	method, _, _ := strings.Cut(request, " ")
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("read answer: %v", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("read answer: %v", err)
	}
	return res, string(body)
}
