package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// cityBounds are those of the map that comes with the project.
const cityBounds = "106.777,-6.604,106.934,-6.444"

// startCity returns a stack that has the map of Bogor, and for its page these
// settings, each a name and a value.
func startCity(t *testing.T, settings ...string) *stack {
	t.Helper()
	c := prepareStack(t)
	for _, p := range []*process{c.report, c.notification} {
		p.env["MAP_BOUNDS"] = cityBounds
		p.env["PAGE_MAP_FILE"] = filepath.Join(root(), "deploy", "map", "bogor.pmtiles")
		p.env["PAGE_MAP_CENTER"] = "106.7995,-6.5950,15"
	}
	for i := 0; i < len(settings); i += 2 {
		c.notification.env[settings[i]] = settings[i+1]
	}
	c.notification.start()
	c.report.start()
	c.awaitReady()
	return c
}

// inBogor returns a report at so many thousandths of a degree from the city's middle.
func inBogor(title string, east, north float64) client.NewReport {
	report := draft(title)
	report.Latitude, report.Longitude = new(-6.5950+north/1000), new(106.7995+east/1000)
	return report
}

// The map shows streets of the city, with whom they are owed to, and asks
// nobody else for them; a place on it becomes an address.
func TestPageMapOfTheCity(t *testing.T) {
	t.Parallel()
	c := startCity(t)
	page := c.reader(c.signIn("Ana", "resident")).open("new", browser.Width(360, 740))
	page.do(
		mapShown,
		browser.See(".attribution a", "OpenStreetMap contributors"),
		browser.Click(".maplibregl-canvas", ""),
		browser.See("[role=status]", "✓"),
		browser.Until(`[...document.querySelectorAll('label')].find((l) => l.textContent.includes('Address')).control.value !== ''`),
	)
	// A street is found by its name, on the map's own tiles.
	street, err := browser.Ask[string](page.Tab, `[...document.querySelectorAll('label')].find((l) => l.textContent.includes('Address')).control.value.split(',')[0]`)
	if err != nil || street == "" {
		t.Fatalf("the place has no street (error: %v)", err)
	}
	page.do(
		browser.Click("button", "Remove"), browser.See("[role=status]", "Move the map"),
		browser.Fill("Find a street", strings.ToLower(street)),
		browser.See(".place-search li button", street),
		browser.Enter(),
		browser.See("[role=status]", "✓"),
		browser.Until(`!document.querySelector('.place-search li') && document.querySelector('h2').textContent === 'Where is it?'`),
		browser.Until(`[...document.querySelectorAll('label')].find((l) => l.textContent.includes('Address')).control.value.includes(`+strconv.Quote(street)+`)`),
		browser.Fill("Find a street", "Champs Elysees"),
		browser.See(".place-search [role=status]", "Not on this part of the map"),
	)
	foreign, err := browser.Ask[[]string](page.Tab, `performance.getEntriesByType('resource').map((e) => new URL(e.name).origin).filter((o) => o !== location.origin && o !== 'null')`)
	if err != nil || len(foreign) > 0 {
		t.Errorf("the map asked %q (error: %v)", foreign, err)
	}
	page.checkFaults()
	req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, c.gateway.URL+"/map/city.pmtiles", http.NoBody))
	req.Header.Set("Range", "bytes=0-6")
	resp := must(http.DefaultClient.Do(req))
	defer func() { _ = resp.Body.Close() }()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusPartialContent || string(body) != "PMTiles" {
		t.Errorf("the file's first bytes: got %d %q (error: %v)", resp.StatusCode, body, err)
	}
}

// Nothing that comes later moves a map that is there: whoever is about to press a
// place on it would press another. A phone shows all of it, and what finds a place
// stands in one line.
func TestPageMapStaysInItsPlace(t *testing.T) {
	t.Parallel()
	c := startCity(t)
	ana := c.signIn("Ana", "resident")
	if _, err := ana.CreateReport(t.Context(), inBogor("A report", 1, 1)); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"?view=map", "new"} {
		page := c.reader(ana).open(address, browser.Width(390, 844), browser.InEachDocument(`
			globalThis.places = new Set();
			(function look() {
				const canvas = document.querySelector('.maplibregl-canvas');
				if (canvas && document.fonts.status === 'loaded') places.add(Math.round(canvas.getBoundingClientRect().top + scrollY));
				requestAnimationFrame(look);
			})()`))
		page.do(browser.Until(`document.querySelector('.map-canvas[data-drawn]') && document.querySelector('.place-search input:enabled')`))
		if places, err := browser.Ask[[]float64](page.Tab, `[...places]`); err != nil || len(places) != 1 {
			t.Errorf("%s: the map was drawn at %v (error: %v), want one place", address, places, err)
		}
		// Elements over the end of the window do not cover the map.
		covered, err := browser.Ask[bool](page.Tab, `(() => {
			const { left, right, bottom } = document.querySelector('.map').getBoundingClientRect();
			return !document.elementFromPoint((left + right) / 2, bottom - 2)?.closest('.map');
		})()`)
		if err != nil || covered {
			t.Errorf("%s: the map's end is covered (error: %v)", address, err)
		}
		page.checkFaults()
		if address == "new" {
			continue
		}
		ends, err := browser.Ask[[]float64](page.Tab, `['.map-find input', '.map-find > button'].map((s) => document.querySelector(s).getBoundingClientRect().bottom)`)
		if err != nil || len(ends) != 2 || ends[0] != ends[1] {
			t.Errorf("the field and the button beside it end at %v (error: %v)", ends, err)
		}
	}
}

