package sse_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	platformsse "github.com/cityconnect/cityconnect/platform/sse"
)

// The feed says at its beginning for how long nothing has happened, so that a
// page reads again only what may have changed.
func TestFeedTellsHowLongItWasQuiet(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		h := newHarness(t, config(w))
		begun := time.Now()
		h.tell("ann")
		told := time.Now()
		s := h.open("/feed", "")
		opened := time.Now()
		if quiet := quietFor(t, expect(t, s, "ready")); quiet < 0 || quiet > time.Since(begun)+time.Millisecond {
			t.Errorf("the feed was quiet for %s, and its last event was at most %s ago", quiet, time.Since(begun))
		}
		s = h.open("/feed", "")
		if quiet := quietFor(t, expect(t, s, "ready")); quiet < opened.Sub(told)-time.Millisecond {
			t.Errorf("the feed was quiet for %s, and its last event was at least %s ago", quiet, opened.Sub(told))
		}
		h.tell("ann")
		expect(t, s, "notification")
	})
}

// quietFor reads for how long ready says that nothing has happened.
func quietFor(t *testing.T, e platformsse.Event) time.Duration {
	t.Helper()
	var data struct {
		QuietMS *int64 `json:"quiet_ms"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil || data.QuietMS == nil {
		t.Fatalf("ready of the feed has %s (error: %v), want quiet_ms", e.Data, err)
	}
	return time.Duration(*data.QuietMS) * time.Millisecond
}
