package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A client's claims about itself are replaced, unless the gateway's setting says that
// a proxy in that network stands before it.
func TestForwardedHeaders(t *testing.T) {
	t.Parallel()
	replica := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/reports" && r.URL.Path != "/health" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, r.Header.Get("X-Forwarded-For"), " ", r.Header.Get("X-Forwarded-Proto"))
	})
	for _, tt := range []struct {
		name, trusted, want, wantTLS string
		header                       []string
	}{
		{"nobody is trusted", "unix:", "127.0.0.1 http", "127.0.0.1 https",
			[]string{"X-Forwarded-For", "192.0.2.1", "X-Forwarded-Proto", "https"}},
		{"another network is trusted", "10.0.0.0/8", "127.0.0.1 http", "127.0.0.1 https",
			[]string{"X-Forwarded-For", "192.0.2.1", "X-Forwarded-Proto", "https"}},
		{"proxy that speaks TLS", "127.0.0.0/8", "192.0.2.1 https", "192.0.2.1 https",
			[]string{"X-Forwarded-For", "198.51.100.7, 192.0.2.1", "X-Forwarded-Proto", "https"}},
		{"proxy that does not", "127.0.0.0/8", "192.0.2.1 http", "192.0.2.1 http",
			[]string{"X-Forwarded-For", "192.0.2.1", "X-Forwarded-Proto", "http"}},
		{"client with IPv6", "127.0.0.0/8", "2001:db8:1:2:3:4:5:6 https", "2001:db8:1:2:3:4:5:6 https",
			[]string{"X-Forwarded-For", "2001:db8:1:2:3:4:5:6", "X-Forwarded-Proto", "https"}},
		{"proxy that says nothing", "127.0.0.0/8", "127.0.0.1 http", "127.0.0.1 https", nil},
		{"proxy that says nonsense", "127.0.0.0/8", "192.0.2.1 http", "192.0.2.1 https",
			[]string{"X-Forwarded-For", "192.0.2.1", "X-Forwarded-Proto", "gopher"}},
	} {
		g := start(t, []string{replica}, []string{away}, "GATEWAY_TRUSTED_PROXY", tt.trusted)
		if _, got := g.do(t, "GET", g.URL+"/reports", nil, tt.header...); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		if res, got := g.do(t, "GET", g.TLSURL+"/report-service/health", nil, tt.header...); got != tt.wantTLS || res.StatusCode != 200 {
			t.Errorf("%s, over TLS: got %d %q, want %q", tt.name, res.StatusCode, got, tt.wantTLS)
		}
	}
}

// With an address of its own over TLS, the gateway sends everybody there.
func TestRedirectToTLS(t *testing.T) {
	t.Parallel()
	g := start(t, []string{serve(t, answer("reports"))}, []string{away},
		"GATEWAY_HTTPS_ORIGIN", "https://city.example.org", "GATEWAY_TRUSTED_PROXY", "127.0.0.0/8")
	g.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, tt := range []struct {
		method, url string
		header      []string
		status      int
		location    string
	}{
		{"GET", g.URL + "/reports?q=a%20b", nil, 308, "https://city.example.org/reports?q=a%20b"},
		{"POST", g.URL + "/reports", nil, 308, "https://city.example.org/reports"},
		{"GET", g.URL + "/notifications/stream", nil, 308, "https://city.example.org/notifications/stream"},
		{"GET", g.URL + "/gateway/livez", nil, 200, ""},
		{"GET", g.TLSURL + "/reports", nil, 200, ""},
		{"GET", g.URL + "/reports", []string{"X-Forwarded-For", "192.0.2.1", "X-Forwarded-Proto", "https"}, 200, ""},
	} {
		res, _ := g.do(t, tt.method, tt.url, nil, tt.header...)
		if got := res.Header.Get("Location"); res.StatusCode != tt.status || got != tt.location {
			t.Errorf("%s %s %v: got %d %q, want %d %q", tt.method, tt.url, tt.header, res.StatusCode, got, tt.status, tt.location)
		}
	}
	if res, _ := g.send(t, "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n"); res.StatusCode != 400 {
		t.Errorf("malformed request: got %d, want 400", res.StatusCode)
	}
}

// Browsers keep to TLS once they came by it. On localhost they would do so for
// every other port too.
func TestStrictTransportSecurity(t *testing.T) {
	t.Parallel()
	g := start(t, []string{serve(t, answer("reports"))}, []string{away})
	for _, tt := range []struct {
		url, host, path, want string
	}{
		{g.TLSURL, "city.example.org", "/reports", "max-age=31536000"},
		{g.TLSURL, "city.example.org", "/session", "max-age=31536000"}, // a problem of the gateway's
		{g.TLSURL, "city.example.org", "/feed/stream", "max-age=31536000"},
		{g.TLSURL, "localhost:8443", "/reports", ""},
		{g.TLSURL, "127.0.0.1:8443", "/reports", ""},
		{g.URL, "city.example.org", "/reports", ""},
	} {
		res, _ := g.do(t, "GET", tt.url+tt.path, nil, "Host", tt.host)
		if got := res.Header.Get("Strict-Transport-Security"); got != tt.want {
			t.Errorf("%s at %s: got %q, want %q", tt.path, tt.host, got, tt.want)
		}
	}
}

// Every answer has these headers once, whoever made it.
func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	service := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	})
	bare := serve(t, answer("notifications"))
	g, down := start(t, []string{service}, []string{bare}), start(t, []string{away}, []string{away})
	for name, url := range map[string]string{
		"service that sets them": g.URL + "/reports",
		"service that does not":  g.URL + "/health",
		"stream":                 g.URL + "/feed/stream",
		"gateway":                g.URL + "/gateway/livez",
		"problem":                down.URL + "/reports",
		"stream to come back to": down.URL + "/feed/stream",
	} {
		res, _ := g.do(t, "GET", url, nil)
		for header, want := range map[string]string{
			"X-Content-Type-Options":       "nosniff",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := strings.Join(res.Header.Values(header), "|"); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
	}
}
