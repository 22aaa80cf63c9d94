package e2e

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// phone is the size of the phone that most people have.
var phone = browser.Width(390, 844)

// A lamp is reported on a phone, with a photo, by nine taps of whoever is signed in, and by
// twelve of whoever signs in on the way. The place is that of the device; it, the words and
// the photo outlive the sign-in. What follows says the number, who is in charge and by when,
// also after a reload, and offers the open reports nearby: support for them is one tap.
func TestPageLampInFewTaps(t *testing.T) {
	t.Parallel()
	c := startCity(t)
	c.startPhotoWorker()
	neighbour, err := c.signIn("Ben", "resident").CreateReport(t.Context(), inBogor("Hole at the school", 2, 1), "Idempotency-Key", uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.signIn("Pavel", "operator").Do(t.Context(), http.MethodPut, "/reports/departments", map[string]any{
		"departments": []map[string]any{{"id": 7, "name": "Street lighting", "category_ids": []int{2}}},
	}, nil); err != nil {
		t.Fatal(err)
	}
	c.setTarget(2, 72)

	for _, signedIn := range []bool{true, false} {
		person, most := c.reader(nil), 12
		if signedIn {
			person, most = c.reader(c.signIn("Ana", "resident")), 9
		}
		page := person.open("", phone, browser.Permission("geolocation", "granted"), deviceAt(-6.5950, 106.7995))
		taps := 0
		tap := func(selector, name string) {
			taps++
			page.do(browser.Click(selector, name))
		}
		tap("nav a", "Report a problem")
		page.do(mapShown)
		tap("button", "Use my location")
		page.do(browser.See("[role=status]", "✓"))
		tap("button.primary", "Next")
		tap(".categories label", "Street lights")
		if !signedIn { // the other one's lamp is there
			page.do(browser.See(".card", "0 m away"), browser.Until(`(({ top, bottom }) => top >= 0 && bottom < innerHeight - 56)(document.querySelector('.support').getBoundingClientRect())`))
			tap("button", "None of these")
		}
		tap("label", "What is wrong?")
		page.do(browser.Insert("Lamp is dark"))
		taps++ // on the button that the browser's own dialog follows
		page.do(choosePicture("input[type=file]"), browser.Until(`document.querySelector('.chosen img')`))
		if signedIn {
			tap("button.primary", "Next")
		} else {
			tap("button", "Sign in to send")
			page.do(browser.See("h1", "Sign in"))
			tap("form label", "Name")
			page.do(browser.Insert("Maria"))
			tap("form button", "Sign in")
		}
		tap("label.option", "Anonymous")
		tap("button.primary", "Send report")
		page.do(browser.See("h1", "Your report is filed"))
		if taps > most {
			t.Errorf("signed in %t: %d taps, want %d at most", signedIn, taps, most)
		}
		for range 2 {
			page.do(
				browser.See("main strong", "Its number is"),
				browser.See("section p", "In charge: Street lighting."), browser.See("section strong", "The city intends to finish by"),
				browser.See(".rows li", neighbour.Title),
				browser.Reload(), live,
			)
		}
		if signedIn {
			page.checkAccessible("a report that was filed")
			page.checkNarrow("a report that was filed")
			page.do(browser.Click(".rows button", "Matters to me too"), browser.See(".rows button", "Supported"), browser.See(".rows li", "1 vote"))
		}
		page.do(browser.Click("a.button", "See my report"), browser.See("h1", "Lamp is dark"), shownPhotos("1"))
		page.checkFaults()
	}
	var placed int
	if err := c.reportDB.QueryRow(t.Context(), `select count(*) from reports where title = 'Lamp is dark' and abs(latitude + 6.5950) < 0.0001`).Scan(&placed); err != nil || placed != 2 {
		t.Errorf("%d reports are where the device was (error: %v), want 2", placed, err)
	}
	other := c.reader(c.signIn("Cleo", "resident")).open("filed/" + neighbour.ID.String())
	other.do(browser.See("h1", "no such report"))
}

// setTarget has the city intend to finish reports of a category within so many hours of
// a calendar that is always open.
func (c *stack) setTarget(category, hours int) {
	c.t.Helper()
	shifts := make([]map[string]string, 0, 7)
	for day := time.Sunday; day <= time.Saturday; day++ {
		shifts = append(shifts, map[string]string{"day": [...]string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}[day], "from": "00:00", "to": "24:00"})
	}
	err := c.signIn("Pavel", "operator").Do(c.t.Context(), http.MethodPut, "/reports/calendar", map[string]any{
		"zone": "Asia/Jakarta", "shifts": shifts, "holidays": []string{}, "targets": []map[string]int{{"category_id": category, "hours": hours}},
	}, nil)
	if err != nil {
		c.t.Fatal(err)
	}
}

