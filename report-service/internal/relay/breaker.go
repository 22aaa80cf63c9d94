package relay

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/event"
)

const (
	// After tripAfter refusals in a row of one routing key its circuit opens.
	// It is below the attempts of a row, so that no row fails for it.
	tripAfter = 3
	// While it is open, one message is published as a probe, after a pause that
	// doubles from minProbe to maxProbe. The pause is short: residents wait for
	// the queue.
	minProbe = time.Second
	maxProbe = 5 * time.Second
)

// A breaker has a circuit per routing key, so that a queue that refuses
// messages does not fail row after row. Such a refusal is never the fault of a
// message, because its queue depends on its routing key alone. Only a key
// outside of the contract has no queue at all; it has no circuit, and its rows
// fail.
//
//	closed ── 3 refusals in a row ──► open ── pause is over ──► half-open
//	  ▲                                ▲                         │    │
//	  │                                └──── probe refused ──────┘    │
//	  └───────────────────────── probe confirmed ─────────────────────┘
//
// Messages flow while it is closed. Circuits outlive connections, so that a new
// connection does not reset their counts. The session keeps the state
// half-open, and has one probe at a time.
type breaker struct {
	mu       sync.Mutex
	circuits map[string]*circuit // by routing key
}

type circuit struct {
	refusals int // in a row
	reason   string
	open     bool
	probes   backoff.Backoff
	probeAt  time.Time
}

func newBreaker() *breaker {
	b := &breaker{circuits: make(map[string]*circuit)}
	for _, key := range event.AllKeys() {
		b.circuits[string(key)] = &circuit{probes: backoff.Backoff{First: minProbe, Max: maxProbe}}
	}
	return b
}

// recordRefusal records that the broker refused a message, and reports whether
// the circuit is open, and whether this refusal opened it.
func (b *breaker) recordRefusal(key, reason string, now time.Time) (open, opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[key]
	if c == nil {
		return false, false
	}
	c.reason = reason
	c.refusals++
	opened = !c.open && c.refusals >= tripAfter
	if opened {
		c.open = true
		c.probeAt = now.Add(c.probes.Next())
	}
	return c.open, opened
}

// recordProbeRefusal records that the probe of an open circuit was refused.
func (b *breaker) recordProbeRefusal(key, reason string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[key]
	c.reason = reason
	c.probeAt = now.Add(c.probes.Next())
}

// recordSuccess records that a queue took a message, and reports whether that
// closed the circuit.
func (b *breaker) recordSuccess(key string) (closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[key]
	if c == nil || c.refusals == 0 {
		return false // nearly always
	}
	closed = c.open
	c.refusals, c.open, c.reason = 0, false, ""
	c.probes.Reset()
	return closed
}

// openKeys returns the routing keys whose circuit is open. It is never nil, which would be
// null in readSQL.
func (b *breaker) openKeys() []string {
	return slices.AppendSeq([]string{}, maps.Keys(b.reasons()))
}

// has reports whether key belongs to the contract. Its queue may be missing,
// but not through the fault of a message.
func (b *breaker) has(key string) bool { return b.circuits[key] != nil } // the set does not change

// isOpen reports whether the circuit of key is open.
func (b *breaker) isOpen(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[key]
	return c != nil && c.open
}

// probeDue returns a key whose open circuit is to be probed now, or "".
func (b *breaker) probeDue(now time.Time) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, c := range b.circuits {
		if c.open && !now.Before(c.probeAt) {
			return key
		}
	}
	return ""
}

// reasons returns why circuits are open, by key.
func (b *breaker) reasons() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	reasons := make(map[string]string)
	for key, c := range b.circuits {
		if c.open {
			reasons[key] = c.reason
		}
	}
	return reasons
}
