package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// Somebody reports abuse without an account, and an official finds it and hides the report. It
// leaves the open list of everybody else at once; whoever filed it sees why. Shown
// again with other words, it is there with those.
func TestPageModeration(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana, olga := c.signIn("Ana", "resident"), c.signIn("Olga", "official")
	report := file(t, ana, "Landlord Zebra")
	file(t, ana, "Dark crossing")
	address := "reports/" + report.ID.String()

	bens := c.reader(nil) // the neighbour who is named has no account
	page := bens.open(address)
	page.do(browser.Until(`document.querySelector('.story')`))
	before := ask[float64](t, page.Tab, `document.querySelector('.story').getBoundingClientRect().top`)
	page.do(browser.Click("button", "Report abuse"), browser.See("dialog h2", "Report abuse"))
	if after := ask[float64](t, page.Tab, `document.querySelector('.story').getBoundingClientRect().top`); after != before {
		t.Errorf("the page moved from %.0f to %.0f when the dialog opened", before, after)
	}
	page.do(
		browser.Click("dialog label", "private things"),
		browser.Fill("More about it", "My landlord"), browser.Click("dialog button", "Send"), browser.See(".toast", "Thank you"),
	)
	list, anas := bens.open(""), c.reader(ana).open("mine")
	list.do(live, browser.See(".card", "Landlord Zebra"))
	anas.do(live, browser.See(".card", "Landlord Zebra"))

	desk := c.reader(olga).open("queue/abuse")
	desk.do(
		browser.See(".rows", "My landlord"),
		browser.Click(".rows button", "Hide the report"), browser.Fill("Reason", "It names somebody"),
		browser.Click("dialog form button", "Hide the report"), browser.Until(`!document.querySelector('.rows a')`),
	)
	list.do(browser.Until(`[...document.querySelectorAll('.card')].every((card) => !card.textContent.includes('Zebra'))`), browser.See(".card", "Dark crossing"))
	anas.do(browser.See(".card", "It names somebody"))
	page.do(browser.Reload(), browser.See("h1", "no such report"))

	desk.do(
		browser.Go(c.gateway.URL+"/queue?status=all&hidden=1"), browser.Click(".task", "Landlord Zebra"),
		browser.Click("button", "Redact words"), browser.Fill("Title", "Landlord [name]"), browser.Fill("Reason", "A name"),
		browser.Click("dialog form button", "Redact"), browser.See("h2", "Landlord [name]"),
		browser.Click("button", "Show again"), browser.Until(`!document.querySelector('.task')`),
	)
	list.do(browser.See(".card", "Landlord [name]"))
	for _, tab := range []tab{page, list, anas, desk} {
		tab.checkFaults()
	}
}

// The screens of moderation are as free of faults as the others.
func TestPageModerationAccessible(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana, ben, olga := c.signIn("Ana", "resident"), c.signIn("Ben", "resident"), c.signIn("Olga", "official")
	hidden, suspect := file(t, ana, "Hidden with a title that is long enough for a phone to break its line"), file(t, ana, "Another one")
	move(t, olga, suspect, "rejected", "Not ours.")
	if err := olga.Do(t.Context(), http.MethodPut, fmt.Sprintf("/reports/%s/hidden", hidden.ID), map[string]string{"reason": "It names somebody"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := ben.Do(t.Context(), http.MethodPost, fmt.Sprintf("/reports/%s/abuse", suspect.ID), map[string]string{"reason": "spam", "text": "Again"}, nil); err != nil {
		t.Fatal(err)
	}
	c.checkScreens(
		look{"abuse", ben, "reports/" + suspect.ID.String(), []browser.Action{browser.Click("button", "Report abuse"), browser.See("legend", "What is wrong")}},
		look{"hidden, mine", ana, "mine", []browser.Action{browser.See(".card", "It names somebody")}},
		look{"hidden, one's own", ana, "reports/" + hidden.ID.String(), []browser.Action{browser.See(".note", "It names somebody")}},
		look{"hidden, an official's", olga, "reports/" + hidden.ID.String(), []browser.Action{browser.See("button", "Show again")}},
		look{"queue of hidden ones", olga, "queue?status=all&hidden=1&report=" + hidden.ID.String(), []browser.Action{browser.See("button", "Show again")}},
		look{"reported as abuse", olga, "queue/abuse", []browser.Action{browser.See(".rows", "Again")}},
		look{"redacting", olga, "reports/" + suspect.ID.String(), []browser.Action{browser.Click("button", "Redact words"), browser.See("label", "Note of")}},
	)
}
