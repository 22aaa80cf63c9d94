package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/scripts/internal/city"
	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

// The screens. The other system and the mailbox count as one each; those of the
// cast follow.
const (
	receiverScreen = iota
	mailboxScreen
	castScreens
)

// An audit holds what has to come against what came, and how long that took.
type audit struct {
	*city.Ledger

	mu                        sync.Mutex
	screens, webhooks, photos []time.Duration
	mails, digests            int
}

func newAudit() *audit {
	a := &audit{}
	a.Ledger = city.NewLedger(a.delivered)
	return a
}

func (a *audit) delivered(d city.Delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case d.Screen == receiverScreen:
		a.webhooks = append(a.webhooks, d.ToScreen)
	case d.Screen == mailboxScreen: // they wait to be read on the page first
		a.mails++
		if d.Type == digestMail {
			a.digests++
		}
	case d.Type == string(event.PhotoReadyKey): // the pictures are made first, with what is left of the processor
		a.photos = append(a.photos, d.ToScreen)
	default:
		a.screens = append(a.screens, d.ToScreen)
	}
}

// A result is the audit's sum. What else happens on the same stack, such as
// reports that other people file at the same time, is not in it.
type result struct {
	city.Tally
	mails, digests int           // that came
	p50, p99       time.Duration // from request to screen
	webhookP50     time.Duration // from request to the other system
	photoMax       time.Duration // from upload to the picture on the screen
}

func (a *audit) result() result {
	a.mu.Lock()
	defer a.mu.Unlock()
	return result{
		Tally: a.Tally(), mails: a.mails, digests: a.digests,
		p50: stats.Median(a.screens), p99: stats.Percentile(a.screens, 99),
		webhookP50: stats.Median(a.webhooks), photoMax: stats.Percentile(a.photos, 100),
	}
}

// good reports whether the promise was kept.
func (r result) good() bool {
	return r.Expected > 0 && r.Lost == 0 && r.Doubled == 0 && r.Once == r.Expected
}

// String returns the line that other programs read.
func (r result) String() string {
	return fmt.Sprintf("expected=%d once=%d lost=%d doubled=%d p50_ms=%s p99_ms=%s mails=%d digests=%d",
		r.Expected, r.Once, r.Lost, r.Doubled, millis(r.p50), millis(r.p99), r.mails, r.digests)
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond))
}
