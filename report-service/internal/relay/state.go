package relay

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
)

// A State is what this replica of the relay is doing.
type State struct {
	ID          uuid.UUID
	Connected   bool
	Since       time.Time // of Connected
	LastError   string    // why there is no connection
	Blocked     string    // the broker's reason to take no messages, empty if it does
	Shards      int       // owned
	LeaseValid  bool
	InFlight    int
	Window      int
	HeldBack    map[string]string // kinds that their queue does not take, and why
	LastPublish time.Time         // zero if never

	PublishedPerSecond     float64       // lately
	ConfirmP50, ConfirmP99 time.Duration // of the last minute, zero if it had none

	// Since the start.
	Returned, Nacked int64         // messages that the broker refused
	Connects         int64         // connections made
	BlockedFor       time.Duration // how long the broker took no messages, the present time included
}

// A broker is what is known of the connection. It is written by the supervisor
// and read by whoever asks, so it is no part of a session.
type broker struct {
	mu          sync.Mutex
	connected   bool
	since       time.Time
	lastError   string
	blocked     string
	blockedAt   time.Time
	lastPublish time.Time
}

// State tells what this replica is doing.
func (r *Relay) State() State {
	now := time.Now()
	rate, p50, p99 := r.recent.figures(now)
	r.broker.mu.Lock()
	defer r.broker.mu.Unlock()
	blockedFor := time.Duration(total(r.metrics.blockedSeconds) * float64(time.Second))
	if r.broker.blocked != "" {
		blockedFor += now.Sub(r.broker.blockedAt)
	}
	return State{
		ID:          r.id,
		Connected:   r.broker.connected,
		Since:       r.broker.since,
		LastError:   r.broker.lastError,
		Blocked:     r.broker.blocked,
		Shards:      r.leases.Owned(),
		LeaseValid:  r.leases.Valid(),
		InFlight:    int(max(0, r.outstanding.Load())),
		Window:      r.cfg.Window,
		HeldBack:    r.breakers.reasons(),
		LastPublish: r.broker.lastPublish,

		PublishedPerSecond: rate, ConfirmP50: p50, ConfirmP99: p99,
		Returned:   int64(total(r.metrics.refused.WithLabelValues(returned))),
		Nacked:     int64(total(r.metrics.refused.WithLabelValues(nacked))),
		Connects:   int64(total(r.metrics.connects)),
		BlockedFor: blockedFor,
	}
}

// Probe is a health check that is optional for the service: requests are
// accepted while the broker is away, and relayed later.
func (r *Relay) Probe(context.Context) error {
	switch s := r.State(); {
	case !s.Connected:
		return errors.New("no connection to the broker: " + s.LastError)
	case s.Blocked != "":
		return errors.New("the broker takes no messages: " + s.Blocked)
	case len(s.HeldBack) > 0:
		return errors.New("some kinds of messages are held back")
	default:
		return nil
	}
}

func (r *Relay) connected() {
	r.broker.mu.Lock()
	defer r.broker.mu.Unlock()
	r.broker.connected, r.broker.since, r.broker.lastError = true, time.Now(), ""
	r.metrics.connected.Set(1)
	r.metrics.connects.Inc()
}

func (r *Relay) disconnected(cause error) {
	r.broker.mu.Lock()
	defer r.broker.mu.Unlock()
	r.broker.connected, r.broker.since = false, time.Now()
	if cause != nil { // an end that we wanted explains nothing
		r.broker.lastError = cause.Error()
	}
	r.metrics.connected.Set(0)
	r.unblockLocked() // a connection takes its blocking with it, unannounced
}

func (r *Relay) blocked(reason string) {
	r.broker.mu.Lock()
	defer r.broker.mu.Unlock()
	r.broker.blocked, r.broker.blockedAt = reason, time.Now()
	r.metrics.blocked.Set(1)
}

func (r *Relay) isBlocked() bool {
	r.broker.mu.Lock()
	defer r.broker.mu.Unlock()
	return r.broker.blocked != ""
}

func (r *Relay) unblocked() {
	r.broker.mu.Lock()
	defer r.broker.mu.Unlock()
	r.unblockLocked()
}

func (r *Relay) unblockLocked() {
	if r.broker.blocked != "" {
		r.metrics.blockedSeconds.Add(time.Since(r.broker.blockedAt).Seconds())
	}
	r.broker.blocked = ""
	r.metrics.blocked.Set(0)
}

func (r *Relay) publishedNow(now time.Time) {
	r.broker.mu.Lock()
	defer r.broker.mu.Unlock()
	r.broker.lastPublish = now
}
