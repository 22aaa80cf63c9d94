package relay

import (
	"slices"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/platform/event"
)

const (
	// tripsAfter refusals in a row of one kind, its queue is missing or full:
	// it is below the attempts of a row, so that none is failed for it.
	tripsAfter = 3
	// Then one message of the kind is tried, again and again.
	minProbe = time.Second
	maxProbe = 5 * time.Second
)

// breakers hold back a kind of message that its queue does not take, instead
// of failing row after row. That is never the fault of a message: to which
// queue it goes depends on its routing key alone. Only a key outside of the
// contract has no queue for good; it has no breaker, and its rows fail.
//
// They outlive connections, so that a reconnect does not count anew.
type breakers struct {
	mu    sync.Mutex
	kinds map[string]*breaker
}

type breaker struct {
	refusals int // in a row
	reason   string
	since    time.Time // when it opened, zero while it is closed
	probeAt  time.Time
	wait     time.Duration
}

func newBreakers() *breakers {
	kinds := make(map[string]*breaker)
	for _, key := range event.Keys() {
		kinds[string(key)] = new(breaker)
	}
	return &breakers{kinds: kinds}
}

// refused notes a refusal, and returns whether the kind is held back for it.
// opened is true if it was not before.
func (b *breakers) refused(key, reason string, now time.Time) (held, opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kind := b.kinds[key]
	if kind == nil {
		return false, false
	}
	kind.reason = reason
	if kind.refusals++; kind.refusals < tripsAfter {
		return false, false
	}
	opened = kind.since.IsZero()
	if opened {
		kind.since, kind.wait = now, minProbe
		kind.probeAt = now.Add(kind.wait)
	}
	return true, opened
}

// probed notes that the try of an open kind was refused as well.
func (b *breakers) probed(key, reason string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kind := b.kinds[key]
	kind.reason = reason
	kind.wait = min(2*kind.wait, maxProbe) // short at most: when the queue is back, residents wait
	kind.probeAt = now.Add(kind.wait)
}

// taken notes that a queue took a message. It returns whether that closed the
// breaker.
func (b *breakers) taken(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	kind := b.kinds[key]
	if kind == nil || kind.refusals == 0 {
		return false // nearly always
	}
	open := !kind.since.IsZero()
	*kind = breaker{}
	return open
}

// shut returns the kinds that are held back.
func (b *breakers) shut() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := []string{}
	for key, kind := range b.kinds {
		if !kind.since.IsZero() {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// isShut tells whether key is held back.
func (b *breakers) isShut(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	kind := b.kinds[key]
	return kind != nil && !kind.since.IsZero()
}

// due returns a kind that is to be tried now, or "".
func (b *breakers) due(now time.Time) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, kind := range b.kinds {
		if !kind.since.IsZero() && !now.Before(kind.probeAt) {
			return key
		}
	}
	return ""
}

// reasons returns the kinds that are held back, and why.
func (b *breakers) reasons() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	reasons := make(map[string]string)
	for key, kind := range b.kinds {
		if !kind.since.IsZero() {
			reasons[key] = kind.reason
		}
	}
	return reasons
}
