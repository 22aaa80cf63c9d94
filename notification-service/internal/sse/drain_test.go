package sse_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/platform/ssetest"
)

// Draining sends everyone away evenly, each with a time to come back of its
// own, and nobody is let in meanwhile.
func TestDrain(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		const clients, slices = 500, 5
		cfg := config(w)
		cfg.MaxStreams, cfg.MaxPerUser = clients, clients
		r := newRig(t, cfg)
		streams := make([]*ssetest.Stream, clients)
		for i := range streams {
			streams[i] = r.open("/feed", "")
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
		r.hub.Drain(t.Context())
		reading.Wait()
		expectBounce(t, r.open("/feed", ""))
		if len(retries) < clients/4 {
			t.Errorf("%d clients were told only %d different times to come back", clients, len(retries))
		}
		var perSlice [slices]int // a figure, no promise: the machine may be busy
		for _, end := range ends {
			perSlice[min(int(end.Sub(began)*slices/cfg.DrainWindow), slices-1)]++
		}
		t.Logf("%d clients left in %s, by fifth of the window: %v", clients, time.Since(began).Round(time.Millisecond), perSlice)
	})
}

// The end of the hub cuts everybody off, and leaves nothing running.
func TestRunEnds(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		r := newRig(t, config(w))
		s := r.open("/ann", "")
		expect(t, s, "ready")
		r.stop()
		expectEnd(t, s)
		expectBounce(t, r.open("/ann", ""))
	})
}

// A stream ends with its token and with its lifetime.
func TestStreamsEnd(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		cfg := config(w)
		cfg.Heartbeat, cfg.Lifetime = 200*time.Millisecond, 2*time.Second
		r := newRig(t, cfg)
		for _, path := range []string{"/ann?expires=1s", "/ann", "/feed"} {
			s := r.open(path, "")
			expect(t, s, "ready")
			expectEnd(t, s)
		}
	})
}

// Silence is broken by heartbeats.
func TestHeartbeat(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		cfg := config(w)
		cfg.Heartbeat = 200 * time.Millisecond
		r := newRig(t, cfg)
		s := r.open("/ann", "")
		id := expect(t, s, "ready").ID
		ctx, cancel := context.WithTimeout(t.Context(), patience)
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
