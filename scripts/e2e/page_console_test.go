package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// An operator finds a dead letter by its cause, mends it, replays it, and its
// effect appears live in an official's page.
func TestPageReplaysDeadLetter(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	c.awaitConsumers()
	enter := c.reader
	olga := enter(c.signIn("Olga", "official")).open("")
	oskar := enter(c.signIn("Oskar", "operator")).open("ops/dead-letters")
	oskar.do(browser.See(".empty", "No dead letters"))

	id := uuid.New()
	broken := fmt.Sprintf(`{"report_id": %q, "report_title": "", "category_id": 2, "category_name": "Lights",
		"privacy_level": "anonymous", "timestamp": %d, "report_version": 1}`, id, time.Now().Unix())
	c.publish(c.channel(), event.ReportCreatedKey, c.message(event.ReportCreatedKey, id, "ana", broken))
	oskar.do(
		browser.Click(".rows a", "report_title"), // the group
		browser.See(".rows .state", "Open"),
		browser.Click(".rows a", "report_title"), // its message
		browser.See("pre", "anonymous"),
		browser.Click("button", "Edit"),
		browser.Fill("Body", fmt.Sprintf(`{"report_id": %q, "report_title": "Mended by hand", "category_id": 2,
			"category_name": "Lights", "privacy_level": "anonymous", "timestamp": %d, "report_version": 1}`, id, time.Now().Unix())),
		browser.Click("button", "Show what changes"),
		browser.See(".diff dd", "Mended by hand"),
		browser.Click("button", "Save as a new message"),
		browser.See(".meta a", "Edited from another"),
		browser.Click("button", "Replay"),
		browser.See(".state", "Resolved"),
	)
	olga.do(unread("1"), browser.Click(".bell", "Notifications"), browser.See(".group", "Mended by hand"))
	oskar.do(
		browser.Click("nav a", "Replays"),
		browser.See(".rows li", "1 succeeded"),
		browser.Click("nav a", "Audit"),
		browser.See(".rows li", "edit"),
	)
	olga.checkFaults()
	oskar.checkFaults()
}

// A group is replayed under a canary, and discarded with a reason.
func TestPageReplaysGroup(t *testing.T) {
	t.Parallel()
	const letters = 7
	c := startStack(t)
	c.awaitConsumers()
	ch := c.channel()
	for range letters {
		c.publish(ch, event.VoteReceivedKey, c.message(event.VoteReceivedKey, uuid.New(), "ana", `{"no": "vote"}`))
	}
	oskar := c.reader(c.signIn("Oskar", "operator")).open("ops/dead-letters")
	oskar.do(
		browser.See(".rows strong", fmt.Sprintf("%d messages", letters)),
		browser.Click(".rows button", "Replay"),
		browser.Fill("Canary", "2"),
		browser.Click("button", "Dry run"),
		browser.See(".note", fmt.Sprintf("would send %d", letters)),
		browser.See(".would li", "body breaks the contract"), // which messages they are
		browser.Click("dialog button", "Replay"),
		browser.See(".state", "Stopped by itself"),
		browser.See(".meta", "2 came back"),
		browser.See(".meta", "by you"),
		browser.See(".quiet", "The canary failed"),
		browser.Until(`![...document.querySelectorAll('button')].some((button) => button.textContent === 'Cancel')`),
		browser.Click(".rows a", "body breaks the contract"), // those that were sent
		browser.Until(`document.querySelectorAll('.rows > li').length === 2`),
		browser.Click("nav a", "Dead letters"),
		browser.See(".rows strong", fmt.Sprintf("%d messages", letters)),
		browser.Click(".rows button", "Discard"),
		browser.Fill("Reason", "No votes at all"),
		browser.Click("button.danger", "Discard"),
		browser.See(".empty", "No dead letters"),
	)
	oskar.checkFaults()
}

// A pool is paused and resized in the console.
func TestPageWorkers(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	c.awaitConsumers()
	page := c.reader(c.signIn("Oskar", "operator")).open("ops/queues")
	consumers := func(want string) browser.Action {
		return browser.Until(`[...document.querySelectorAll('.pools tr')].some((row) =>
			row.firstElementChild.textContent.includes('queue.status_updates') && row.lastElementChild.textContent === '` + want + `')`)
	}
	page.do(
		browser.Click(".pools th button", "queue.status_updates"),
		browser.Fill("Workers", "3"),
		browser.Click("button", "Apply"),
		consumers("3"),
		browser.Click("button", "Pause"),
		browser.Click("dialog button.danger", "Pause"), // asked before
		browser.See("button", "Resume"),
		consumers("paused"),
		browser.Click("button", "Resume"),
		consumers("3"),
	)
	page.checkFaults()
}
