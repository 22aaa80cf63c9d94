package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// keys is somebody at a keyboard, whose keys are counted.
type keys struct {
	tab
	pressed int
}

func (k *keys) press(each ...string) {
	k.t.Helper()
	for _, key := range each {
		k.pressed++
		k.do(browser.Press(key))
	}
}

// focusOn waits until the focus is in the row of a report.
func focusOn(title string) browser.Action {
	return browser.Until(fmt.Sprintf(`document.activeElement.closest('.task')?.querySelector('.task-title a')?.textContent.includes(%q)`, title))
}

// An official who empties the queue one by one needs three keys for each report;
// the focus goes to the next one by itself, and what it says stays in sight.
func TestPageWorkbenchByKeyboard(t *testing.T) {
	t.Parallel()
	const reports, most = 20, 61
	c := startStack(t)
	ana := c.signIn("Ana", "resident")
	for i := range reports {
		file(t, ana, fmt.Sprintf("Report %02d", i))
	}
	page := keys{tab: c.reader(c.signIn("Olga", "official")).open("queue", browser.Width(1366, 768))}
	page.do(browser.See(".task", "Report 19"))
	page.press("j")
	for i := range reports {
		page.do(focusOn(fmt.Sprintf("Report %02d", i)))
		page.press("m")
		page.do(browser.Until(`document.activeElement.matches('.desk-detail input[type=radio]')`),
			browser.See(".desk-detail h2", fmt.Sprintf("Report %02d", i)), onTop(".desk-detail .story"))
		page.press(" ", kb.Enter)
	}
	page.do(browser.See(".empty", "No reports here"), browser.Until(`document.activeElement.tagName === 'H1'`))
	c.checkStatuses("in_progress", reports)
	if page.pressed > most {
		t.Errorf("%d keys for %d reports, want %d at most", page.pressed, reports, most)
	}
	t.Logf("%d reports moved with %d keys", reports, page.pressed)
	page.checkFaults()
}

// Keys that come faster than answers wait for them: each is pressed where it would have
// been meant, and none is lost.
func TestPageWorkbenchTypedAhead(t *testing.T) {
	t.Parallel()
	const reports, most = 20, 61
	c := startStack(t)
	ana := c.signIn("Ana", "resident")
	for i := range reports {
		file(t, ana, fmt.Sprintf("Report %02d", i))
	}
	page := keys{tab: c.reader(c.signIn("Olga", "official")).open("queue", browser.Width(1366, 768), holdMoves)}
	page.do(browser.See(".task", "Report 19"))
	page.press("j")
	for range reports {
		page.press("m", " ", kb.Enter)
	}
	page.do(notListed("Report 00"))
	c.checkStatuses("pending", reports-1) // the first is moved, and not answered
	page.do(browser.Until(`globalThis.answer() || true`), browser.See(".empty", "No reports here"))
	c.checkStatuses("in_progress", reports)
	var moves int
	if err := c.reportDB.QueryRow(t.Context(), `select count(*) from status_history where from_status is not null`).Scan(&moves); err != nil || moves != reports {
		t.Errorf("%d moves (error: %v), want one for each of %d reports", moves, err, reports)
	}
	if page.pressed > most {
		t.Errorf("%d keys for %d reports, want %d at most", page.pressed, reports, most)
	}
	page.checkFaults()
}

// notListed waits until no row has a title; others may be perhaps of that report.
func notListed(title string) browser.Action {
	return browser.Until(fmt.Sprintf(`![...document.querySelectorAll('.desk-list .task a')].some((a) => a.textContent.trim() === %q)`, title))
}

// holdMoves keeps the answers to moves from the page until it calls answer.
var holdMoves = browser.InEachDocument(`
	const send = globalThis.fetch;
	const ended = new Promise((resolve) => { globalThis.answer = resolve; });
	globalThis.fetch = async (request) => {
		const response = await send(request);
		if (request.method === 'PATCH') await ended;
		return response;
	};`)

