package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// An operator sees how long messages take, in lines and in words, in both
// languages, in both themes and on a phone.
func TestPageDrawsLatencies(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	c.awaitConsumers()
	ana, ben := c.signIn("Ana", "resident"), c.signIn("Ben", "resident")
	report := file(t, ana, "Dark crossing")
	// Somebody is always at work, so that there is something to measure.
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	work.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if _, err := ben.Vote(ctx, report.ID, []string{"upvote", "downvote"}[i%2]); err != nil && ctx.Err() == nil {
				t.Errorf("vote: %v", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond): // a calm town
			}
		}
	})
	oskar := c.reader(c.signIn("Oskar", "operator"))

	queues := oskar.open("ops/queues", browser.Width(1200, 900), browser.Theme("light"))
	queues.do(browser.Choose("Time shown", "The last 15 minutes")) // in its steps of ten seconds there is something soon
	queues.do(browser.Click(".pools th button", "queue.vote_received"))
	queues.do(said("Handler time, median: now [0-9.,]+ ms, at most [0-9.,]+ ms.*Handler time, 99th percentile: now [0-9.,]+ ms"),
		drawn("p50"), drawn("p99"))
	queues.checkCharts("queues")
	queues.do(browser.Click("nav a", "Outbox"),
		said("Published: now [0-9.,]+/s"),
		said("Confirm time, median: now [0-9.,]+ ms, at most [0-9.,]+ ms.*Confirm time, 99th percentile: now [0-9.,]+ ms"),
		drawn("p50"), drawn("p99"))
	queues.checkCharts("outbox")

	queues.do(browser.Click("button", "Menu"), browser.Choose("Language", "Bahasa Indonesia"), browser.Click("dialog button", "Tutup"),
		said("Waktu konfirmasi, persentil ke-99: sekarang [0-9.,]+ ms"))
	queues.checkFaults()
}

// said waits until a chart says in words what the pattern names.
func said(pattern string) browser.Action {
	return browser.Until(fmt.Sprintf(
		`[...document.querySelectorAll('.chart svg[role=img]')].some((svg) => new RegExp(%q).test(svg.getAttribute('aria-label')))`, pattern))
}

// drawn waits until a line of a chart has a second point.
func drawn(line string) browser.Action {
	return browser.Until(`document.querySelector('.chart path.` + line + `[d*=L]')`)
}

// checkCharts fails the test if the screen's charts are not for everyone.
func (p tab) checkCharts(screen string) {
	p.t.Helper()
	for _, theme := range []string{"light", "dark"} {
		p.do(browser.Theme(theme))
		p.checkAccessible(screen + ", " + theme)
	}
	p.do(browser.Width(360, 740))
	p.checkAccessible(screen + ", on a phone")
	p.checkNarrow(screen)
	p.do(browser.Width(1200, 900), browser.Theme("light"))
}
