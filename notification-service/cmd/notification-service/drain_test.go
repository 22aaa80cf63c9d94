package main

import (
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/platform/testing/ssetest"
)

// Told to end, the service sends its clients away one after the other, each
// with its own time to come back, and then ends well. DRAIN_CLIENTS=10000
// shows it at full size.
func TestDrainOfManyClients(t *testing.T) {
	t.Parallel()
	clients := 1000
	if n, err := strconv.Atoi(os.Getenv("DRAIN_CLIENTS")); err == nil {
		clients = n
	}
	c := newCluster(t, rabbittest.Vhost(t), pgtest.Notification(t).Config().ConnString(), "DRAIN_WINDOW=20s")
	r := c.start()
	streams := make([]*ssetest.Stream, clients)
	for i := range streams {
		s, err := ssetest.Open(t.Context(), r.URL("/feed/stream"), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		expect(t, s, "ready")
		streams[i] = s
	}
	began := time.Now()
	ends := make([]time.Duration, clients)
	var leaving sync.WaitGroup
	for i, s := range streams {
		leaving.Go(func() {
			for {
				if _, err := s.Next(); err != nil {
					ends[i] = time.Since(began)
					return
				}
			}
		})
	}
	if code := r.Stop(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	leaving.Wait()
	told := make(map[time.Duration]int)
	perSecond := make(map[int]int)
	for i, s := range streams {
		told[s.Retry()]++
		perSecond[int(ends[i].Seconds())]++
		if s.Retry() > time.Second {
			t.Fatalf("client %d was cut off, with a retry of %s", i, s.Retry())
		}
	}
	if len(told) < min(clients, 800)/4 {
		t.Errorf("%d clients got only %d different times to come back", clients, len(told))
	}
	t.Logf("%d clients were gone after %s; by second: %v", clients, time.Since(began).Round(100*time.Millisecond), perSecond)
}
