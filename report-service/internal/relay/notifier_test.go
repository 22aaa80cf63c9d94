package relay

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// testNotifier belongs to a replica that owns shard 3.
func testNotifier(blocked bool) *notifier {
	leases := shards.NewLeases()
	leases.Renew([]shards.Lease{{Shard: 3, Epoch: 1}}, time.Now().Add(time.Hour))
	return &notifier{
		leases: leases, blocked: func() bool { return blocked },
		metrics: newMetrics(prometheus.NewRegistry(), 1, leases, new(atomic.Int64)),
		trigger: make(chan struct{}, 1), due: make(chan struct{}, 1),
	}
}

// Commits never wait for the broker: wake-ups are merged while it is away, and
// stay pending while it blocks publishers.
func TestWakeupsAreMerged(t *testing.T) {
	t.Parallel()
	n := testNotifier(true)
	for range 1000 {
		n.committed(shards.Set(0).Add(3).Add(7))
		n.committed(shards.Set(0).Add(9))
	}
	if err := n.send(t.Context(), nil); err != nil { // it would need the channel to publish anything
		t.Errorf("send while blocked: %v", err)
	}
	if got, want := shards.Set(n.pending.Load()), shards.Set(0).Add(7).Add(9); got != want || len(n.trigger) != 1 {
		t.Errorf("%b pending and %d reads triggered, want %b and one", got, len(n.trigger), want)
	}
}

// Rows that other replicas commit in our shards are read, and those in other shards
// are not.
func TestWakeupsOfOwnShards(t *testing.T) {
	t.Parallel()
	n := testNotifier(false)
	for body, want := range map[string]int{
		`{"shards": 8}`:     1,
		`{"shards": 65535}`: 1,
		`{"shards": 65527}`: 0,
		`{"shards": 16}`:    0,
		`{"shards": 0}`:     0,
		`not JSON`:          1,
	} {
		n.onMessage([]byte(body))
		if got := len(n.trigger); got != want {
			t.Errorf("%s: %d reads triggered, want %d", body, got, want)
		}
		for len(n.trigger) > 0 {
			<-n.trigger
		}
	}
}
