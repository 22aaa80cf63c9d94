package sse

import (
	"context"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const (
	// repairDelay gives a number that is only late the time to arrive: replicas
	// announce independently, and often the second announcement comes first.
	repairDelay = 3 * time.Millisecond
	// repairTopics and repairRows bound one query.
	repairTopics, repairRows = 128, 100
	// retryPause spares a database that does not answer.
	retryPause = time.Second
	// queryTimeout bounds each query of the background.
	queryTimeout = 10 * time.Second
)

// A topicSet has the topics that miss notifications.
type topicSet struct {
	wakeup chan struct{}

	mu     sync.Mutex
	topics map[*topic]struct{}
}

func (s *topicSet) add(t *topic) {
	s.mu.Lock()
	s.topics[t] = struct{}{}
	s.mu.Unlock()
	select {
	case s.wakeup <- struct{}{}:
	default: // a wake-up is pending
	}
}

// take removes up to limit topics from the set and returns them.
func (s *topicSet) take(limit int) []*topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	topics := make([]*topic, 0, min(limit, len(s.topics)))
	for t := range s.topics {
		if len(topics) == limit {
			break
		}
		topics = append(topics, t)
		delete(s.topics, t)
	}
	return topics
}

// repair reads what topics miss from the database until ctx ends.
func (h *Hub) repair(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.incomplete.wakeup:
		}
		if backoff.Sleep(ctx, repairDelay) != nil {
			return
		}
		for ctx.Err() == nil && h.repairSome(ctx) {
		}
	}
}

// repairSome repairs some topics and reports whether there were any.
func (h *Hub) repairSome(ctx context.Context) bool {
	topics := make(map[notification.Stream]*topic)
	var heads []notification.Head
	for _, t := range h.incomplete.take(repairTopics) {
		if p, missing := t.position(); missing > 0 {
			topics[t.name] = t
			heads = append(heads, notification.Head{Stream: t.name, Position: p})
		}
	}
	if len(topics) == 0 {
		return false
	}
	h.metrics.repairs.Add(float64(len(topics)))
	queryCtx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	found, err := h.store.Since(queryCtx, heads, repairRows)
	for _, n := range found {
		h.accept(topics[n.Stream], n, time.Time{}) // adds the topic again if more is missing
	}
	if err == nil && len(found) > 0 {
		return true
	}
	if err != nil && ctx.Err() == nil {
		h.log.Warn().Str("error", pgpool.LogText(err)).Int("streams", len(topics)).Msg("reading missing notifications failed, will retry")
	}
	_ = backoff.Sleep(ctx, backoff.Jitter(retryPause)) // the caller checks ctx, too
	for _, t := range topics {
		h.incomplete.add(t)
	}
	return true
}
