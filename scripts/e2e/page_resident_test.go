package e2e

import (
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// A resident files a report in the page; another votes on it, changes their mind
// twice, and the reporter's page follows.
func TestPageReportAndVote(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	enter := c.reader
	ana := enter(c.signIn("Ana", "resident")).open("new", browser.Width(1280, 800))
	ana.do(mapShown, pinned)
	ana.do(filesLamp("Ana")...)
	ben := enter(c.signIn("Ben", "resident")).open("")
	ben.do(
		browser.Click("a", "Lamp is dark"),
		browser.Click("button", "Matters to me too"),
		browser.See("output", "1"),
	)
	ana.do(browser.See("output", "1"))
	ben.do(browser.Click("button", "Not urgent"), browser.See("output", "-1"))
	ana.do(browser.See("output", "-1"))
	ben.do(
		browser.Click("button", "Not urgent"), // again: withdraws
		browser.Until(`document.querySelector('output').textContent === '0'`),
		browser.Until(`!document.querySelector('.votes [aria-pressed=true]')`),
	)
	ana.checkFaults()
	ben.checkFaults()
}

// filesLamp files a report about a lamp, from the form's first step to the report as the
// resident of that name sees it.
func filesLamp(name string) []browser.Action {
	return []browser.Action{
		chosen("Street lights"),
		browser.Fill("What is wrong?", "Lamp is dark"),
		browser.Fill("Tell more", "Since <b>Monday</b>."),
		next,
		browser.Click("label.option", "Public"),
		browser.Click("button", "Send report"),
		filed,
		browser.See("h1", "Lamp is dark"),
		browser.See(".story", "Since <b>Monday</b>."),
		browser.See(".meta", "by "+name),
		browser.Until(`document.querySelector('.votes') && !document.querySelector('.votes button')`), // nobody votes on their own report
	}
}

// A resident's draft survives a reload, and a report that was sent into the void is
// filed once when the city is back.
func TestPageDraftSurvives(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	page := c.reader(c.signIn("Ana", "resident")).open("new", browser.Width(1280, 800))
	page.do(
		placeless,
		chosen("Graffiti"),
		browser.Fill("What is wrong?", "Paint on the bridge"),
		browser.Reload(),
		browser.Until(`document.querySelector('input[required]')?.value === 'Paint on the bridge'`),
		next,
		browser.Click("label.option", "Public"),
	)
	c.report.kill()
	page.do(
		browser.Click("button", "Send report"),
		browser.See("[role=status]", "No answer yet"),
		browser.Reload(),
		// While nobody answers: afterwards the page may be faster, and the button gone.
		browser.Click("button", "Send again now"),
	)
	c.report.start()
	page.do(filed, browser.See("h1", "Paint on the bridge"))

	var reports int
	if err := c.reportDB.QueryRow(t.Context(), `select count(*) from reports`).Scan(&reports); err != nil || reports != 1 {
		t.Errorf("filed %d times (error: %v), want once", reports, err)
	}
}

// A resident who reports nearby is offered the reports that are there already.
func TestPageDuplicates(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	known := file(t, c.signIn("Ben", "resident"), "Dark crossing")
	page := c.reader(c.signIn("Ana", "resident")).open("new", browser.Width(1280, 800))
	page.do(
		mapShown,
		pinned,
		browser.Click(".categories label", "Street lights"),
		browser.See("h2", "Already reported nearby?"),
		browser.See("section li", known.Title),
		// Between the category and the words, in sight.
		browser.Until(`document.querySelector('section li button').getBoundingClientRect().bottom < innerHeight`),
		browser.See("section li", "Jl. Asia Afrika 8"),
		browser.See("section li", "m away"),
		browser.Click("button", "Support it instead"),
		browser.See(".toast", "you follow this report"),
		browser.See("h1", known.Title),
		browser.See("output", "1"),
		browser.See("button[data-on=true]", "Following"),
	)
	page.checkFaults()
}

// An anonymous report shows its author to nobody but the author.
func TestPageAnonymous(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	enter := c.reader
	const name = "Canary-7f3a91"
	author := enter(c.signIn(name, "resident")).open("new", browser.Width(1280, 800))
	author.do(
		placeless,
		chosen("Animals"),
		browser.Fill("What is wrong?", "Dogs at the gate"),
		next,
		browser.Until(`!document.querySelector('[name=privacy]:checked')`), // neither is the usual one
		browser.Click("label.option", "Anonymous"),
		browser.See(".who-sees", "never your name"),
		browser.Click("button", "Send report"),
		filed,
		browser.See(".meta", "anonymously"),
		browser.See(".meta", "Filed by you"),
		browser.Click("nav a", "My reports"),
		browser.See(".card", "Dogs at the gate"),
	)
	for who, look := range map[string]struct{ role, address, selector string }{
		"another resident": {"resident", "", ".card"},
		"an official":      {"official", "queue", ".task"},
		"an operator":      {"operator", "", ".card"},
	} {
		page := enter(c.signIn("Somebody", look.role)).open(look.address)
		page.do(browser.See(look.selector, "Dogs at the gate"), browser.Click("a", "Dogs at the gate"), browser.See(".meta", "anonymously"))
		if html, err := browser.Ask[string](page.Tab, `document.documentElement.outerHTML`); err != nil || strings.Contains(html, name) {
			t.Errorf("%s's page shows the author (error: %v)", who, err)
		}
	}
}
