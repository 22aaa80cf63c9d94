package ledger

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// A namedChannel is asked for nothing but what it is.
type namedChannel struct{ Channel }

func (namedChannel) Name() string   { return "test" }
func (namedChannel) Personal() bool { return false }

// A lane that is full when its lease ends, because the database or the session was away,
// sends again once the lease is renewed: nothing else gives it a turn, since it has no
// attempt whose answer would, and no place to claim into.
func TestRenewedLaneSendsAgain(t *testing.T) {
	t.Parallel()
	now := time.Now()
	d := New(Config{Concurrency: 4}, namedChannel{}, nil, prometheus.NewRegistry(), zerolog.Nop())
	l := newTestLane(now, rowsPerLane)
	l.until = now
	d.lanes[l.name] = l
	d.enqueue(l)
	if d.send(t.Context(), now); d.busy > 0 {
		t.Fatalf("%d attempts after the lease", d.busy)
	}
	renewal := pass{renew: []string{l.name}, renewed: []LeasedLane{{Name: l.name}}, until: now.Add(leaseTime)}
	d.takePass(renewal, now)
	if len(d.ready) == 0 || !d.ready[0].maySend(now) {
		t.Error("the lane has no turn, want one")
	}
}
