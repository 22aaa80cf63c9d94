// Package ssetest connects to event streams for tests and measurements, and has a ledger
// that proves that nothing was missed or doubled.
package ssetest

import (
	"strconv"
	"strings"
	"sync"

	"github.com/cityconnect/cityconnect/platform/sse"
)

// A Ledger watches the ids of one stream and proves that nothing was missed
// or doubled: the number of each notification must follow the one before.
// The zero value is ready for use.
type Ledger struct {
	mu    sync.Mutex
	last  []position // in each of the reader's streams
	count Count
}

// A Count is what a Ledger has seen.
type Count struct {
	Received   int64 // notifications
	Missing    int64 // numbers that were left out
	Doubled    int64 // numbers that came again
	OutOfOrder int64 // ids that are none, or that moved in two streams at once
	Resets     int64
}

type position struct {
	epoch string
	seq   int64
}

// Observe notes e. It ignores what carries no position, such as the events
// of the public feed.
func (l *Ledger) Observe(e sse.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e.Type {
	case sse.Ready, sse.Reset, sse.Notification:
	default:
		return
	}
	now, ok := parseID(e.ID)
	switch {
	case !ok:
		l.count.OutOfOrder++
		return
	case e.Type == sse.Reset:
		l.count.Resets++
	case e.Type == sse.Notification:
		l.count.Received++
		l.step(now, 1)
	default:
		l.step(now, 0) // a stream that is resumed begins where it was left
	}
	l.last = now
}

// Count returns the count so far.
func (l *Ledger) Count() Count {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// Last returns the number that was seen last, in a stream of a resident.
func (l *Ledger) Last() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		return 0
	}
	return l.last[0].seq
}

// step compares now with the last position: want is by how much all the
// numbers together have to grow.
func (l *Ledger) step(now []position, want int64) {
	if l.last == nil {
		return
	}
	if len(now) != len(l.last) {
		l.count.OutOfOrder++
		return
	}
	grown, moved := int64(0), 0
	for i, p := range now {
		if p.epoch != l.last[i].epoch {
			l.count.OutOfOrder++
			return
		}
		if p.seq != l.last[i].seq {
			moved++
		}
		grown += p.seq - l.last[i].seq
	}
	switch {
	case moved > 1:
		l.count.OutOfOrder++
	case grown > want:
		l.count.Missing += grown - want
	case grown < want:
		l.count.Doubled += want - grown
	}
}

// parseID reads v1.<epoch>.<seq> with any number of further pairs.
func parseID(id string) ([]position, bool) {
	parts := strings.Split(id, ".")
	if len(parts) < 3 || len(parts)%2 == 0 || parts[0] != "v1" {
		return nil, false
	}
	positions := make([]position, 0, len(parts)/2)
	for i := 1; i < len(parts); i += 2 {
		seq, err := strconv.ParseInt(parts[i+1], 10, 64)
		if err != nil {
			return nil, false
		}
		positions = append(positions, position{parts[i], seq})
	}
	return positions, true
}
