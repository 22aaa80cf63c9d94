package sse_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/ssetest"
)

// After 100,000 notifications to one stream, while clients of its user come and
// go, neither memory nor goroutines are left. What is kept for reuse grows until
// the busiest moment there was, and how busy a round gets is the machine's: so
// the heap may grow in some rounds, and does in all of them if anything is left.
func TestMemoryReturns(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	for _, w := range writers { // one after the other, and nothing beside them
		t.Run(string(w), func(t *testing.T) {
			h := newHarness(t, config(w))
			h.churn(10_000) // warm: pools, buffers, the ring
			eventually.True(h.t, "all are gone", func() bool { return h.metric("sse_connections") == 0 })
			before, routines := heap(), runtime.NumGoroutine()
			const rounds = 5
			for round := range rounds {
				h.churn(100_000)
				eventually.True(h.t, "all are gone", func() bool { return h.metric("sse_connections") == 0 })
				eventually.True(h.t, "the hub keeps none of them", func() bool {
					clients, subscribers, slots := h.hub.Held()
					return clients+subscribers+slots == 0
				})
				eventually.True(h.t, "all goroutines are gone", func() bool { return runtime.NumGoroutine() <= routines+5 })
				after := heap()
				t.Logf("heap %d KB before, %d KB after", before>>10, after>>10)
				if after <= before+4<<20 {
					return
				}
				before = after
				if round == rounds-1 {
					t.Errorf("the heap grew by more than 4 MB in each of %d rounds", rounds)
				}
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
