package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// A status that an official sets in their page is shown in the resident's at once.
func TestPageStatusLive(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	enter := c.reader
	anas := c.signIn("Ana", "resident")
	report := file(t, anas, "Dark crossing")
	ana := enter(anas).open("reports/" + report.ID.String())
	olga := enter(c.signIn("Olga", "official")).open("queue")
	olga.do(
		browser.Click(".task a", "Dark crossing"),
		browser.Click(".chip", "In progress"),
		browser.Fill("Note", "A crew is on its way."),
	)
	pressed := time.Now()
	olga.do(browser.Click("button", "Save"))
	ana.do(browser.See(".meta .badge", "In progress"))
	t.Logf("seen in the other page after %v", time.Since(pressed))
	ana.do(
		browser.See(".timeline", "A crew is on its way."),
		browser.See(".toasts p", "Now: In progress"), // read out; the report itself shows it
		allRead, // it was looked at
	)
	olga.do(browser.Until(`!document.querySelector('.task')`)) // it is pending no more
	olga.checkFaults()
	ana.checkFaults()
}

// An official who decided about an outdated state is refused and keeps their note.
func TestPageStaleStatus(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	olga, otto := c.signIn("Olga", "official"), c.signIn("Otto", "official")
	report := file(t, c.signIn("Ana", "resident"), "Dark crossing")
	page := c.reader(olga).open("reports/" + report.ID.String())
	page.do(browser.Click(".chip", "Rejected"), browser.Fill("Why?", "Not ours."))
	move(t, otto, report, "resolved", "Mended.")
	page.do(
		browser.See("[role=status]", "now “Resolved”"),
		browser.Until(`document.querySelector('textarea').value === 'Not ours.'`),
		browser.Until(`![...document.querySelectorAll('.chip')].some((chip) => chip.textContent.includes('Rejected'))`),
	)
	page.checkFaults()
}

// Two tabs share one stream, the bell's count and what is read; when the tab
// that has the stream is closed, the other one goes on.
func TestPageTabsShareOneStream(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	anas, ben := c.signIn("Ana", "resident"), c.signIn("Ben", "resident")
	report := file(t, anas, "Dark crossing")
	ana := c.reader(anas)
	first := ana.open("")
	second := ana.open("mine")
	c.awaitStreams(1)

	vote(t, ben, report, "upvote")
	first.do(unread("1"))
	second.do(unread("1"), browser.Click(".bell", "Notifications"), browser.Click(".dot-button", "Mark as read"), allRead)
	first.do(allRead)
	c.awaitStreams(1)

	first.Close()
	second.do(live)
	vote(t, ben, report, "downvote")
	second.do(unread("1"))
	c.awaitStreams(1)
	second.checkFaults()
}

// A tab that is frozen gives the stream up, and the next one goes on with it.
// Thawed, it shows what happened in between.
func TestPageFrozenTab(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	anas, ben := c.signIn("Ana", "resident"), c.signIn("Ben", "resident")
	report := file(t, anas, "Dark crossing")
	ana := c.reader(anas)
	first := ana.open("")
	second := ana.open("mine")
	c.awaitStreams(1)
	first.do(browser.Freeze(true))
	vote(t, ben, report, "upvote")
	second.do(unread("1"))
	c.awaitStreams(1)
	first.do(browser.Freeze(false), unread("1"))
	c.awaitStreams(1)
	vote(t, ben, report, "downvote")
	first.do(unread("2"))
	second.do(unread("2"))
}

// awaitStreams returns when so many streams of notifications are open.
func (c *stack) awaitStreams(n int) {
	c.t.Helper()
	want := fmt.Sprintf("sse_connections{stream=%q} %d\n", "notifications", n)
	eventually.True(c.t, strings.TrimSpace(want), func() bool {
		request, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.notification.operations()+"/metrics", nil)
		if err != nil {
			return false
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		return err == nil && strings.Contains(string(body), want)
	})
}

// A page that is reloaded again and again while votes come in shows each of
// them once.
func TestPageReloadMidStream(t *testing.T) {
	t.Parallel()
	const votes, reloads = 60, 5
	c := startStack(t)
	anas, ben := c.signIn("Ana", "resident"), c.signIn("Ben", "resident")
	report := file(t, anas, "Dark crossing")
	page := c.reader(anas).open("")
	voted := make(chan error, 1)
	go func() {
		for i := range votes {
			if _, err := ben.Vote(t.Context(), report.ID, []string{"upvote", "downvote"}[i%2]); err != nil {
				voted <- err
				return
			}
		}
		voted <- nil
	}()
	for range reloads {
		page.do(browser.Reload(), live)
	}
	if err := <-voted; err != nil {
		t.Fatalf("vote: %v", err)
	}
	page.do(unread(fmt.Sprint(votes)), browser.Click(".bell", "Notifications"))
	// An impatient reader presses twice, and sees nothing twice.
	page.do(browser.Until(fmt.Sprintf(`(() => {
		const more = document.querySelector('dialog button.wide');
		more?.click();
		more?.click();
		const shown = [...document.querySelectorAll('.group li')].reduce((sum, li) => sum + Number(li.dataset.count), 0);
		return !more && shown === %d;
	})()`, votes)))
	page.checkFaults()
}

// While the broker is away the page stays as it is and reports are taken;
// once it is back, everything arrives without a reload.
func TestPageBrokerAway(t *testing.T) {
	t.Parallel()
	server := rabbittest.StartServer(t)
	c := prepareStackAt(t, server.URL(), server.ManagementURL())
	c.notification.start()
	c.report.start()
	c.awaitReady()
	anas, ben := c.signIn("Ana", "resident"), c.signIn("Ben", "resident")
	report := file(t, anas, "Dark crossing")
	page := c.reader(anas).open("")

	server.Stop()
	c.awaitHealth("degraded")
	vote(t, ben, report, "upvote")
	vote(t, ben, report, "downvote")
	page.do(live)
	server.Start()
	page.do(unread("2"), browser.See(".meta", "-1 vote"))
	page.checkFaults()
}

// The page says so when nothing is live, and is live again by itself.
func TestPageReconnects(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	anas := c.signIn("Ana", "resident")
	report := file(t, anas, "Dark crossing")
	page := c.reader(anas).open("")
	c.notification.kill()
	page.do(browser.See(".connection", "Reconnecting since"))
	vote(t, c.signIn("Ben", "resident"), report, "upvote")
	c.notification.start()
	page.do(live, unread("1"))
}

// A session that ends is said to have ended; what was being written is kept,
// and the city's public life goes on.
func TestPageSessionEnds(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana := c.reader(c.As("resident-ana", token(jwt.MapClaims{"sub": "resident-ana", "name": "Ana"})))
	page := ana.open("new?step=3")
	page.do(browser.Fill("What is wrong?", "Half a sentence"))
	c.endSession(ana)
	page.do(
		browser.See(".banner", "Your session has ended"),
		browser.Click(".banner a", "Sign in"),
		browser.Fill("Name", "Ana"),
		browser.Click("button.primary", "Sign in"),
		browser.Until(`document.querySelector('input[required]')?.value === 'Half a sentence'`),
		live,
	)
}
