package relay

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// A State is the state of this replica of the relay.
type State struct {
	ID           uuid.UUID
	Connected    bool
	Since        time.Time // of Connected
	LastError    string    // why there is no connection
	Blocked      string    // the broker's reason for blocking publishers, empty if it does not
	Shards       int       // owned
	LeaseValid   bool
	InFlight     int
	Window       int
	OpenCircuits map[string]string // routing keys with an open circuit, and why
	LastPublish  time.Time         // zero if never

	PublishedPerSecond     float64       // of the last ten seconds
	ConfirmP50, ConfirmP99 time.Duration // of about the last minute, zero without confirms

	// Since the start.
	Published        int64         // messages that a queue confirmed
	Returned, Nacked int64         // messages that the broker refused
	Connects         int64         // connections made
	BlockedFor       time.Duration // how long the broker blocked publishers, including now
}

// State returns the state of this replica.
func (r *Relay) State() State {
	now := time.Now()
	perSecond, lastPublish := r.metrics.rate.Read(now)
	p50, p99 := r.metrics.confirmQuantiles()
	s := r.status
	s.mu.Lock()
	defer s.mu.Unlock()
	blockedFor := time.Duration(total(r.metrics.blockedSeconds) * float64(time.Second))
	if s.blocked != "" {
		blockedFor += now.Sub(s.blockedAt)
	}
	return State{
		ID: r.id, Connected: s.connected, Since: s.since, LastError: s.lastError, Blocked: s.blocked,
		Shards: r.leases.Owned(), LeaseValid: r.leases.Valid(),
		InFlight: int(max(0, r.sending.Load())), Window: r.cfg.Window, OpenCircuits: r.breaker.reasons(),
		Published: r.metrics.taken(), LastPublish: lastPublish, PublishedPerSecond: perSecond, ConfirmP50: p50, ConfirmP99: p99,
		Returned: int64(total(r.metrics.refused.WithLabelValues(returned))),
		Nacked:   int64(total(r.metrics.refused.WithLabelValues(nacked))),
		Connects: int64(total(r.metrics.connects)), BlockedFor: blockedFor,
	}
}

// Probe is a health check that is optional for the service: requests are
// accepted while the broker is away, and relayed later.
func (r *Relay) Probe(context.Context) error {
	switch s := r.State(); {
	case !s.Connected:
		return errors.New("no connection to the broker: " + s.LastError)
	case s.Blocked != "":
		return errors.New("the broker accepts no messages: " + s.Blocked)
	case len(s.OpenCircuits) > 0:
		return errors.New("queues refuse messages")
	default:
		return nil
	}
}

// A status is the state of the connection. The supervisor writes it, and any
// goroutine may read it, so it is not part of a session.
type status struct {
	metrics *metrics

	mu        sync.Mutex
	connected bool
	since     time.Time
	lastError string
	blocked   string
	blockedAt time.Time
}

// observe keeps the state of the connection.
func (s *status) observe(c rabbit.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.blocked != "" {
		s.metrics.blockedSeconds.Add(now.Sub(s.blockedAt).Seconds())
	}
	s.blocked, s.blockedAt = c.Blocked, now
	switch {
	case c.Connected && s.connected: // only Blocked has changed
		return
	case c.Connected:
		s.lastError = ""
		s.metrics.connects.Inc()
	case c.Cause != nil: // an intended end has none
		s.lastError = c.Cause.Error()
	}
	s.connected, s.since = c.Connected, now
}

func (s *status) isBlocked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blocked != ""
}