// An official who corrects two of the reports and adds a photo of the finished work to
// five needs no more keys: a key resolves a report with a photo, and another corrects.
func TestPageWorkbenchByKeyboardWithPhotos(t *testing.T) {
	t.Parallel()
	const reports, most = 20, 61
	c := startStack(t)
	ana := c.signIn("Ana", "resident")
	for i := range reports {
		file(t, ana, fmt.Sprintf("Report %02d", i))
	}
	page := keys{tab: c.reader(c.signIn("Olga", "official")).open("queue", browser.Width(1366, 768))}
	page.do(browser.See(".task", "Report 19"))
	for i := range reports {
		title := fmt.Sprintf("Report %02d", i)
		if i > 0 {
			page.do(focusOn(title))
		}
		if i%10 == 3 { // an arrow chooses another category
			page.press("e")
			page.do(browser.Until(`document.activeElement.matches('dialog select')`))
			page.press(kb.ArrowDown, kb.Enter)
			page.do(browser.Until(`!document.querySelector('dialog')`), focusOn(title))
		}
		if i%4 == 1 {
			page.press("p")
			page.do(browser.See(".desk-detail h2", title), chooseFinished, browser.Until(`document.querySelector('.status-form .chosen img')`))
		} else {
			page.press("m")
			page.do(browser.Until(`document.activeElement.matches('.desk-detail input[type=radio]')`), browser.See(".desk-detail h2", title))
			page.press(" ")
		}
		page.press(kb.Enter)
	}
	page.do(browser.See(".empty", "No reports here"))
	c.checkStatuses("in_progress", reports-5)
	c.checkStatuses("resolved", 5)
	var finished, corrected int
	err := c.reportDB.QueryRow(t.Context(), `select (select count(*) from photos where purpose = 'after'),
		(select count(*) from status_history where correction is not null)`).Scan(&finished, &corrected)
	if err != nil || finished != 5 || corrected != 2 {
		t.Errorf("%d photos of finished work and %d corrections (error: %v), want 5 and 2", finished, corrected, err)
	}
	if page.pressed > most {
		t.Errorf("%d keys for %d reports, want %d at most", page.pressed, reports, most)
	}
	t.Logf("%d reports moved with %d keys", reports, page.pressed)
	page.checkFaults()
}

// chooseFinished chooses a picture where a form asks for a photo of the finished work,
// as the browser's own dialog does.
var chooseFinished = choosePicture(".status-form input[type=file]")

// onTop waits until an element is in the window, and nothing covers it.
func onTop(selector string) browser.Action {
	return browser.Until(`((element) => {
		const { left, top, width, height } = element?.getBoundingClientRect() ?? { width: 0 };
		return width > 0 && element.contains(document.elementFromPoint(left + Math.min(width, 20) / 2, top + height / 2));
	})(document.querySelector('` + selector + `'))`)
}

