package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/scripts/internal/gatewaytest"
)

// Where the gateway chooses a service by what a request says of itself, that service
// answers as the gateway meant it. Each row goes through nginx to the real services: a
// test of one side alone would not see that the other reads a header differently.
func TestGatewayAndServicesAgree(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	report := file(t, c.signIn("Ana", "resident"), "Dark crossing")
	pavel := c.userOf("pavel", "operator")
	gateway := gatewaytest.Start(t, addresses([]*process{c.report}), addresses([]*process{c.notification}), "GATEWAY_LIMITS", "off")
	tls := gatewaytest.Start(t, addresses([]*process{c.report}), addresses([]*process{c.notification}), "GATEWAY_LIMITS", "off", "GATEWAY_HTTPS_ORIGIN", "https://city.test")

	const page, problem, title = "text/html; charset=utf-8", "application/problem+json", `property="og:title" content="Dark crossing"`
	type row struct {
		path, contentType, contains string
		status                      int
		header                      []string
	}
	at := "/reports/" + report.ID.String()
	browser := []string{"Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", "Sec-Fetch-Mode", "navigate"}
	asJSON := []string{"Accept", "application/json"}
	rows := []row{
		{at, "application/json", `"title":"Dark crossing"`, 200, asJSON},
		{at, "application/json", `"title":"Dark crossing"`, 200, []string{"Accept", "application/json, text/plain, */*"}}, // axios
		{at, "application/json", `"title":"Dark crossing"`, 200, []string{"Accept", "*/*", "Sec-Fetch-Mode", "cors"}},     // a script of a page
		{at, "application/json", `"title":"Dark crossing"`, 200, []string{"Accept", "*/*", "Authorization", "Bearer " + pavel.Token()}},
		{at + "/history", "application/json", `"to_status":"pending"`, 200, browser[2:]},
		{at + "?lang=id", page, title, 200, []string{"Accept", "*/*"}},
		{at + "?lang=id", page, `content="Diterima · `, 200, []string{"Accept", "*/*"}},
		{at + "?fbclid=x", page, title, 200, nil},
		{at + "/", page, title, 200, nil},
		{"/reports/" + uuid.NewString(), page, "<title>CityConnect</title>", 200, nil},
		{"/reports", "application/json", "Dark crossing", 200, asJSON},
		{"/reports", "application/json", "Dark crossing", 200, nil},
		{"/reports", page, `<div id="app">`, 200, browser},
		{"/map/points?zoom=3&bbox=-180,-90,180,90", "application/json", `"points"`, 200, browser}, // which has no page
		{"/map/assets?asset=lamps/L-7", "application/json", `"assets"`, 200, browser},
		{"/mine", page, `<div id="app">`, 200, nil},
		{"/nowhere", page, `<div id="app">`, 404, browser},
		{"/nowhere", problem, "not-found", 404, []string{"Accept", "*/*"}},
		{"/reports/export", problem, "unauthenticated", 401, browser},
		{"/open-data/reports.csv", "text/csv; charset=utf-8", "Dark crossing", 200, browser},
		{"/open311/discovery.json", "application/json", "endpoints", 200, browser},
		{"/areas", "application/geo+json", "FeatureCollection", 200, browser},
		{"/admin/outbox/history", "application/json", `"replicas"`, 200, []string{"Authorization", "Bearer " + pavel.Token()}},
		{"/admin/workers/history", "application/json", `"replicas"`, 200, []string{"Authorization", "Bearer " + pavel.Token()}},
		{"/report-service/openapi.json", "application/json", `"/reports/{id}"`, 200, nil},
		{"/openapi.json", "application/json", `"/notifications/stream"`, 200, nil},
		{"/report-service/metrics", problem, "not-found", 404, nil},
	}
	// Those that show a link to a report with its title, as they asked for one.
	for _, header := range map[string][]string{
		"WhatsApp": {"Accept", "*/*", "User-Agent", "WhatsApp/2.23.20.0"},
		"Facebook": {"Accept", "*/*", "User-Agent", "facebookexternalhit/1.1", "Range", "bytes=0-524287"},
		"Telegram": {"User-Agent", "TelegramBot (like TwitterBot)"}, "Twitter": {"Accept", "*/*", "User-Agent", "Twitterbot/1.0"},
		"Mastodon": {"User-Agent", "http.rb/5.1.1 (Mastodon/4.2.1; +https://mastodon.example/)", "Date", "Sat, 28 Nov 2026 11:00:00 GMT"},
		"Slack":    {"Accept", "text/html"}, "a picture or anything": {"Accept", "image/webp,*/*;q=0.8"}, "XHTML": {"Accept", "application/xhtml+xml"},
		"a browser": browser, "a browser of old": {"Accept", "*/*", "Sec-Fetch-Mode", "navigate"}, "capitals": {"Accept", "TEXT/HTML"}, "curl": {"Accept", "*/*"},
	} {
		rows = append(rows, row{at, page, title, 200, header})
	}
	for _, r := range rows {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			res, body := askAt(t, gateway.Client, method, gateway.URL+r.path, r.header)
			if r.status == 200 && res.StatusCode == http.StatusPartialContent {
				res.StatusCode = 200
			}
			if res.StatusCode != r.status || res.Header.Get("Content-Type") != r.contentType || method == http.MethodGet && !strings.Contains(body, r.contains) {
				t.Errorf("%s %s with %q: got %d %s, want %d %s with %s:\n%.600s", method, r.path, r.header, res.StatusCode, res.Header.Get("Content-Type"), r.status, r.contentType, r.contains, body)
			}
		}
	}
	noRedirect := *tls.Client
	noRedirect.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if res, _ := askAt(t, &noRedirect, http.MethodGet, tls.URL+at+"?lang=id", nil); res.StatusCode != http.StatusPermanentRedirect || res.Header.Get("Location") != "https://city.test"+at+"?lang=id" {
		t.Errorf("without TLS: got %d to %s", res.StatusCode, res.Header.Get("Location"))
	}
	// A stream whose service is away asks its reader to return; another request does not wait.
	c.notification.terminate()
	if res, body := askAt(t, gateway.Client, http.MethodGet, gateway.URL+"/feed/stream", nil); res.StatusCode != 200 || !strings.HasPrefix(body, "retry: ") {
		t.Errorf("a stream without its service: got %d %s", res.StatusCode, body)
	}
}

// askAt sends a request with the header and no other, and returns the answer with its body.
func askAt(t *testing.T, by *http.Client, method, url string, header []string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := by.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}
