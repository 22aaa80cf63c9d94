package e2e

import (
	"fmt"
	"testing"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// Two residents talk about a report that is resolved and is not. Each sees at once
// what the other says, and nobody who said it without a name; what an official
// hides leaves the other's screen.
func TestPageComments(t *testing.T) {
	t.Parallel()
	c := startStackWithComments(t)
	ana, ben, olga := c.signIn("Ana", "resident"), c.signIn("Ben", "resident"), c.signIn("Olga", "official")
	in := draft("Dark crossing")
	in.PrivacyLevel = "anonymous"
	report := must(ana.CreateReport(t.Context(), in))
	move(t, olga, report, "resolved", "Done.")
	address := "reports/" + report.ID.String()

	anas, bens, desk := c.reader(ana).open(address, browser.Width(360, 740)), c.reader(ben).open(address), c.reader(olga).open(address)
	for _, page := range []tab{anas, bens, desk} {
		page.do(browser.See(".comments h2", "0 comments"))
	}
	bens.do(
		browser.Fill("Your comment", "It is still dark, Zebra"),
		browser.Click(".comments label", "With my name"), browser.Click("button", "Send the comment"),
		browser.See(".comments li", "Written by you"), browser.See(".comments h2", "1 comment"),
	)
	anas.do(
		browser.See(".comments li", "Ben"), browser.See(".comments li", "It is still dark"),
		browser.Fill("Your comment", "Mine, too"),
		browser.Click(".comments label", "With my name"), browser.See(".comments .note", "people may guess"),
		browser.Click(".comments label", "Anonymous"), browser.Until(`!document.querySelector('.comments .note')`),
		browser.See(".comments [role=status]", "Nobody learns"),
	)
	anas.checkAccessible("writing a comment, on a phone")
	anas.checkNarrow("writing a comment")
	anas.do(browser.Click("button", "Send the comment"), browser.See(".comments h2", "2 comments"))
	bens.do(browser.See(".comments li:last-child", "Mine, too"), browser.See(".comments li:last-child", "Anonymous"))

	desk.do(browser.See(".comments h2", "2 comments"))
	desk.checkAccessible("comments, an official's")
	desk.do(
		browser.Click(".comments button", "Hide the comment"), browser.Fill("Reason", "It names somebody"),
		browser.Click("dialog form button", "Hide the comment"),
		browser.See(".comments .note", "It names somebody"), browser.See(".comments h2", "1 comment"),
	)
	anas.do(browser.Until(`!document.querySelector('.comments').textContent.includes('Zebra')`), browser.See(".comments h2", "1 comment"))
	bens.do(browser.See(".comments .note", "It names somebody"))
	desk.do(browser.Click(".comments button", "Show again"), browser.See(".comments h2", "2 comments"))
	anas.do(browser.See(".comments li", "Zebra"))
	for _, page := range []tab{anas, bens, desk} {
		page.checkFaults()
	}
}

// The comments are as free of faults as the other screens, for each role and who
// has none, with long words.
func TestPageCommentsAccessible(t *testing.T) {
	t.Parallel()
	c := startStackWithComments(t)
	ana, ben, olga := c.signIn("Ana", "resident"), c.signIn("Ben", "resident"), c.signIn("Olga", "official")
	report := file(t, ana, "Dark crossing")
	comment(t, ben, report, false)
	comment(t, ana, report, true)
	address := fmt.Sprint("reports/", report.ID)
	shown := []browser.Action{browser.See(".comments h2", "2 comments")}
	c.checkScreens(
		look{"comments, nobody's", nil, address, append(shown[:1:1], browser.See(".comments a", "Sign in to comment"))},
		look{"comments, a resident's", ben, address, append(shown[:1:1], browser.Click(".comments label", "Anonymous"))},
		look{"comments, an official's", olga, address, append(shown[:1:1], browser.Click(".comments button", "Hide the comment"), browser.See("legend, label", "Reason"))},
	)
}