// At a laptop an official sees a page of the queue. What is selected can be acted
// on wherever the list is scrolled to, the result is said, and there is a way back
// where the rules have one.
func TestPageDeskOfALaptop(t *testing.T) {
	t.Parallel()
	const reports, visible = 24, 15
	c := prepareStack(t)
	c.notification.env["CITY_LINKS"] = "privacy=https://example.org/p,imprint=https://example.org/i,accessibility=https://example.org/a,emergency=112"
	c.notification.start()
	c.report.start()
	c.awaitReady()
	ana := c.signIn("Ana", "resident")
	for i := range reports {
		file(t, ana, fmt.Sprintf("Report %02d", i))
	}
	page := keys{tab: c.reader(c.signIn("Olga", "official")).open("queue?status=all", browser.Width(1366, 768))}
	page.do(browser.See(".task", "Report 23"))
	rows := `[...document.querySelectorAll('.task')].filter((row) => {
		const { top, bottom } = row.getBoundingClientRect();
		const list = document.querySelector('.desk-list').getBoundingClientRect();
		return top >= list.top && bottom <= Math.min(list.bottom, innerHeight) && bottom - top <= 34;
	}).length`
	for _, language := range []string{"en", "id"} {
		page.do(browser.Until(fmt.Sprintf("(localStorage.setItem('cityconnect.language', %q), true)", language)), browser.Reload(), browser.See(".task", "Report 23"))
		if n, err := browser.Ask[int](page.Tab, rows); err != nil || n < visible {
			t.Errorf("%s: %d rows are in sight (error: %v), want %d", language, n, err, visible)
		}
		if inLine, err := browser.Ask[bool](page.Tab, `((boxes) => Math.max(...boxes.map(({ top }) => top)) < Math.min(...boxes.map(({ bottom }) => bottom)))(
			[...document.querySelectorAll('.work-filters > *')].map((e) => e.getBoundingClientRect()))`); err != nil || !inLine {
			t.Errorf("%s: the filters take more than one line (error: %v)", language, err)
		}
		if cell, err := browser.Ask[float64](page.Tab, `document.querySelector('.task-title').getBoundingClientRect().width`); err != nil || cell < 400 {
			t.Errorf("%s: a title has %v px (error: %v), want 400", language, cell, err)
		}
		if scrolls, err := browser.Ask[bool](page.Tab, `document.documentElement.scrollHeight > innerHeight`); err != nil || scrolls {
			t.Errorf("%s: the window scrolls besides the list (error: %v)", language, err)
		}
	}
	page.do(browser.Until("(localStorage.setItem('cityconnect.language', 'en'), true)"), browser.Reload(), browser.See(".task", "Report 23"))

	page.press("j")
	page.do(focusOn("Report 00"), browser.PressHolding(chromedp.ModifierCtrl, kb.End), focusOn("Report 23"))
	for i := range 5 {
		page.do(browser.PressHolding(chromedp.ModifierShift, kb.ArrowUp), focusOn(fmt.Sprintf("Report %d", 22-i)))
	}
	page.do(
		browser.See(".act-bar [role=status]", "6 selected"), onTop(".act-bar .primary"),
		browser.Press("m"), browser.Click("dialog .chip", "In progress"), browser.Click("dialog .primary", "6 reports"),
		browser.See(".act-bar [role=status]", "6 reports are now “In progress”"), onTop(".act-bar button"),
	)
	c.checkStatuses("in_progress", 6)
	page.do(browser.See(".act-bar button", "Undo"), browser.Press("u"), browser.See(".act-bar [role=status]", "6 reports are what they were before"), browser.See(".task", "Report 20"))
	c.checkStatuses("pending", reports)

	page.do(
		browser.Click(".found button", "Map"), browser.Until(`location.search.includes('map=1')`),
		browser.See(".queue-map .map-canvas", ""), browser.See(".task", "Report 00"),
		browser.Click(".found button", "Map"), browser.Until(`!document.querySelector('.queue-map')`),
	)

	// A resolved report is reopened with a note alone.
	page.do(
		browser.Click(".task a", "Report 00"), browser.Click(".desk-detail .chip", "Resolved"), browser.Click(".desk-detail button", "Save"),
		browser.See(".act-bar [role=status]", "“Report 00” is now “Resolved”"), browser.See(".act-bar", "There is no undo"),
	)
	c.checkStatuses("resolved", 1)
	page.checkFaults()

	phone := c.reader(c.signIn("Olga", "official")).open("queue", browser.Width(390, 844))
	phone.do(browser.Click(".task-select input", "Report 01"), browser.See(".act-bar [role=status]", "1 selected"), onTop(".act-bar .primary"))
	if small, err := browser.Ask[int](phone.Tab, `[...document.querySelectorAll('.workbench :is(button, select), .act-bar button')].filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 44).length`); err != nil || small > 0 {
		t.Errorf("%d controls are too small for a thumb (error: %v)", small, err)
	}
	phone.checkFaults()
}

// An official who opens another report before a move is answered stays there: the answer
// takes the focus nowhere, nor does the row that the event of the move, which may
// be faster, took out of the list.
func TestPageWorkbenchAnsweredLate(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana := c.signIn("Ana", "resident")
	for i := range 3 {
		file(t, ana, fmt.Sprintf("Report %d", i))
	}
	page := c.reader(c.signIn("Olga", "official")).open("queue", browser.Width(1280, 800), holdMoves)
	inForm := browser.Until(`document.activeElement.matches('.desk-detail input[type=radio]')`)
	page.do(
		browser.See(".task", "Report 2"), browser.Press("j"), focusOn("Report 0"),
		browser.Press("m"), inForm, browser.Press(" "), browser.Enter(),
		notListed("Report 0"),
		browser.Until(`!document.activeElement.closest('.desk-list')`),
		browser.Press("j"), browser.Click(".task a", "Report 1"), browser.See(".desk-detail h2", "Report 1"),
		browser.Until(`globalThis.answer() || true`), browser.See(".act-bar [role=status]", "“Report 0” is now “In progress”"),
		focusOn("Report 1"), browser.See(".desk-detail h2", "Report 1"),
		browser.Press("m"), inForm, browser.Press(" "), browser.Enter(), focusOn("Report 2"),
	)
	c.checkStatuses("in_progress", 2)
	page.checkFaults()
}