// A report's page shows where it is, not the middle of the city.
func TestPageMapIsAroundItsReport(t *testing.T) {
	t.Parallel()
	c := startCity(t)
	ana := c.signIn("Ana", "resident")
	report, err := ana.CreateReport(t.Context(), inBogor("At the edge of the city", -15, 20))
	if err != nil {
		t.Fatal(err)
	}
	page := c.reader(ana).open("reports/"+report.ID.String(), browser.Width(390, 844))
	page.do(browser.Until(`document.querySelector('.map-canvas[data-drawn] .dot')`))
	apart, err := browser.Ask[[]float64](page.Tab, `(() => {
		const [map, dot] = ['.map-canvas', '.map-canvas .dot'].map((s) => document.querySelector(s).getBoundingClientRect());
		return [map.x + map.width / 2 - dot.x - dot.width / 2, map.y + map.height / 2 - dot.y - dot.height / 2].map(Math.abs);
	})()`)
	if err != nil || len(apart) != 2 || max(apart[0], apart[1]) > 2 {
		t.Errorf("the report is %v pixels from the middle of its map (error: %v)", apart, err)
	}
	page.checkFaults()
}

// Where the city has a geocoder an address is found by it, and a place is called
// after it. It learns what is looked for, and nothing of who looks; while it is
// away there are the map's own names.
func TestPageGeocoder(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	asked := make(chan *http.Request, 100)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		if away.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		number := map[bool]string{true: "7", false: "12"}[r.URL.Path == "/reverse"]
		fmt.Fprintf(w, `{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Point","coordinates":[106.8,-6.596]},
			"properties":{"geocoding":{"street":"Gang Rahasia","housenumber":%q,"city":"Bogor"}}}]}`, number)
	}))
	t.Cleanup(far.Close)
	c := startCity(t, "GEOCODER_URL", far.URL+"/search")
	page := c.reader(c.signIn("Ana", "resident")).open("new", browser.Width(360, 740))
	address := func(has string) browser.Action {
		return browser.Until(`[...document.querySelectorAll('label')].find((l) => l.textContent.startsWith('Address')).control.value.includes(` + strconv.Quote(has) + `)`)
	}
	page.do(
		mapShown,
		browser.Fill("Find an address", "gang rahasia 12"),
		browser.See(".place-search li button", "Gang Rahasia 12"),
		browser.Enter(),
		browser.See("[role=status]", "✓ Gang Rahasia 12"),
		address("Gang Rahasia 12, Bogor"),
		browser.Click(".maplibregl-canvas", ""),
		address("Gang Rahasia 7, Bogor"),
	)
	away.Store(true)
	page.do(
		browser.Fill("Find an address", "rahasia 99"),
		browser.See(".place-search [role=status]", "Nothing of that name"),
	)
	page.checkFaults()
	close(asked)
	for r := range asked {
		for _, name := range []string{"Authorization", "Cookie", "X-Forwarded-For", "Forwarded", "Referer", "X-Request-Id"} {
			if r.Header.Get(name) != "" {
				t.Errorf("the geocoder was sent %s: %s", name, r.Header.Get(name))
			}
		}
	}
}

// A position outside of the city is refused, with the bounds in words; on the
// page a device that is elsewhere gets a message.
func TestPositionOutsideOfTheCity(t *testing.T) {
	t.Parallel()
	c := startCity(t)
	ana := c.signIn("Ana", "resident")
	_, err := ana.CreateReport(t.Context(), draft("In another city"), "Idempotency-Key", uuid.NewString())
	problem, ok := errors.AsType[*client.Error](err)
	if !ok || problem.Status != http.StatusBadRequest {
		t.Fatalf("a report in Bandung: got %v, want 400", err)
	}
	if len(problem.Errors) != 1 || problem.Errors[0].Pointer != "/latitude" {
		t.Errorf("errors %+v, want one at /latitude", problem.Errors)
	}
	if _, err := ana.CreateReport(t.Context(), inBogor("In the city", 0, 0), "Idempotency-Key", uuid.NewString()); err != nil {
		t.Errorf("a report in Bogor: %v", err)
	}
}

