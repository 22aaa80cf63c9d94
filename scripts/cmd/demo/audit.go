package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/scripts/internal/stats"
)

// A sight is one notification on one screen: what is expected, and what came.
type sight struct {
	screen  string // whose stream
	typ     string
	report  uuid.UUID
	version int64
}

// An audit holds what has to come against what came.
type audit struct {
	mu       sync.Mutex
	expected map[sight]time.Time // when the request that caused it began
	came     map[sight][]time.Time
	changed  chan struct{} // closed and replaced when something came
}

func newAudit() *audit {
	return &audit{
		expected: make(map[sight]time.Time),
		came:     make(map[sight][]time.Time),
		changed:  make(chan struct{}),
	}
}

// expect notes that s has to come, because of a request that began at start.
func (a *audit) expect(s sight, start time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expected[s] = start
}

// arrive notes that s came. It may do so before it is expected: a
// notification can overtake the answer to its request.
func (a *audit) arrive(s sight) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.came[s] = append(a.came[s], time.Now())
	close(a.changed)
	a.changed = make(chan struct{})
}

// wait returns how long s took, or false if it has not come when done closes.
func (a *audit) wait(s sight, done <-chan struct{}) (time.Duration, bool) {
	for {
		a.mu.Lock()
		start, times, changed := a.expected[s], a.came[s], a.changed
		a.mu.Unlock()
		if len(times) > 0 {
			return times[0].Sub(start), true
		}
		select {
		case <-changed:
		case <-done:
			return 0, false
		}
	}
}

// missing returns what has not come yet.
func (a *audit) missing() []sight {
	a.mu.Lock()
	defer a.mu.Unlock()
	var missing []sight
	for s := range a.expected {
		if len(a.came[s]) == 0 {
			missing = append(missing, s)
		}
	}
	return missing
}

// A result is the audit's sum. Other events on the same stack, such as reports that
// other people file during the demo, are not in it.
type result struct {
	expected, once, lost, doubled int
	mails, digests                int           // of those that came once
	p50, p99                      time.Duration // from request to screen
	webhookP50                    time.Duration // from request to the other system
	photoMax                      time.Duration // from upload to the picture on the screen
}

func (a *audit) result() result {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := result{expected: len(a.expected)}
	var screens, webhooks []time.Duration
	for s, start := range a.expected {
		times := a.came[s]
		switch len(times) {
		case 0:
			r.lost++
			continue
		case 1:
			r.once++
			if s.screen == mailboxName {
				r.mails++
				if s.typ == digestMail {
					r.digests++
				}
			}
		default:
			r.doubled++
		}
		switch took := times[0].Sub(start); {
		case s.screen == receiverName:
			webhooks = append(webhooks, took)
		case s.screen == mailboxName: // they wait to be read on the page first
		case s.typ == readyType: // the pictures are made first, with what is left of the processor
			r.photoMax = max(r.photoMax, took)
		default:
			screens = append(screens, took)
		}
	}
	r.p50, r.p99, r.webhookP50 = stats.Median(screens), stats.Percentile(screens, 99), stats.Median(webhooks)
	return r
}

// good reports whether the promise was kept.
func (r result) good() bool {
	return r.expected > 0 && r.lost == 0 && r.doubled == 0 && r.once == r.expected
}

// String returns the line that other programs read.
func (r result) String() string {
	return fmt.Sprintf("expected=%d once=%d lost=%d doubled=%d p50_ms=%s p99_ms=%s mails=%d digests=%d",
		r.expected, r.once, r.lost, r.doubled, millis(r.p50), millis(r.p99), r.mails, r.digests)
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond))
}
