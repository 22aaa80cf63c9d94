package sse_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/ssetest"
)

// After 100,000 notifications to one stream, while clients of its user come and
// go, neither memory nor goroutines are left.
func TestMemoryReturns(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	for _, w := range writers { // one after the other, and nothing beside them
		t.Run(string(w), func(t *testing.T) {
			h := newHarness(t, config(w))
			h.churn(10_000) // warm: pools, buffers, the ring
			h.eventually("all are gone", func() bool { return h.metric("sse_connections") == 0 })
			before, routines := heap(), runtime.NumGoroutine()
			h.churn(100_000)
			h.eventually("all are gone", func() bool { return h.metric("sse_connections") == 0 })
			if clients, subscribers, slots := h.hub.Held(); clients+subscribers+slots > 0 {
				t.Errorf("the hub keeps %d clients, %d subscribers and %d slots, want none", clients, subscribers, slots)
			}
			h.eventually("all goroutines are gone", func() bool { return runtime.NumGoroutine() <= routines+5 })
			after := heap()
			t.Logf("heap %d KB before, %d KB after", before>>10, after>>10)
			if after > before+4<<20 {
				t.Errorf("the heap grew from %d KB to %d KB", before>>10, after>>10)
			}
		})
	}
}

// churn commits and announces notifications, while 100 clients come and go.
func (h *harness) churn(count int) {
	const perCommit = 1000
	users := make([]string, perCommit)
	for i := range users {
		users[i] = "ann"
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	var clients sync.WaitGroup
	for range 100 {
		clients.Go(func() {
			for ctx.Err() == nil {
				h.visit(ctx)
				select { // else they would do little but connect
				case <-ctx.Done():
				case <-time.After(rand.N(time.Second)):
				}
			}
		})
	}
	for range count / perCommit {
		h.tell(users...)
	}
	cancel()
	clients.Wait()
}

// visit opens a stream and leaves after some events.
func (h *harness) visit(ctx context.Context) {
	s, err := ssetest.Open(ctx, h.url+"/ann", "")
	if err != nil {
		return // ctx has ended
	}
	defer s.Close()
	for range 20 {
		if _, err := s.Next(); err != nil {
			return
		}
	}
}

// heap returns what is in use once all garbage is gone.
func heap() uint64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
