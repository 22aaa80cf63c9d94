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

// A comment under a report reaches the officials at once, and they reply
// without changing the status, as often as there is something to say. Its reporter
// reads that.
func TestPageConversation(t *testing.T) {
	t.Parallel()
	c := startStackWithComments(t)
	ana, ben, olga := c.signIn("Ana", "resident"), c.signIn("Ben", "resident"), c.signIn("Olga", "official")
	report := file(t, ana, "Dark crossing")
	file(t, ana, "Another one")
	move(t, olga, report, "resolved", "Done.")
	page := c.reader(olga).open("queue?status=all", browser.Width(1366, 768))
	page.do(live, browser.See(".task", "Another one"))
	comment(t, ben, report, true)
	page.do(
		browser.See(".task", "1 new comment"), browser.See(".tabs .count", "1"),
		browser.Click("button", "Filters"), browser.Click("label.check", "New comments"), browser.Click("dialog button.primary", ""), browser.Until(`document.querySelectorAll('.task').length === 1`),
		browser.Click(".task a", "Dark crossing"), browser.See(".desk-detail .comments li", "Anonymous"), browser.See(".desk-detail button", "Mark 1 new comment"),
	)
	page.checkAccessible("a report with new comments")
	page.do(
		browser.Fill("Reply, shown to everyone", "We look at it on Thursday."), browser.Click(".desk-detail button", "Send reply"),
		browser.See(".empty", "No reports here"), browser.Until(`!document.querySelector('.tabs .count')`),
		browser.Click("button", "Clear filters"), browser.Click(".task a", "Dark crossing"),
		browser.See(".desk-detail .acts li", "you replied"), browser.See(".desk-detail .badge", "Resolved"),
		browser.Fill("Reply, shown to everyone", "It rains; Friday then."), browser.Click(".desk-detail button", "Send reply"),
		browser.See(".desk-detail .status-form [role=status]", "The reply is sent."), browser.See(".desk-detail .acts", "Friday then"),
	)
	page.checkFaults()

	anas := c.reader(ana).open("")
	anas.do(
		browser.Click(".bell", ""), browser.See(".group", "The city has replied"), browser.See(".group", "on Thursday"),
		browser.Click(".group a", "Dark crossing"), browser.See(".timeline", "Reply of the city"), browser.See(".timeline", "Friday then"),
		browser.See(".report .badge", "Resolved"),
	)
	anas.checkFaults()
}
