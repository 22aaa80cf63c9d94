package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// A reader is somebody who looks at the page.
type reader struct {
	t *testing.T
	*browser.Person
}

// shell and chromium start the browsers of all tests, when the first asks for one:
// Chromium's headless shell, and for what that cannot do a whole Chromium. Readers
// share nothing in them: each has their own cookies and storage.
var (
	shell    = sync.OnceValues(func() (*browser.Browser, error) { return shared(browser.StartShell) })
	chromium = sync.OnceValues(func() (*browser.Browser, error) { return shared(browser.Start) })
)

func shared(start func(context.Context) (*browser.Browser, func(), error)) (*browser.Browser, error) {
	b, end, err := start(context.Background())
	if err == nil {
		endings <- end
	}
	return b, err
}

// endings end the browsers that were started.
var endings = make(chan func(), 2)

// reader lets a user into the page; nil is nobody.
func (c *stack) reader(user *client.Client) reader {
	c.t.Helper()
	return c.readerOf(shell, c.gateway.URL, user)
}

// readerOf lets a user into the page at an address, in one of the browsers.
func (c *stack) readerOf(started func() (*browser.Browser, error), address string, user *client.Client) reader {
	c.t.Helper()
	b, err := started()
	if err != nil {
		c.t.Fatalf("browser: %v", err)
	}
	token := ""
	if user != nil {
		token = user.Token()
	}
	person, err := b.Person(address, token)
	if err != nil {
		c.t.Fatalf("browser: %v", err)
	}
	c.t.Cleanup(person.Close)
	return reader{c.t, person}
}

// A tab shows the page to a reader.
type tab struct {
	t *testing.T
	*browser.Tab
}

// open opens the page at an address such as mine, and returns once it is
// live. At its end the test fails if anything went wrong in the page.
func (r reader) open(address string, first ...browser.Action) tab {
	r.t.Helper()
	opened, err := r.Open(address, first...)
	if err != nil {
		r.t.Fatalf("open the page: %v", err)
	}
	page := tab{r.t, opened}
	page.do(live)
	return page
}

// live is a page that hears of everything.
var live = browser.Until(`document.querySelector('.connection[data-state=live]')`)

// do does actions one after the other.
func (p tab) do(actions ...browser.Action) {
	p.t.Helper()
	if err := p.Do(actions...); err != nil {
		text, _ := browser.Ask[string](p.Tab, `location.href + '\n' + document.body.innerText`)
		p.t.Fatalf("in the browser: %v\nthe page shows:\n%s", err, text)
	}
}

// next goes to the next step of a report, which scrolls to its heading: a click
// before that would meet what has moved there.
var next = browser.Click("button.primary", "Next").Then(browser.Until(`document.activeElement.tagName === 'H2'`))

// chosen chooses a category, which opens the next step.
func chosen(category string) browser.Action {
	return browser.Click(".categories label", category).Then(browser.Until(`document.querySelector('form textarea') && document.activeElement.tagName === 'H2'`))
}

// pinned goes on from the first step with the place under the pin of a map that
// nobody has moved, and placeless without a place.
var (
	pinned    = answered("Use the place under the pin")
	placeless = answered("Go on without a place")
)

func answered(button string) browser.Action {
	return browser.Click("button.primary", "Next").Then(browser.Click("dialog button", button)).
		Then(browser.Until(`!document.querySelector('dialog[open]') && document.activeElement.tagName === 'H2'`))
}

// filed goes on from the page that follows a report to the report.
var filed = browser.See("h1", "Your report is filed").Then(browser.Click("a.button", "See my report"))

// unread waits until the bell counts as many.
func unread(count string) browser.Action {
	return browser.Until(`document.querySelector('.bell .count')?.textContent === '` + count + `'`)
}

// allRead waits until the bell counts nothing.
var allRead = browser.Until(`document.querySelector('.bell') && !document.querySelector('.bell .count')`)

// checkFaults fails the test if the page had an error, or tried what its
// policy forbids.
func (p tab) checkFaults() {
	p.t.Helper()
	faults, err := p.Faults()
	if err != nil {
		p.t.Fatal(err)
	}
	if len(faults) > 0 {
		p.t.Errorf("the page's own faults:\n%s", strings.Join(faults, "\n"))
	}
}

// ask evaluates JavaScript in a page, and ends the test if that fails.
func ask[T any](t testing.TB, tab *browser.Tab, expression string) T {
	t.Helper()
	v, err := browser.Ask[T](tab, expression)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
