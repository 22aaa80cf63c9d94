package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// longName has thirty letters, as names of people here have.
const longName = "Muhammad Rizky Pratama Wibowos"

// longReport is as long as the API allows, in words as people write them.
func longReport() client.NewReport {
	report := draft(strings.Repeat("Lampu penerangan jalan padam di simpang ", 5)[:200])
	report.Description = strings.Repeat("The whole crossing is dark after sunset, and children walk here. ", 61)
	report.Address = strings.Repeat("Jalan Raya Pajajaran nomor tiga puluh sembilan, ", 6)
	return report
}

// Every screen keeps its places in sight and its words whole: for each role, in
// a phone's, a tablet's and a desk's width, in both languages and both themes,
// with a name of thirty letters, 120 unread and texts of full length.
func TestPageHoldsLongTexts(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana := c.userOf("resident-ana", "resident")
	report, err := ana.CreateReport(t.Context(), longReport(), "Idempotency-Key", uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"resident-ana", "official-olga", "operator-oskar"} {
		c.publishVotes(id, []client.Report{report}, 120)
	}
	detail := "reports/" + report.ID.String()
	for role, screens := range map[string][]string{
		"resident": {"", "?view=map", detail, "new", "new?step=2", "new?step=3", "new?step=4", "mine", "settings"},
		"official": {"", "queue", "queue?status=all&from=2026-01-01&report=" + report.ID.String(), "queue/numbers", "queue/templates", "queue/moves", detail, "queue/abuse"},
		"operator": {"", "ops", "ops/queues", "ops/departments", "ops/calendar", "ops/webhooks", "ops/outbox", "ops/dead-letters", "ops/replays", "ops/email", "ops/schedules", "ops/audit", "ops/search?q=7KQ2-M9XB", "ops/messages/0198c0de-0000-7000-8000-000000000001", "ops/reconciliation"},
	} {
		id := map[string]string{"resident": "resident-ana", "official": "official-olga", "operator": "operator-oskar"}[role]
		user := c.As(id, token(jwt.MapClaims{"sub": id, "name": longName, "role": role}))
		page := c.reader(user).open("", browser.Width(360, 740), browser.Theme("dark"))
		page.do(unread("99+"))
		for i, address := range screens {
			for j, language := range []string{"en", "id"} {
				// Themes change colours and languages words, never each other's.
				theme := []string{"light", "dark"}[(i+j)%2]
				page.speak(language)
				page.do(browser.Go(c.gateway.URL+"/"+address), live, browser.Theme(theme), browser.Until(`!document.querySelector('[aria-busy=true]')`))
				for _, width := range []int{360, 820, 1280} {
					page.do(browser.Width(width, 740))
					page.checkWhole(fmt.Sprintf("%s at %q, %d px, %s", role, address, width, language))
				}
			}
		}
		page.checkFaults()
		page.Close()
	}
}

// speak sets the page's language from its next load on.
func (p tab) speak(language string) {
	p.t.Helper()
	p.do(browser.Until(fmt.Sprintf(`(localStorage.setItem('cityconnect.language', %q), true)`, language)))
}

// checkWhole fails the test if anything is beyond the window's edge, if the
// places are out of sight, or if a word is broken.
func (p tab) checkWhole(name string) {
	p.t.Helper()
	faults, err := browser.Ask[[]string](p.Tab, `(() => {
		const faults = [];
		const root = document.documentElement;
		if (root.scrollWidth > innerWidth) faults.push('the page is ' + root.scrollWidth + ' wide in a window of ' + innerWidth);
		for (const place of document.querySelectorAll('.top nav a')) {
			const { top, bottom, left, right } = place.getBoundingClientRect();
			if (top < 0 || bottom > innerHeight + 0.5 || left < 0 || right > innerWidth + 0.5) faults.push('out of sight: ' + place.textContent);
		}
		const isReadOut = (element) => element && (getComputedStyle(element).clipPath !== 'none' || isReadOut(element.parentElement));
		const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		while (walker.nextNode()) {
			const node = walker.currentNode;
			if (!node.parentElement.checkVisibility() || isReadOut(node.parentElement) || node.parentElement.closest('code, pre, .maplibregl-map')) continue;
			for (const { 0: word, index } of node.data.matchAll(/[\p{L}\p{N}]+/gu)) {
				const range = document.createRange();
				range.setStart(node, index);
				range.setEnd(node, index + word.length);
				const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
				if (lines.size > 1 && word.length < 25) faults.push('broken: ' + word);
			}
		}
		return faults;
	})()`)
	if err != nil {
		p.t.Fatal(err)
	}
	if len(faults) > 0 {
		p.t.Errorf("%s:\n%s", name, strings.Join(faults, "\n"))
	}
}