// The map shows the whole city and not the loaded list: in clusters from afar,
// one by one from near, and what matters of each in a popup.
func TestPageMapShowsAll(t *testing.T) {
	t.Parallel()
	c := startCity(t)
	ana := c.signIn("Ana", "resident")
	for i := range 160 {
		in := inBogor(fmt.Sprintf("Report %d", i), float64(i%16)/4, float64(i/16)/4)
		if _, err := ana.CreateReport(t.Context(), in, "Idempotency-Key", uuid.NewString()); err != nil {
			t.Fatal(err)
		}
	}
	page := c.reader(nil).open("", browser.Width(1280, 800))
	page.do(
		browser.Until(`document.querySelectorAll('.card').length === 20`),
		browser.Until(`[...document.querySelectorAll('.cluster')].reduce((sum, e) => sum + Number(e.textContent), 0) === 160`),
	)
	points, err := browser.Ask[int](page.Tab, `fetch('/map/points?zoom=16&bbox=106.7990,-6.5955,106.8001,-6.5944').then((r) => r.json()).then(({ points }) => points.length)`)
	if err != nil || points != 9 {
		t.Errorf("a square of the city has %d points (error: %v), want 9", points, err)
	}
	page.checkFaults()
}

// The map goes to what a search finds, to a street, and to the position of the
// device. On request the list has what the map shows, and no more. A person who
// cannot be located, or is elsewhere, sees a message.
func TestPageMapGoesThere(t *testing.T) {
	t.Parallel()
	c := startCity(t)
	ana := c.signIn("Ana", "resident")
	for title, away := range map[string]float64{"Dark crossing": 0, "Far lamp": 30} {
		if _, err := ana.CreateReport(t.Context(), inBogor(title, away, away), "Idempotency-Key", uuid.NewString()); err != nil {
			t.Fatal(err)
		}
	}
	page := c.reader(nil).open("", browser.Width(1280, 800), browser.Permission("geolocation", "denied"))
	cards := func(n int) browser.Action {
		return browser.Until(fmt.Sprintf(`document.querySelectorAll('.card').length === %d`, n))
	}
	onlyHere := browser.Click(".only-here", "Only reports in this area")
	page.do(
		cards(2), mapShown, browser.Until(`document.querySelectorAll('.map-canvas .dot').length === 1`),
		onlyHere, cards(1), browser.See(".card", "Dark crossing"),
		browser.Until(`(globalThis.area = new URLSearchParams(location.search).get('bbox'))`),
		onlyHere, cards(2), browser.Until(`!location.search.includes('bbox')`),
		browser.Fill("Search reports", "far lamp"), cards(1), inTheMiddle(".map-canvas .dot"),
		browser.Click("button", "Clear filters"), cards(2),

		browser.Click("button", "Near me"), browser.See(".map-find .fault", "could not get your location"),
		browser.Permission("geolocation", "granted"), deviceAt(-6.5900, 106.8050),
		browser.Click("button", "Near me"), inTheMiddle(".map-canvas .device"), browser.Until(`!document.querySelector('.map-find .fault')`),
		deviceAt(51.5, 0), browser.Click("button", "Near me"), browser.See(".map-find .fault", "not in the city"),

		browser.Fill("Find a street", "jalan"), browser.Click(".place-search li button", "Jalan"),
		browser.Until(`!document.querySelector('.place-search li')`),
		onlyHere, browser.Until(`(({ searchParams }) => searchParams.has('bbox') && searchParams.get('bbox') !== globalThis.area)(new URL(location.href))`),
	)
	page.checkFaults()
}

// inTheMiddle waits until something is in the middle of the map.
func inTheMiddle(selector string) browser.Action {
	return browser.Until(fmt.Sprintf(`((map, found) => found && Math.hypot(
		(map.left + map.right - found.left - found.right) / 2, (map.top + map.bottom - found.top - found.bottom) / 2) < 30
	)(document.querySelector('.map-canvas').getBoundingClientRect(), document.querySelector(%q)?.getBoundingClientRect())`, selector))
}

// deviceAt has the browser say where it is.
func deviceAt(latitude, longitude float64) browser.Action {
	return browser.Command(emulation.SetGeolocationOverride, emulation.SetGeolocationOverrideParams{
		Latitude: &latitude, Longitude: &longitude, Accuracy: new(10.0),
	})
}
