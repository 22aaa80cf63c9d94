package sse

import (
	"context"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
)

const (
	// repairDelay lets a number that is only late come by itself: replicas
	// announce independently, and often it is the second that comes first.
	repairDelay = 3 * time.Millisecond
	// repairTopics and repairRows bound one query.
	repairTopics, repairRows = 128, 100
	// repairPause spares a database that does not answer.
	repairPause = time.Second
	// queryTimeout bounds each query of the background.
	queryTimeout = 10 * time.Second
)

// A backlog is the set of topics that miss something.
type backlog struct {
	bell chan struct{}

	mu     sync.Mutex
	topics map[*topic]struct{}
}

func newBacklog() *backlog {
	return &backlog{bell: make(chan struct{}, 1), topics: make(map[*topic]struct{})}
}

func (b *backlog) add(t *topic) {
	b.mu.Lock()
	b.topics[t] = struct{}{}
	b.mu.Unlock()
	select {
	case b.bell <- struct{}{}:
	default: // it rings already
	}
}

// take returns up to limit topics, and takes them out of the set.
func (b *backlog) take(limit int) []*topic {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]*topic, 0, min(limit, len(b.topics)))
	for t := range b.topics {
		if len(list) == limit {
			break
		}
		list = append(list, t)
		delete(b.topics, t)
	}
	return list
}

// repair fills the holes of topics from the database until ctx ends.
func (h *Hub) repair(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.repairs.bell:
		}
		pause(ctx, repairDelay)
		for ctx.Err() == nil && h.repairSome(ctx) {
		}
	}
}

// repairSome sees to some topics and reports whether there were any.
func (h *Hub) repairSome(ctx context.Context) bool {
	lacking := make(map[notification.Stream]*topic)
	var heads []notification.Head
	for _, t := range h.repairs.take(repairTopics) {
		if p, missing := t.position(); missing > 0 {
			lacking[t.name] = t
			heads = append(heads, notification.Head{Stream: t.name, Position: p})
		}
	}
	if len(lacking) == 0 {
		return false
	}
	h.metrics.repairs.Add(float64(len(lacking)))
	found, err := h.readSince(ctx, heads)
	for _, n := range found {
		h.accept(lacking[n.Stream], n, time.Time{}) // puts it back if more is missing
	}
	if err == nil && len(found) > 0 {
		return true
	}
	if err != nil && ctx.Err() == nil {
		h.log.Warn().Err(err).Int("streams", len(lacking)).Msg("cannot read what streams miss")
	}
	pause(ctx, repairPause)
	for _, t := range lacking {
		h.repairs.add(t)
	}
	return true
}

func (h *Hub) readSince(ctx context.Context, heads []notification.Head) ([]notification.Notification, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	return h.store.Since(ctx, heads, repairRows)
}

// pause waits for d, or less if ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