// Going back restores the page: what was loaded, the position in it, the link that
// was followed, and the map if it was shown.
func TestPageBackRestores(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana := c.signIn("Ana", "resident")
	for i := range 120 {
		file(t, ana, fmt.Sprintf("Report %03d", i))
	}
	page := c.reader(ana).open("", browser.Width(360, 740))
	cards := func(n int) browser.Action {
		return browser.Until(fmt.Sprintf(`document.querySelectorAll('.card').length === %d`, n))
	}
	page.do(cards(20))
	for n := 40; n <= 120; n += 20 {
		page.do(browser.Click("button", "Show more"), cards(n))
	}
	page.do(
		browser.Until(`(document.querySelectorAll('.card')[90].scrollIntoView({ block: 'center' }), true)`),
		browser.Click("a", "Report 029"),
		browser.See("h1", "Report 029"),
		browser.Until(`scrollY === 0 && document.title.startsWith('Report 029')`),
		browser.Back(),
		cards(120),
		browser.Until(`(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(document.activeElement.getBoundingClientRect())
			&& document.activeElement.textContent.includes('Report 029') && scrollY > 1000`),
	)
	page.do(
		browser.Until(`(scrollTo(0, 0), true)`),
		browser.Click("button", "Map"), mapShown, browser.Until(`document.querySelector('.map-canvas .dot')`),
		browser.Click(".map-canvas .dot", ""), browser.Click(".popup a", "Report"), browser.See("h1", "Report"),
		browser.Back(),
		browser.Until(`document.querySelector('.split[data-view=map]')`),
	)
	page.checkFaults()
}

// Links of before the page had real addresses still lead somewhere, and what
// leads nowhere says so.
func TestPageAddresses(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	report := file(t, c.signIn("Ana", "resident"), "Dark crossing")
	page := c.reader(nil).open("#/reports/" + report.ID.String())
	page.do(browser.See("h1", "Dark crossing"), browser.Until(`location.pathname.startsWith('/reports/') && location.hash === ''`))
	for address, heading := range map[string]string{
		"nowhere": "no such page", "reports/abc": "no such report", "reports/" + uuid.NewString(): "no such report", "queue": "Sign in",
	} {
		page.do(browser.Go(c.gateway.URL+"/"+address), browser.See("h1", heading))
	}
	page.do(browser.Go(c.gateway.URL+"/sign-in?to=//evil.example/x"), live)
	page.signIn("Ana", "Resident")
	page.do(browser.See("h1", "no such page"), browser.Until(`location.origin === `+fmt.Sprintf("%q", c.gateway.URL)))
}

// On paper there is what was to be read, and nothing to press: of a report, and of
// the queue with one that is open, which is a work order.
func TestPagePrints(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana, olga := c.signIn("Ana", "resident"), c.signIn("Olga", "official")
	report := file(t, ana, "Dark crossing")
	file(t, ana, "Another one")
	page := c.reader(ana).open("reports/" + report.ID.String())
	page.do(browser.See(".story", "Since Monday."))
	page.checkPrinted("Dark crossing", "Since Monday.", "Jl. Asia Afrika 8")
	desk := c.reader(olga).open("queue?report="+report.ID.String(), browser.Width(1280, 800))
	desk.do(browser.See(".task", "Another one"), browser.See(".desk-detail .story", "Since Monday."))
	desk.checkPrinted("Dark crossing", "Another one", "Since Monday.", "Jl. Asia Afrika 8", "Received")
}

// checkPrinted fails the test if these words are not on paper, or anything is that
// can be pressed.
func (p tab) checkPrinted(words ...string) {
	p.t.Helper()
	p.do(browser.Media("print"))
	printed, err := browser.Ask[string](p.Tab, `document.body.innerText`)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, want := range words {
		if !strings.Contains(printed, want) {
			p.t.Errorf("%q is not on paper", want)
		}
	}
	pressable, err := browser.Ask[[]string](p.Tab, `[...document.querySelectorAll('button, input, nav a, .map, .top > :not(.brand)')]
		.filter((e) => e.checkVisibility()).map((e) => e.outerHTML.slice(0, 80))`)
	if err != nil || len(pressable) > 0 {
		p.t.Errorf("on paper there is (error: %v): %q", err, pressable)
	}
}

// A card leads to its report wherever it is pressed, and at a desk a filter that is
// set moves nothing. A phone has no room for a way to clear what is not set.
func TestPageCardsAndFilters(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	file(t, c.signIn("Ana", "resident"), "Dark crossing")
	page := c.reader(nil).open("")
	for _, width := range []int{1024, 1280} {
		page.do(browser.Width(width, 740), browser.See(".card", "Dark crossing"))
		top := func() float64 {
			t.Helper()
			return ask[float64](t, page.Tab, `document.querySelector('.split').getBoundingClientRect().top + scrollY`)
		}
		before := top()
		page.do(browser.Choose("Status", "Received"), browser.Until(`location.search.includes('status=pending')`),
			browser.See("button", "Clear filters"))
		if after := top(); after != before {
			t.Errorf("%d px: the list is at %.0f with a filter and at %.0f without", width, after, before)
		}
		page.do(browser.Click("button", "Clear filters"), browser.Until(`!location.search.includes('status')`))
	}
	page.do(
		browser.See(".card", "Dark crossing"),
		browser.Until(`(({ right, bottom }) => {
			const pressed = document.elementFromPoint(right - 8, bottom - 8)?.closest('a');
			pressed?.click();
			return pressed;
		})(document.querySelector('.card').getBoundingClientRect())`),
		browser.See("h1", "Dark crossing"),
	)
	page.checkFaults()
}

