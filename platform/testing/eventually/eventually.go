// Package eventually waits, in tests, for what sends no signal.
package eventually

import (
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/backoff"
)

// Patience ends a wait that is in vain. It is long because a busy machine is slow,
// and a test that fails is run once more; nothing is measured by it.
const Patience = 4 * time.Minute

// True waits until ok. If that takes for ever, t fails with what it waited for.
func True(t testing.TB, what string, ok func() bool) {
	t.Helper()
	NothingMissing(t, what, func() string {
		if ok() {
			return ""
		}
		return "not yet"
	})
}

// NothingMissing waits until missing returns nothing. If that takes for ever, t fails
// with its last answer.
func NothingMissing(t testing.TB, what string, missing func() string) {
	t.Helper()
	var poll backoff.Poll
	for deadline := time.After(Patience); ; {
		wish := missing()
		if wish == "" {
			return
		}
		select {
		case <-poll.Next():
		case <-deadline:
			t.Fatalf("waited in vain: %s: %s", what, wish)
		}
	}
}