// All at once is five keys. What is refused is named with its reason, and stays
// selected.
func TestPageMovesMany(t *testing.T) {
	t.Parallel()
	const reports = 20
	c := startStack(t)
	ana, otto := c.signIn("Ana", "resident"), c.signIn("Otto", "official")
	var filed []string
	for i := range reports {
		report := file(t, ana, fmt.Sprintf("Report %02d", i))
		filed = append(filed, report.ID.String())
		if i == 7 {
			move(t, otto, report, "rejected", "Not ours.")
		}
	}
	page := keys{tab: c.reader(c.signIn("Olga", "official")).open("queue?status=all", browser.Width(1280, 800))}
	page.do(browser.See(".task", "Report 19"))
	page.press("j")
	page.do(focusOn("Report 00"), browser.PressHolding(chromedp.ModifierCtrl, "a"), browser.See("[role=status]", "20 selected"))
	page.press("m")
	page.do(browser.Until(`document.activeElement.matches('dialog input[type=radio]')`), browser.Click("dialog .chip", "In progress"))
	page.press(kb.Enter)
	page.do(
		browser.See("dialog [role=status]", "The status of 19 reports was changed"),
		browser.See("dialog li", "Report 07"),
		browser.See("dialog li", "cannot be moved"),
		browser.Until(`document.activeElement.matches('dialog button')`),
	)
	page.press(kb.Enter)
	page.do(
		browser.Until(`!document.querySelector('dialog')`),
		browser.Until(`[...document.querySelectorAll('.task[aria-selected=true]')].map((e) => e.dataset.task).join() === '`+filed[7]+`'`),
		browser.Until(`document.activeElement !== document.body`),
	)
	c.checkStatuses("in_progress", reports-1)
	page.do(browser.Click(".tabs a", "History"), browser.See(".rows li", "20 reports. 1 was not changed."))
	page.checkFaults()
}

func (c *stack) checkStatuses(status string, want int) {
	c.t.Helper()
	var got int
	if err := c.reportDB.QueryRow(c.t.Context(), `select count(*) from reports where status = $1`, status).Scan(&got); err != nil || got != want {
		c.t.Errorf("%d reports are %s (error: %v), want %d", got, status, err, want)
	}
}

// The table is one stop for Tab; arrows lead through its rows and columns, with
// shift they select.
func TestPageWorkbenchIsAGrid(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana := c.signIn("Ana", "resident")
	for i := range 4 {
		file(t, ana, fmt.Sprintf("Report %d", i))
	}
	page := c.reader(c.signIn("Olga", "official")).open("queue", browser.Width(1280, 800))
	page.do(browser.See(".task", "Report 3"))
	page.tabTo(".task a", "Report 0")
	column := func(name string) browser.Action {
		return browser.Until(`document.activeElement.dataset.column === '` + name + `'`)
	}
	page.do(
		browser.Press(kb.ArrowDown), focusOn("Report 1"), column("title"),
		browser.Press(kb.ArrowRight), column("status"),
		browser.Press(kb.ArrowDown), focusOn("Report 2"), column("status"),
		browser.Press(kb.End), column("score"),
		browser.Press(kb.Home), column("select"),
		browser.PressHolding(chromedp.ModifierCtrl, kb.End), focusOn("Report 3"),
		browser.PressHolding(chromedp.ModifierShift, kb.ArrowUp), focusOn("Report 2"),
		browser.See("[role=status]", "2 selected"),
		browser.Press(" "), browser.See("[role=status]", "1 selected"),
		browser.Press(kb.Escape), browser.Until(`!document.querySelector('.task[aria-selected=true]')`),
		browser.Until(`document.querySelectorAll('.tasks [tabindex="0"]').length === 1`),
		browser.Press(kb.Tab), browser.Until(`!document.activeElement.closest('.tasks')`),
	)
	page.checkFaults()
}

