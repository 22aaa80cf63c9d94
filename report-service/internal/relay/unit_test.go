package relay

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// A process that was paused between its own check and the write sends nothing:
// the last look is at the socket.
func TestGuardAfterThePause(t *testing.T) {
	t.Parallel()
	r := &Relay{leases: shards.NewLeases()}
	r.leases.Renew([]shards.Lease{{Shard: 1, Epoch: 1}}, time.Now().Add(time.Hour))
	r.outstanding.Add(1)
	if err := r.guard(); err != nil {
		t.Errorf("under a valid lease: %v, want nil", err)
	}
	r.leases.Renew([]shards.Lease{{Shard: 1, Epoch: 1}}, time.Now().Add(-time.Nanosecond))
	if err := r.guard(); !errors.Is(err, errLeaseOver) {
		t.Errorf("after the lease: %v, want %v", err, errLeaseOver)
	}
	r.outstanding.Add(-1)
	if err := r.guard(); err != nil {
		t.Errorf("with nothing on its way: %v, want nil, so that heartbeats go on", err)
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

// Nobody who commits waits for the broker: what is to be announced is merged
// while it is away, and stays where it is while it blocks us.
func TestWakesWait(t *testing.T) {
	t.Parallel()
	r := &Relay{leases: shards.NewLeases(), wake: make(chan struct{}, 1), wakes: newWakes()}
	r.leases.Renew([]shards.Lease{{Shard: 3, Epoch: 1}}, time.Now().Add(time.Hour))
	for range 1000 {
		r.Wake(shards.Set(0).Add(3).Add(7))
		r.Wake(shards.Set(0).Add(9))
	}
	r.broker.blocked = "disk"
	if err := r.announce(t.Context(), nil); err != nil { // it would need the channel to say anything
		t.Errorf("announce while blocked: %v", err)
	}
	if got, want := r.wakes.take(), shards.Set(0).Add(7).Add(9); got != want || len(r.wake) != 1 {
		t.Errorf("%b to be announced and %d looks, want %b and one look", got, len(r.wake), want)
	}
}

// What others commit in our shards is read, and what they commit elsewhere is not.
func TestHearing(t *testing.T) {
	t.Parallel()
	r := &Relay{leases: shards.NewLeases(), wake: make(chan struct{}, 1), metrics: newMetrics(prometheus.NewRegistry(), 1)}
	r.leases.Renew([]shards.Lease{{Shard: 3, Epoch: 1}}, time.Now().Add(time.Hour))
	for body, want := range map[string]int{
		`{"shards": 8}`:     1,
		`{"shards": 65535}`: 1,
		`{"shards": 65519}`: 1,
		`{"shards": 16}`:    0,
		`{"shards": 0}`:     0,
		`not JSON`:          1,
	} {
		r.hear([]byte(body))
		if got := len(r.wake); got != want {
			t.Errorf("%s: %d looks, want %d", body, got, want)
		}
		for len(r.wake) > 0 {
			<-r.wake
		}
	}
}

// Reads that take long are further apart, up to a limit.
func TestReadsMakeWay(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{
		time.Millisecond: readGap, 5 * time.Millisecond: 15 * time.Millisecond, time.Minute: maxReadGap,
	} {
		if got := gapAfter(took); got != want {
			t.Errorf("after a read of %v: %v until the next, want %v", took, got, want)
		}
	}
}
