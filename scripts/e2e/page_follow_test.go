package e2e

import (
	"testing"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// A resident's follows are hers on every device, and events from while she was away
// are under the bell.
func TestPageFollowsOnEveryDevice(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ben, olga := c.signIn("Ben", "resident"), c.signIn("Olga", "official")
	report := file(t, ben, "Dark crossing")
	ana := c.signIn("Ana", "resident")
	phone := c.reader(ana).open("reports/"+report.ID.String(), browser.Width(360, 740))
	// It says its state in words, and not once more as pressed.
	phone.do(browser.Click("button", "Follow"), browser.See("button[data-on=true]:not([aria-pressed])", "Following"))
	phone.Close()

	move(t, olga, report, "in_progress", "On Thursday.")
	desk := c.reader(ana).open("mine")
	desk.do(
		browser.See("section a", "Dark crossing"),
		unread("1"),
		browser.Click(".bell", ""),
		browser.See(".group", "On Thursday."),
		browser.Click(".group a", "Dark crossing"),
		browser.See("button[data-on=true]", "Following"),
		allRead,
		browser.Click("button", "Following"), browser.See("button[data-on=false]", "Follow"),
	)
	move(t, olga, report, "resolved", "Done.")
	desk.do(browser.See(".timeline", "Done."), allRead)
	desk.checkFaults()
}

// An official who has turned off new reports finds none of them under the bell, on
// any device, and still finds their own notifications.
func TestPageOnlyOwn(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana, olga := c.signIn("Ana", "resident"), c.signIn("Olga", "official")
	first := file(t, ana, "Dark crossing")
	page := c.reader(olga).open("reports/"+first.ID.String(), browser.Width(360, 740))
	page.do(
		browser.Click("button", "Follow"), browser.See("button[data-on=true]", "Following"),
		browser.Click(".bell", ""), browser.Click("dialog label", "Only about me"),
		browser.See("dialog .empty", "Nothing yet"), browser.Click("dialog button", "Close"), allRead,
		browser.Go(c.gateway.URL), live, // where nothing is marked as read by being looked at
	)
	for range 3 {
		file(t, ana, "Another one")
	}
	move(t, c.signIn("Oskar", "official"), first, "in_progress", "Seen.")
	page.do(unread("1"))
	other := c.reader(olga).open("")
	other.do(unread("1"), browser.Click(".bell", ""), browser.See(".group", "Seen."),
		browser.Until(`document.querySelectorAll('dialog .group').length === 1`),
		browser.Click("dialog label", "Only about me"), browser.See("dialog .group", "Another one"),
		// Notifications that came in between count as read.
		unread("1"))
	page.checkFaults()
	other.checkFaults()
}
