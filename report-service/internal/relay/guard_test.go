package relay

import (
	"errors"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// A process that was paused between its own check and the write sends nothing:
// the last check is at the socket.
func TestGuardAfterThePause(t *testing.T) {
	t.Parallel()
	r := &Relay{leases: shards.NewLeases()}
	r.leases.Renew([]shards.Lease{{Shard: 1, Epoch: 1}}, time.Now().Add(time.Hour))
	r.sending.Add(1)
	if err := r.guard(); err != nil {
		t.Errorf("under a valid lease: %v, want nil", err)
	}
	r.leases.Renew([]shards.Lease{{Shard: 1, Epoch: 1}}, time.Now().Add(-time.Nanosecond))
	if err := r.guard(); !errors.Is(err, errLeaseExpired) {
		t.Errorf("after the lease: %v, want %v", err, errLeaseExpired)
	}
	r.sending.Add(-1)
	if err := r.guard(); err != nil {
		t.Errorf("with nothing on its way: %v, want nil, so that heartbeats go on", err)
	}
}
