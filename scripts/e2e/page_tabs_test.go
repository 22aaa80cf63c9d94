package e2e

import (
	"testing"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// countSteals counts how often a tab takes the lock from one that keeps it.
const countSteals = `globalThis.steals = 0;
const { request } = LockManager.prototype;
LockManager.prototype.request = function (name, options, ...rest) {
	if (options?.steal) steals++;
	return request.call(this, name, options, ...rest);
};`

// A tab that leads and goes to another page leaves the stream to the others, who
// need not steal it, also when the browser keeps its page for the way back. Once
// it is back, it shows what happened in between, and there is still one stream for
// both.
func TestPageInBackForwardCache(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	anas, ben := c.signIn("Ana", "resident"), c.signIn("Ben", "resident")
	report := file(t, anas, "Dark crossing")
	ana := c.readerOf(chromium, c.gateway.URL, anas)
	first := ana.open("")
	second := ana.open("mine", browser.InEachDocument(countSteals))
	c.awaitStreams(1)

	if _, err := browser.Ask[bool](first.Tab, "globalThis.kept = true"); err != nil {
		t.Fatal(err)
	}
	first.do(browser.Go(c.gateway.URL + "/icon.svg"))
	vote(t, ben, report, "upvote")
	second.do(unread("1"), live)
	if steals, err := browser.Ask[int](second.Tab, "steals"); err != nil || steals > 0 {
		t.Errorf("the other tab stole the lock %d times (error %v), want that it is given up", steals, err)
	}
	c.awaitStreams(1)

	first.do(browser.Back(), browser.Until("globalThis.kept"), unread("1"), live)
	vote(t, ben, report, "downvote")
	first.do(unread("2"))
	second.do(unread("2"), live)
	c.awaitStreams(1)
	first.checkFaults()
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
	first.do(browser.See("h1", "what is broken"))
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