// An official's filters, and the report that is shown, are in the address: they are
// there after a reload, for a colleague who gets the address, and on the way back.
func TestPageWorkbenchAddress(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana, olga := c.signIn("Ana", "resident"), c.signIn("Olga", "official")
	file(t, ana, "Dark crossing")
	hole := file(t, ana, "Hole in the road")
	move(t, olga, hole, "resolved", "Filled.")
	page := c.reader(olga).open("queue", browser.Width(1280, 800))
	page.do(
		browser.See(".task", "Dark crossing"),
		browser.Click(".views button", "Resolved"),
		browser.Click(".task a", "Hole in the road"),
		browser.See(".desk-detail .acts", "Filled."),
		browser.Choose("Category", "Street lights"),
		browser.Choose("Order", "Newest first"),
		browser.Until(`['status=resolved', 'category=2', 'order=newest'].every((part) => location.search.includes(part))`),
		browser.Fill("Search reports", "hole"),
		browser.Until(`location.search.includes('q=hole')`),
		browser.Click(".task a", "Hole in the road"),
		browser.Until(`location.search.includes('report=`+hole.ID.String()+`')`),
		browser.Reload(),
		browser.See(".task", "Hole in the road"),
		browser.See(".desk-detail .acts", "Filled."),
		browser.Click("button", "Clear filters"),
		browser.Until(`!location.search.includes('q=')`),
		browser.Width(1600, 900), // where columns have headings
		browser.See("[aria-sort=descending]", "Filed"),
		browser.Click("[role=columnheader] a", "Filed"),
		browser.Until(`location.search.includes('order=oldest')`), browser.See("[aria-sort=ascending]", "Filed"),
		browser.Click("[role=columnheader] a", "Votes"),
		browser.Until(`location.search.includes('order=score')`), browser.See("[aria-sort=descending]", "Votes"),
	)

	phone := c.reader(olga).open("queue", browser.Width(390, 844))
	phone.do(
		browser.Click(".task a", "Dark crossing"),
		browser.See(".desk-detail h2", "Dark crossing"),
		browser.Until(`!document.querySelector('.tasks').checkVisibility() && document.activeElement.tagName === 'H2'`),
		browser.Back(),
		browser.See(".task", "Dark crossing"),
		focusOn("Dark crossing"),
		browser.Until(`!document.querySelector('.desk-detail').checkVisibility()`),
	)
	page.checkFaults()
	phone.checkFaults()
}

// Officials' work on a report is seen by officials alone, and an internal note does
// not look like one that everyone reads.
func TestPageInternalWork(t *testing.T) {
	t.Parallel()
	const secret = "The neighbour has complained before."
	c := startStack(t)
	ana, olga, oskar := c.signIn("Ana", "resident"), c.signIn("Olga", "official"), c.signIn("Oskar", "operator")
	original, report := file(t, ana, "Dark crossing"), file(t, ana, "Lamp is out")
	operators := c.reader(oskar).open("ops/departments")
	operators.do(
		browser.Click("button", "Add a department"),
		browser.Fill("Name", "Street lighting"),
		browser.Click(".chip", "Street lights"),
		browser.Click("button", "Save departments"),
		browser.See(".toast", "are saved"),
	)

	page := c.reader(olga).open("queue?report="+report.ID.String(), browser.Width(1280, 800))
	page.do(
		browser.See(".desk-detail .wrap", "Street lighting, by category"),
		browser.Press("n"),
		browser.Until(`document.activeElement.matches('textarea[data-internal]')`),
		browser.Insert(secret),
		browser.Click("button", "Add internal note"),
		browser.See(".acts .internal", secret),
		browser.Press(kb.Escape), focusOn("Lamp is out"),
		browser.Press("a"), browser.See("dialog h2", "Assign 1 report"), browser.Press(kb.Enter),
		browser.Until(`!document.querySelector('dialog')`), focusOn("Lamp is out"),
		browser.See(".task:focus-within .task-with", "Olga"),
		browser.See(".acts li", "you assigned it: Olga"),
		browser.Press("q"),
		browser.Until(`document.activeElement.matches('dialog textarea')`),
		browser.Insert("Which of the two lamps?"),
		browser.Click("dialog button.primary", "Send question"),
		browser.See(".task", "Waiting"),
		browser.See(".dialogue .said", "Which of the two lamps?"),
		browser.Click("button", "Withdraw the question"),
		browser.See(".acts li", "withdrew the question"),
		browser.See(".dialogue small", "Withdrawn"),
		browser.Click("summary", "Duplicates and moderation"),
		browser.Click("button", "Mark as duplicate"),
		browser.Click(".picker button", "Dark crossing"),
		browser.See(".acts li", "called it a duplicate"),
		browser.Choose("Assigned to", "Me (Olga)"),
		browser.Until(`document.querySelectorAll('.task').length === 1`),
	)
	page.do(browser.Go(c.gateway.URL+"/queue?report="+original.ID.String()), browser.See(".desk-detail a", "Duplicate 1"))

	// The reporter reads the question, and nobody else.
	for _, name := range []string{"Ana", "Ben"} {
		hidden := []string{"complained", "Street lighting"}
		if name != "Ana" {
			hidden = append(hidden, "two lamps")
		}
		public := c.reader(c.signIn(name, "resident")).open("reports/" + report.ID.String())
		public.do(browser.See("h1", "Lamp is out"), browser.Until(`!document.querySelector('[aria-busy=true]')`))
		html, err := browser.Ask[string](public.Tab, `document.documentElement.outerHTML`)
		for _, words := range hidden {
			if err != nil || strings.Contains(html, words) {
				t.Errorf("a resident's page has %q (error: %v)", words, err)
			}
		}
		public.checkFaults()
	}
	page.checkFaults()
}

