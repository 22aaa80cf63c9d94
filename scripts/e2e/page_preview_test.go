package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
	"github.com/cityconnect/cityconnect/scripts/internal/gatewaytest"
)

// A link to a report shows its title to who runs no script, and of an anonymous
// one not who filed it. Its reference number leads to it.
func TestPagePreviewAndReference(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	const name = "Kanari 7f3a91"
	in := draft(`Dark crossing "<b>" & 'corner'`)
	in.PrivacyLevel = "anonymous"
	report, err := c.signIn(name, "resident").CreateReport(t.Context(), in, "Idempotency-Key", uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	file(t, c.signIn("Ben", "resident"), "Something else")
	address := func(p *process) []string { return []string{strings.TrimPrefix(p.url(), "http://")} }
	gateway := gatewaytest.Start(t, address(c.report), address(c.notification))
	for _, visitor := range []*client.Client{c.Client, c.signIn(name, "resident")} {
		html := htmlAt(t, gateway.URL+"/reports/"+report.ID.String(), visitor.Token())
		for _, want := range []string{
			"<title>Dark crossing &#34;&lt;b&gt;&#34; &amp; &#39;corner&#39; · CityConnect</title>",
			`property="og:title" content="Dark crossing &#34;&lt;b&gt;&#34; &amp; &#39;corner&#39;"`,
			`property="og:description" content="Received · Street lights and signals · Jl. Asia Afrika 8`,
		} {
			if !strings.Contains(html, want) {
				t.Errorf("%s is not in the page:\n%s", want, html)
			}
		}
		if strings.Contains(html, "7f3a91") || strings.Contains(html, "<b>") {
			t.Errorf("the page without script says too much:\n%s", html)
		}
	}
	if html := htmlAt(t, gateway.URL+"/reports/"+uuid.NewString(), ""); strings.Count(html, "<title>") != 1 || !strings.Contains(html, "<title>CityConnect</title>") {
		t.Errorf("the page of no report:\n%s", html)
	}

	if html := htmlAt(t, gateway.URL+"/reports/"+report.ID.String()+"?lang=id", ""); !strings.Contains(html, `content="Diterima · Lampu jalan dan lampu lalu lintas · `) {
		t.Errorf("the page of a link in Indonesian:\n%s", html)
	}

	page := c.reader(nil).open("reports/"+report.ID.String(), browser.Width(360, 740))
	page.do(browser.See(".meta", "Number"))
	reference, err := browser.Ask[string](page.Tab, `document.querySelector('.meta code').textContent`)
	if err != nil || len(reference) != 9 {
		t.Fatalf("the reference number is %q (error: %v)", reference, err)
	}
	page.do(browser.Go(fmt.Sprintf("%s/?q=%s", c.gateway.URL, strings.ToLower(strings.Replace(reference, "-", " ", 1)))),
		browser.See(".card", "Dark crossing"), browser.Until(`document.querySelectorAll('.card').length === 1`))
	page.do(
		browser.Click(".card a", "Dark crossing"),
		browser.Until(`document.querySelector('a[href^="https://www.openstreetmap.org/directions?to="]')`),
		browser.Until(`(navigator.share = ({ url }) => (globalThis.shared = url), true)`),
		browser.Click("button", "Share"), browser.Until(`globalThis.shared === '`+c.gateway.URL+`/reports/`+report.ID.String()+`'`),
	)
	page.checkFaults()

	// An official who hears it on the telephone finds it, and sees that it is the one.
	desk := c.reader(c.signIn("Olga", "official")).open("queue?q="+reference, browser.Width(1280, 800))
	desk.do(browser.Click(".task a", "Dark crossing"), browser.See(".desk-detail .meta code", reference),
		browser.Until(`document.querySelectorAll('.task').length === 1`))
	desk.checkFaults()
}

// htmlAt returns the page as a browser gets it.
func htmlAt(t *testing.T, url, token string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %d, error %v", url, res.StatusCode, err)
	}
	return string(body)
}
