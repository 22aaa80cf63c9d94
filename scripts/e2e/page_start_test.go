package e2e

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// Whichever of the first requests fails, the page says what it lacks, and goes
// on when it can.
func TestPageStartsWithoutAnswers(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	file(t, c.signIn("Ana", "resident"), "Dark crossing")
	var away atomic.Value
	away.Store("")
	services := c.proxy()
	c.gateway = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == away.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		services.ServeHTTP(w, r)
	}))
	t.Cleanup(c.gateway.Close)
	for path, says := range map[string]string{
		"/config.json": ".not-started", "/session": ".not-started", "/reports": ".cards-box [role=alert]",
	} {
		away.Store(path)
		person := c.reader(nil)
		opened, err := person.Open("")
		if err != nil {
			t.Fatal(err)
		}
		page := tab{t, opened}
		page.do(browser.See(says, "busy or away"))
		away.Store("")
		// By the button, or by itself if that was sooner.
		page.do(browser.Until(`(document.querySelector('[role=alert] button')?.click(),
			document.querySelector('.card')?.textContent.includes('Dark crossing'))`))
		page.Close()
	}
	// Without categories there is no choice of them yet, and a way to get them.
	away.Store("/categories")
	page := c.reader(nil).open("new?step=2")
	page.do(browser.See("[role=alert]", "busy or away"))
	away.Store("")
	page.do(browser.Click("button", "Try again"), browser.See(".categories label", "Graffiti"))
}

// Without a network the page starts all the same and says what it lacks. What
// the services answered is not kept: it may be somebody's.
func TestPageStartsOffline(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana := c.signIn("Ana", "resident")
	report := file(t, ana, "Dark crossing")
	page := c.reader(ana).open("")
	page.do(browser.See(".card", "Dark crossing"), browser.Until(`(globalThis.ready ??= navigator.serviceWorker.ready.then(() => (globalThis.kept = true)), globalThis.kept)`))
	kept, err := browser.Ask[[]string](page.Tab, `caches.keys().then((names) => Promise.all(names.map((name) => caches.open(name).then((cache) => cache.keys()))))
		.then((all) => all.flat().map(({ url }) => new URL(url).pathname))`)
	if err != nil || len(kept) < 5 {
		t.Fatalf("the page keeps %q (error: %v)", kept, err)
	}
	for _, path := range kept {
		resp, err := http.Get(c.gateway.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.Header.Get("API-Version") != "" && resp.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s is an answer of a service, and is kept", path)
		}
	}
	c.gateway.CloseClientConnections()
	c.gateway.Close()
	page.do(
		browser.Go(c.gateway.URL+"/reports/"+report.ID.String()),
		browser.See(".not-started", "did not answer"),
		browser.See("button", "Try again"),
	)
}