// A template is written once and fills in the form of one report and of many.
func TestPageTemplates(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana, olga := c.signIn("Ana", "resident"), c.signIn("Olga", "official")
	report := file(t, ana, "Dark crossing")
	page := c.reader(olga).open("queue/templates", browser.Width(1280, 800))
	page.do(
		browser.Click("button", "Add a template"),
		browser.Fill("Name", "Crew"),
		browser.Choose("For the status", "In progress"),
		browser.Fill("Text", "A crew is on its way."),
		browser.Click("button", "Save templates"),
		browser.See(".toast", "are saved"),
		browser.Go(c.gateway.URL+"/queue?report="+report.ID.String()),
		browser.See(".desk-detail h2", "Dark crossing"),
		browser.Choose("Template", "Crew"),
		browser.Until(`document.querySelector('.desk-detail .chip input:checked')`),
		browser.Click("button", "Save"),
		browser.See(".empty", "No reports here"),
	)
	history := c.reader(ana).open("reports/" + report.ID.String())
	history.do(browser.See(".timeline", "A crew is on its way."))
	page.checkFaults()
}

// The filtered reports can be saved as CSV, and counted by period on one sheet of paper.
func TestPageExportAndNumbers(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana, olga := c.signIn("Ana", "resident"), c.signIn("Olga", "official")
	report := file(t, ana, "Dark crossing")
	move(t, olga, report, "resolved", "Mended.")
	file(t, ana, "Another one")
	page := c.reader(olga).open("queue", browser.Width(1280, 800))
	page.do(
		browser.See(".task", "Another one"),
		browser.Until(`(URL.createObjectURL = (blob) => (blob.text().then((text) => (globalThis.saved = text)), 'blob:none'),
			HTMLAnchorElement.prototype.click = () => {}, true)`),
		browser.Click("button", "Export as CSV"),
		browser.Until(`globalThis.saved?.includes('Another one') && !globalThis.saved.includes('Dark crossing')`),
		browser.Reload(),
		live,
		browser.Click(".tabs a", "Statistics"),
		browser.Until(`[...document.querySelectorAll('.sums tbody tr')].some((tr) => [...tr.querySelectorAll('td')].map((td) => td.textContent).join() === '2,1,0')`),
		browser.See("caption", "By department"), browser.See("dt", "Median time to resolve"),
	)
	for _, language := range []string{"en", "id"} {
		page.do(browser.Until(fmt.Sprintf("(localStorage.setItem('cityconnect.language', %q), true)", language)), browser.Reload(),
			browser.Until(fmt.Sprintf(`document.documentElement.lang === %q && document.querySelectorAll('.sums').length > 1`, language)))
		if sheets, err := page.Sheets(); err != nil || sheets != 1 {
			t.Errorf("%s: statistics take %d sheets (error: %v), want 1", language, sheets, err)
		}
	}
	page.checkFaults()
}

// The keys are explained, and those of a single letter can be switched off: who
// works by voice would press them by accident.
func TestPageKeysCanBeOff(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	file(t, c.signIn("Ana", "resident"), "Dark crossing")
	page := c.reader(c.signIn("Olga", "official")).open("queue", browser.Width(1280, 800))
	page.do(
		browser.See(".task", "Dark crossing"),
		browser.Press("?"),
		browser.See("dialog dd", "Write an internal note"),
		browser.Click("label.check", "Single-letter"),
		browser.Press(kb.Escape),
		browser.Until(`!document.querySelector('dialog')`),
		browser.Press("j"),
		browser.Press("?"),
		browser.Click("button", "Shortcuts"),
		browser.See("dialog dd", "Write an internal note"),
		browser.Press(kb.Escape),
		browser.Until(`!document.querySelector('dialog') && !document.querySelector('.task[data-current=true]')`),
	)
	page.checkFaults()
}
