package relay

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
)

// Together the shares of all members are all shards, and they differ by one at
// most.
func TestShares(t *testing.T) {
	t.Parallel()
	for members := 1; members <= 20; members++ {
		total, least, most := 0, shardCount, 0
		for rank := range members {
			share := census{members: members - 1, rank: rank}.share()
			total, least, most = total+share, min(least, share), max(most, share)
		}
		if total != shardCount || most-least > 1 {
			t.Errorf("%d members: %d shards in shares of %d to %d", members, total, least, most)
		}
	}
}

// A process that was paused between its own check and the write sends nothing:
// the last look is at the socket.
func TestGuardAfterThePause(t *testing.T) {
	t.Parallel()
	r := &Relay{own: newOwnership()}
	r.own.renew([]claim{{1, 1}}, time.Now().Add(time.Hour))
	r.outstanding.Add(1)
	if err := r.guard(); err != nil {
		t.Errorf("under a valid lease: %v, want nil", err)
	}
	r.own.renew([]claim{{1, 1}}, time.Now().Add(-time.Nanosecond))
	if err := r.guard(); !errors.Is(err, errLeaseOver) {
		t.Errorf("after the lease: %v, want %v", err, errLeaseOver)
	}
	r.outstanding.Add(-1)
	if err := r.guard(); err != nil {
		t.Errorf("with nothing on its way: %v, want nil, so that heartbeats go on", err)
	}
}

// A shard is handed over only when nothing of it is under way, and what is
// under way of an earlier epoch does not count for the present one.
func TestOwnership(t *testing.T) {
	t.Parallel()
	o := newOwnership()
	old, now := claim{5, 1}, claim{5, 2}
	o.renew([]claim{old}, time.Now().Add(time.Hour))
	if !o.admit(old) || o.admit(now) {
		t.Error("admit: want the present epoch only")
	}
	o.release(1)
	if o.mayPublish(old) || o.admit(old) || len(o.drained()) != 0 {
		t.Error("a shard to be released takes no work, and is not given away while busy")
	}
	o.done(old)
	if free := o.drained(); len(free) != 1 || free[0] != 5 {
		t.Errorf("drained = %v, want the shard", free)
	}
	o.add([]claim{now})
	o.done(old)
	o.release(1)
	if free := o.drained(); len(free) != 1 {
		t.Errorf("drained = %v, want the shard: the old epoch's end is not its own", free)
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	s := Defaults()
	for attempts, want := range map[int]time.Duration{1: 500 * time.Millisecond, 3: 2 * time.Second, 40: time.Minute} {
		if got := backoff(attempts, s); got < want*8/10 || got > want*12/10 {
			t.Errorf("backoff(%d) = %v, want %v within 20 %%", attempts, got, want)
		}
	}
}

// The default heartbeat makes the broker hang up on a paused replica before
// its lease can be another's.
func TestHeartbeatFitsTheMargin(t *testing.T) {
	t.Parallel()
	s := Defaults()
	if s.Lease > 15*time.Second || 3*s.heartbeat() >= s.margin() {
		t.Errorf("lease %v, margin %v, heartbeat %v: want a lease of at most 15 s and three heartbeats within the margin",
			s.Lease, s.margin(), s.heartbeat())
	}
}

func TestSettingsNameTheVariable(t *testing.T) {
	t.Parallel()
	s := Settings{Window: 5000, ConfirmTimeout: time.Second, RetryMin: 2, RetryMax: 1}
	_, err := New(Config{Settings: s, Metrics: prometheus.NewRegistry()})
	for _, name := range []string{"RELAY_WINDOW", "RELAY_MAX_ATTEMPTS", "RELAY_RETRY_MIN", "RELAY_LEASE", "RELAY_POLL_MIN", "RELAY_RETENTION"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want it to name %s", err, name)
		}
	}
	if err != nil && strings.Contains(err.Error(), "RELAY_CONFIRM_TIMEOUT") {
		t.Errorf("error %v, want nothing about what is right", err)
	}
}

// Refusals in a row hold a kind back before they can fail a row; keys outside
// of the contract have no breaker; one success opens the way again.
func TestBreaker(t *testing.T) {
	t.Parallel()
	b, now := newBreakers(), time.Now()
	const key = "report.created"
	for n := 1; n < tripsAfter; n++ {
		if held, _ := b.refused(key, "no", now); held {
			t.Errorf("held back after %d refusals", n)
		}
	}
	if b.taken(key) {
		t.Error("taken: reported as opening the way, but nothing was held back")
	}
	for range tripsAfter {
		b.refused(key, "no", now)
	}
	if !b.isShut(key) || b.due(now) != "" || b.due(now.Add(minProbe)) != key {
		t.Error("want the kind held back, and tried after a pause")
	}
	for range Defaults().MaxAttempts * 2 {
		if held, _ := b.refused("report.unheard.of", "no", now); held {
			t.Error("a key outside of the contract is held back")
		}
	}
	if !b.taken(key) || b.isShut(key) {
		t.Error("a success does not open the way")
	}
}

func TestHeadersThatCannotTravel(t *testing.T) {
	t.Parallel()
	for headers, ok := range map[string]bool{
		`{"a": "x", "b": 1, "c": true}`: true,
		`{"a": null}`:                   false,
		`{"a": [1]}`:                    false,
		`"text"`:                        false,
	} {
		r := row{id: uuid.New(), headers: []byte(headers)}
		if _, err := r.message(); (err == nil) != ok {
			t.Errorf("headers %s: error %v, want success %v", headers, err, ok)
		}
	}
}
