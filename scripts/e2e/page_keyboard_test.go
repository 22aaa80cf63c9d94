package e2e

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// The whole job by keyboard alone: sign in, file a report at a place on the
// map, vote as someone else, move it as an official, read of it.
func TestPageByKeyboard(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	enter := c.reader
	ana := enter(nil).open("")
	ana.signInByKeyboard("Ana", 0)
	ana.tabTo("nav a", "Report a problem")
	ana.do(browser.Enter(), browser.Until(`document.activeElement.tagName === 'H1'`), mapShown)
	ana.tabTo(".maplibregl-canvas", "")
	ana.do(browser.Press(kb.ArrowRight), browser.Press(kb.ArrowUp))
	ana.do(browser.See("[role=status]", "✓"))
	ana.tabTo("button.primary", "Next")
	ana.do(browser.Enter(), browser.Until(`document.activeElement.tagName === 'H2'`))
	ana.tabTo("input[name=category]", "")
	ana.do(browser.Press(" "))
	ana.tabTo("button.primary", "Next")
	ana.do(browser.Enter())
	ana.tabTo("input[required]", "")
	ana.do(browser.Insert("Hole in the road"))
	ana.tabTo("button.primary", "Next")
	ana.do(browser.Enter())
	ana.tabTo("input[name=privacy]", "")
	ana.do(browser.Press(kb.ArrowDown), browser.See(".who-sees", "never your name"))
	ana.tabTo("button", "Send report")
	ana.do(browser.Enter(), browser.Until(`document.activeElement.tagName === 'H1' && document.activeElement.textContent === 'Your report is filed'`))
	ana.tabTo("a.button", "See my report")
	ana.do(browser.Enter(), browser.See("h1", "Hole in the road"))

	ben := enter(nil).open("")
	ben.signInByKeyboard("Ben", 0)
	ben.tabTo("a", "Hole in the road")
	ben.do(browser.Enter(), browser.See("h1", "Hole in the road"))
	ben.tabTo("button", "Matters to me too")
	ben.do(browser.Press(" "), browser.See("output", "1"))

	olga := enter(nil).open("")
	olga.signInByKeyboard("Olga", 1)
	olga.tabTo("nav a", "Queue")
	olga.do(browser.Enter(), browser.See(".task", "Hole in the road"), browser.Press("j"), browser.Press("m"),
		browser.Until(`document.activeElement.matches('.desk-detail input[type=radio]')`), browser.Press(" "))
	olga.tabTo(".desk-detail textarea", "")
	olga.do(browser.Insert("On Thursday."))
	olga.tabTo("button", "Save")
	olga.do(browser.Enter(), browser.Until(`!document.querySelector('.task') && document.activeElement.tagName === 'H1'`))

	ana.do(browser.See(".meta .badge", "In progress"))
	ana.tabTo(".bell", "")
	ana.do(browser.Enter(), browser.See(".group", "On Thursday."), browser.Press(kb.Escape),
		browser.Until(`!document.querySelector('dialog') && document.activeElement.matches('.bell')`))
}

// signInByKeyboard signs in through the menu, with the so-manieth role.
func (p tab) signInByKeyboard(name string, role int) {
	p.t.Helper()
	p.tabTo(".tools button", "Menu")
	p.do(browser.Enter(), browser.See("dialog a", "Sign in"))
	p.tabTo("dialog a", "Sign in")
	p.do(browser.Enter(), browser.See("h1", "Sign in"))
	p.tabTo("form input", "")
	p.do(browser.Insert(name))
	p.tabTo("input[type=radio]", "")
	for range role {
		p.do(browser.Press(kb.ArrowRight))
	}
	p.tabTo("button.primary", "Sign in")
	p.do(browser.Enter(), browser.See(".who", name), live)
}

// tabTo presses Tab until what has the focus is of a kind and called name.
func (p tab) tabTo(selector, name string) {
	p.t.Helper()
	const most = 120
	for range most {
		p.do(browser.Press(kb.Tab))
		there, err := browser.Ask[bool](p.Tab, fmt.Sprintf(`document.activeElement.matches(%q) &&
			(document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent).includes(%q)`, selector, name))
		if err != nil {
			p.t.Fatal(err)
		}
		if there {
			return
		}
	}
	p.t.Fatalf("Tab does not lead to %s %q", selector, name)
}
