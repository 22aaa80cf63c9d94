package sse_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/ssetest"
)

// Draining closes all streams evenly, each with its own time to come back, and
// refuses new ones.
func TestDrain(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		const clients, slices = 500, 5
		cfg := config(w)
		cfg.MaxStreams, cfg.MaxFeed = clients+1, clients
		h := newHarness(t, cfg)
		streams := make([]*ssetest.Stream, clients)
		for i := range streams {
			streams[i] = h.open("/feed", "")
			expect(t, streams[i], "ready")
		}
		var mu sync.Mutex
		var ends []time.Time
		retries := make(map[time.Duration]bool)
		var reading sync.WaitGroup
		for _, s := range streams {
			reading.Go(func() {
				expectEnd(t, s)
				mu.Lock()
				defer mu.Unlock()
				ends = append(ends, time.Now())
				retries[s.Retry()] = true
			})
		}
		began := time.Now()
		h.hub.Drain(t.Context())
		reading.Wait()
		expectRetry(t, h.open("/feed", ""))
		if len(retries) < clients/4 {
			t.Errorf("%d clients got only %d different times to come back", clients, len(retries))
		}
		var perSlice [slices]int // a figure, no promise: the machine may be busy
		for _, end := range ends {
			perSlice[min(int(end.Sub(began)*slices/cfg.DrainWindow), slices-1)]++
		}
		t.Logf("%d clients left in %s, by fifth of the window: %v", clients, time.Since(began).Round(time.Millisecond), perSlice)
	})
}

// The end of the hub disconnects all clients, and leaves nothing running.
func TestRunEnds(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		h := newHarness(t, config(w))
		s := h.open("/ann", "")
		expect(t, s, "ready")
		h.stop()
		expectEnd(t, s)
		expectRetry(t, h.open("/ann", ""))
	})
}

// A stream ends with its lifetime.
func TestLifetime(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		cfg := config(w)
		cfg.Heartbeat, cfg.Lifetime = 200*time.Millisecond, 2*time.Second
		h := newHarness(t, cfg)
		for _, path := range []string{"/ann", "/feed"} {
			s := h.open(path, "")
			expect(t, s, "ready")
			expectEnd(t, s)
		}
	})
}

// A silent stream gets heartbeats.
func TestHeartbeat(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		cfg := config(w)
		cfg.Heartbeat = 200 * time.Millisecond
		h := newHarness(t, cfg)
		s := h.open("/ann", "")
		id := expect(t, s, "ready").ID
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
		defer cancel()
		context.AfterFunc(ctx, s.Close)
		for range 3 {
			e, err := s.Next()
			if err != nil || e.Type != "hb" || string(e.Data) != "1" || e.ID != id {
				t.Fatalf("got %v (error %v), want a heartbeat that leaves the id at %s", e, err, id)
			}
		}
	})
}
