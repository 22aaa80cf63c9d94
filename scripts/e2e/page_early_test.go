package e2e

import (
	"testing"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// Requests made before the page's script is there are the ones whose answers the
// script takes. The list alone is fetched again, once the page is live, if something
// has happened since the page began, such as the report that is filed here.
func TestPageAsksEarly(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana := c.signIn("Ana", "resident")
	file(t, ana, "Dark crossing")
	page := c.reader(ana).open("")
	page.do(browser.See(".card", "Dark crossing"))
	asked, err := browser.Ask[map[string][]string](page.Tab, `Object.fromEntries(['/config.json', '/session', '/categories', '/reports'].map((path) =>
		[path, performance.getEntriesByType('resource').filter((e) => new URL(e.name).pathname === path)
			.map((e) => e.initiatorType + ' ' + e.name.slice(location.origin.length))]))`)
	if err != nil {
		t.Fatal(err)
	}
	for path, requests := range asked {
		early := "link " + path
		switch path {
		case "/reports":
			early += "?limit=20&brief=true&figures=true"
		case "/categories": // a link could not ask for a language
			early = "fetch /categories?include=retired"
		}
		for i, request := range requests {
			again := path == "/reports" && request == "fetch"+early[len("link"):]
			if i == 0 && request != early || i > 0 && !again {
				t.Errorf("%s: asked %q, want %q first and nothing else", path, requests, early)
			}
		}
		if len(requests) == 0 {
			t.Errorf("%s was not asked for", path)
		}
	}
}