// However somebody says where it is, the report has a place: by the pin of a map that
// nobody touched, without the device's help, from elsewhere, or by a street and a number
// that the map does not know. What a form lacks is said at the field, in the page's words.
func TestPageEveryWayToAPlace(t *testing.T) {
	t.Parallel()
	c := startCity(t)
	ana := c.reader(c.signIn("Ana", "resident"))
	page := ana.open("new", phone, browser.Permission("geolocation", "denied"))
	start := browser.Go(c.gateway.URL + "/new").Then(mapShown)
	const address = `[...document.querySelectorAll('label')].find((l) => l.textContent.includes('Address')).control.value`
	back := browser.Click("button", "Start over").Then(browser.Until(`document.querySelector('h2')?.textContent === 'Where is it?'`))
	page.do(
		start, pinned, browser.See("h2", "What is it about?"), browser.Back(), browser.See("[role=status]", "✓"), back,
		// The device does not say where it is, and the pin is there nevertheless.
		start, browser.Click("button", "Use my location"), browser.See("[role=status]", "could not get your location"),
		pinned, browser.Back(), browser.See("[role=status]", "✓"), back,
		// It is in Jakarta, and says so; the pin is in the city.
		browser.Permission("geolocation", "granted"), deviceAt(-6.2, 106.8),
		start, browser.Click("button", "Use my location"), browser.See("[role=status]", "outside of the city"),
		pinned, browser.Back(), browser.See("[role=status]", "✓"), back,
		start, browser.Click(".maplibregl-canvas", ""), browser.Until(address+` !== ''`),
	)
	street := ask[string](t, page.Tab, address+`.split(',')[0]`)
	page.do(
		back, start, browser.Fill("Find a street", street+" 77"), browser.See(".place-search", "does not know number 77"), browser.Enter(),
		browser.Until(address+`.startsWith(`+strconv.Quote(street+" 77")+`)`), browser.See("[role=status]", "✓"),
		next, chosen("Graffiti"),
		browser.Click("button.primary", "Next"), browser.See(".field .fault", "Please fill this in."),
		browser.Until(`document.activeElement.matches('[aria-invalid=true]')`),
		browser.Insert("Paint"), browser.Until(`!document.querySelector('.said-here')`),
		next, browser.Click("button", "Send report"), browser.See(".options .fault", "Please choose one."),
		browser.Press(kb.Tab),
	)
	page.checkFaults()
}

// The list of a phone begins in the upper third; a city without reports says what to do.
// Residents sort it by nearness, votes and changes.
func TestPageListForResidents(t *testing.T) {
	t.Parallel()
	c := startCity(t)
	page := c.reader(nil).open("", phone, browser.Permission("geolocation", "granted"), deviceAt(-6.5950, 106.7995))
	page.do(browser.See(".empty", "No reports yet"), browser.Click(".empty a", "Report a problem"), browser.See("h2", "Where is it?"), browser.Back())

	ben, cleo := c.signIn("Ben", "resident"), c.signIn("Cleo", "resident")
	for _, in := range []struct {
		title string
		east  float64
	}{{"Far", 20}, {"Near", 0.5}, {"Between", 3}} {
		report, err := ben.CreateReport(t.Context(), inBogor(in.title, in.east, 0), "Idempotency-Key", uuid.NewString())
		if err != nil {
			t.Fatal(err)
		}
		if in.title == "Far" {
			vote(t, cleo, report, "upvote")
		}
	}
	first := func(title string) browser.Action {
		return browser.Until(`document.querySelector('.card a')?.textContent === ` + strconv.Quote(title) + ` && document.querySelectorAll('.card').length === 3`)
	}
	page.do(
		browser.Go(c.gateway.URL), first("Between"),
		browser.Choose("Order", "Most votes"), first("Far"),
		browser.Choose("Order", "Near me"), first("Near"), browser.See(".card", "m away"),
	)
	for _, language := range []string{"en", "id"} {
		page.do(browser.Until(`(localStorage.setItem('cityconnect.language', `+strconv.Quote(language)+`), true)`), browser.Go(c.gateway.URL), first("Between"),
			browser.Until(`document.documentElement.lang === `+strconv.Quote(language)))
		top := ask[float64](t, page.Tab, `document.querySelector('.card').getBoundingClientRect().top`)
		if top > 844/3 {
			t.Errorf("%s: the first report begins at %.0f px of 844", language, top)
		}
		page.checkNarrow("the list in " + language)
	}
	page.checkFaults()
}