// The bell of an official counts new reports, and nothing covers the queue for
// them; and with 120 unread its digits are beside each other.
func TestPageOfficialIsNotFlooded(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	olga := c.reader(c.signIn("Olga", "official")).open("queue")
	ana := c.signIn("Ana", "resident")
	for i := range 12 {
		file(t, ana, fmt.Sprintf("Report %d", i))
	}
	olga.do(unread("12"))
	if shown, err := browser.Ask[int](olga.Tab, `document.querySelectorAll('.toast').length`); err != nil || shown != 0 {
		t.Errorf("%d toasts for new reports (error: %v), want none", shown, err)
	}
	lines, err := browser.Ask[float64](olga.Tab, `(({ height }) => height)(document.querySelector('.bell .count').getBoundingClientRect())`)
	if err != nil || lines > 20 {
		t.Errorf("the count is %.0f px high (error: %v): its digits are one above the other", lines, err)
	}
}

// A dialog has the focus where one writes, or at its beginning; never on the
// button that closes it.
func TestPageDialogsFocus(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	file(t, c.signIn("Ana", "resident"), "Dark crossing")
	page := c.reader(c.signIn("Olga", "official")).open("queue")
	page.do(
		browser.Click(".task-select input", "Dark crossing"),
		browser.Click("button.primary", "Change status"),
		browser.Until(`document.activeElement.matches('dialog input[type=radio]')`),
		browser.Press("\x1b"),
		browser.Click(".tools button", "Menu"),
		browser.Until(`document.activeElement.matches('dialog h2')`),
	)
	page.checkFaults()
}

// While somebody reads further down, new reports wait above and push nothing.
func TestPageListDoesNotJump(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana := c.signIn("Ana", "resident")
	for i := range 30 {
		file(t, ana, fmt.Sprintf("Report %02d", i))
	}
	page := c.reader(ana).open("", browser.Width(360, 740))
	page.do(browser.See(".card", "Report 29"), browser.Until(`(scrollTo(0, 900), scrollY > 800)`))
	file(t, ana, "The newest")
	page.do(
		browser.See("button.fresh", "1 new report"),
		browser.Until(`![...document.querySelectorAll('.card')].some((card) => card.textContent.includes('The newest'))`),
		browser.Click("button.fresh", "1 new report"),
		browser.See(".card", "The newest"),
		browser.Until(`scrollY === 0`),
	)
	page.checkFaults()
}

// A vote that was pressed before signing in is cast afterwards, once; a report
// that was written before is there, and is not sent by itself.
func TestPageIdentityComesLast(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	report := file(t, c.signIn("Ben", "resident"), "Dark crossing")
	page := c.reader(nil).open("reports/" + report.ID.String())
	page.do(browser.Click("button", "Matters to me too"), browser.See("h1", "Sign in"))
	page.signIn("Ana", "Resident")
	page.do(browser.See("output", "1"), browser.See("button[aria-pressed=true]", "Matters"))

	second := c.reader(nil).open("new")
	second.do(
		mapShown, placeless, chosen("Graffiti"),
		browser.Fill("What is wrong?", "Paint on the bridge"),
		browser.Reload(), // as a phone that puts the tab away
		browser.Until(`document.querySelector('input[required]')?.value === 'Paint on the bridge'`), next,
		browser.Click("label.option", "Anonymous"),
		browser.Click("button.primary", "Sign in to send"), browser.See("h1", "Sign in"),
	)
	second.signIn("Maria", "Resident")
	second.do(browser.See("button.primary", "Send report"), browser.Until(`document.querySelector('[name=privacy]:checked')`))
	var filed int
	if err := c.reportDB.QueryRow(t.Context(), `select count(*) from reports where title = 'Paint on the bridge'`).Scan(&filed); err != nil || filed != 0 {
		t.Errorf("filed %d times before she sent it (error: %v)", filed, err)
	}
	second.do(browser.Click("button.primary", "Send report"), browser.See("h1", "Your report is filed"), browser.Click("a.button", "See my report"),
		browser.See("h1", "Paint on the bridge"), browser.See(".meta", "anonymously"))
}

// The list of one idle page costs little while a hundred reports come in.
func TestPageListIsLight(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana := c.signIn("Ana", "resident")
	page := c.reader(ana).open("")
	page.do(browser.See(".empty", "No reports"))
	began := time.Now()
	for i := range 100 {
		file(t, ana, fmt.Sprintf("Report %d", i))
	}
	page.do(browser.See(".card", "Report 99"))
	asked, err := browser.Ask[int](page.Tab, `performance.getEntriesByType('resource').filter((e) => new URL(e.name).pathname === '/reports').length`)
	// Every ten seconds at most, besides those of the start.
	if most := 4 + int(time.Since(began)/(10*time.Second)); err != nil || asked > most {
		t.Errorf("the list was asked for %d times (error: %v), want at most %d", asked, err, most)
	}
}
