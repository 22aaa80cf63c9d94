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

// Bytes that waited for the socket when a lease was lost are not sent once the replica
// has leases again: the successor may have published it since.
func TestGuardAfterTheNextLease(t *testing.T) {
	t.Parallel()
	r := &Relay{leases: shards.NewLeases()}
	held := []shards.Lease{{Shard: 1, Epoch: 1}, {Shard: 2, Epoch: 1}}
	r.leases.Renew(held, time.Now().Add(time.Hour))
	r.sending.Add(1)
	r.leases.Renew(held, time.Now().Add(time.Hour))
	if err := r.guard(); err != nil {
		t.Errorf("after an ordinary renewal: %v, want nil", err)
	}
	r.leases.Renew([]shards.Lease{{Shard: 1, Epoch: 1}, {Shard: 2, Epoch: 3}}, time.Now().Add(time.Hour))
	if err := r.guard(); !errors.Is(err, errLeaseExpired) {
		t.Errorf("after another epoch of a shard: %v, want %v", err, errLeaseExpired)
	}
	r.lostBefore.Store(r.leases.Lost()) // the next session
	if err := r.guard(); err != nil {
		t.Errorf("in the next session: %v, want nil", err)
	}
	r.leases.Renew(nil, time.Now().Add(time.Hour))
	if err := r.guard(); !errors.Is(err, errLeaseExpired) {
		t.Errorf("without the leases: %v, want %v", err, errLeaseExpired)
	}
}
