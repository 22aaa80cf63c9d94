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

// 100,000 notifications to one stream, while clients of its user come and go:
// neither memory nor goroutines stay behind.
func TestMemoryReturns(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	for _, w := range writers { // one after the other, and nothing beside them
		t.Run(string(w), func(t *testing.T) {
			r := newRig(t, config(w))
			r.churn(10_000) // warm: pools, buffers, the ring
			r.eventually("all are gone", func() bool { return r.metric("sse_connections") == 0 })
			before, routines := heap(), runtime.NumGoroutine()
			r.churn(100_000)
			r.eventually("all are gone", func() bool { return r.metric("sse_connections") == 0 })
			if clients, receivers, seats := r.hub.Held(); clients+receivers+seats > 0 {
				t.Errorf("the hub keeps %d clients, %d receivers and %d seats of none", clients, receivers, seats)
			}
			r.eventually("all goroutines are gone", func() bool { return runtime.NumGoroutine() <= routines+5 })
			after := heap()
			t.Logf("heap %d KB before, %d KB after", before>>10, after>>10)
			if after > before+4<<20 {
				t.Errorf("the heap grew from %d KB to %d KB", before>>10, after>>10)
			}
		})
	}
}

// churn commits and announces notifications, while 100 clients come and go.
func (r *rig) churn(count int) {
	const perCommit = 1000
	users := make([]string, perCommit)
	for i := range users {
		users[i] = "ann"
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	var clients sync.WaitGroup
	for range 100 {
		clients.Go(func() {
			for ctx.Err() == nil {
				r.visit(ctx)
				select { // else they would do little but connect
				case <-ctx.Done():
				case <-time.After(rand.N(time.Second)):
				}
			}
		})
	}
	for range count / perCommit {
		r.tell(users...)
	}
	cancel()
	clients.Wait()
}

// visit opens a stream and leaves after some events.
func (r *rig) visit(ctx context.Context) {
	s, err := ssetest.Open(ctx, r.url+"/ann", "")
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
