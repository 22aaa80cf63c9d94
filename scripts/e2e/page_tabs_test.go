package e2e

import (
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// handover is how long the other tabs may wait for the stream of one that went
// away with notice. A lock that is kept takes them four times as long to steal.
const handover = 5 * time.Second

// A tab that leads and goes to another page leaves the stream to the others,
// also when the browser keeps its page for the way back. Once it is back there is
// still one stream for both.
func TestPageInBackForwardCache(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	anas, ben := c.signIn("Ana", "resident"), c.signIn("Ben", "resident")
	report := file(t, anas, "Dark crossing")
	ana := c.reader(anas)
	first := ana.open("")
	second := ana.open("mine")
	c.awaitStreams(1)

	first.do(browser.Visit(c.gateway.URL + "/icon.svg"))
	left := time.Now()
	vote(t, ben, report, "upvote")
	second.do(unread("1"), live)
	if took := time.Since(left); took > handover {
		t.Errorf("the other tab showed a vote after %v, want less than %v", took, handover)
	}
	c.awaitStreams(1)

	first.do(browser.Back())
	vote(t, ben, report, "downvote")
	second.do(unread("2"), live)
	c.awaitStreams(1)
}

// When the session ends, all tabs say so, and go on with the feed.
func TestPageSessionEndsInAllTabs(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana := c.reader(c.signIn("Ana", "resident"))
	first := ana.open("")
	second := ana.open("mine")
	c.endSession(ana)
	for _, tab := range []tab{first, second} {
		tab.do(browser.See(".banner", "Your session has ended"), browser.See(".who", "Sign in"), live)
	}
	first.do(browser.See("h1", "Reports"))
	file(t, c.signIn("Ben", "resident"), "Dark crossing")
	first.do(browser.See(".card", "Dark crossing"))
}

// endSession ends the session of a reader whose page is open. The page learns
// it when its streams are opened again, which they are after a restart.
func (c *stack) endSession(r reader) {
	c.t.Helper()
	if err := r.EndSession(); err != nil {
		c.t.Fatal(err)
	}
	c.notification.kill()
	c.notification.start()
	c.awaitReady()
}
