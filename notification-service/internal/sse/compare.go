package sse

import (
	"context"
	"fmt"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// Compare asks for a comparison of all topics with the database, such as after
// the connection to the broker was away and announcements were lost. One of them
// may have been a moderation, so that all cached frames are dropped.
func (h *Hub) Compare() {
	h.forget()
	h.compareSoon()
}

func (h *Hub) compareSoon() {
	select {
	case h.compareNow <- struct{}{}:
	default: // one is due already
	}
}

// compare compares all topics with the database, at intervals and on request, until
// ctx ends. It also removes the topics that are no longer used.
func (h *Hub) compare(ctx context.Context) {
	tick := time.NewTicker(h.cfg.CompareEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-h.compareNow:
		}
		h.removeUnusedTopics(time.Now())
		if err := h.compareAll(ctx); err != nil && ctx.Err() == nil {
			h.log.Warn().Str("error", pgpool.LogText(err)).Msg("comparing streams with the database failed, will retry")
			_ = backoff.Sleep(ctx, backoff.Jitter(retryPause)) // the loop checks ctx, too
			h.compareSoon()
		}
	}
}

// compareAll finds what the topics miss without knowing. A stream's last number
// is written in the transaction that writes the notification, so it tells
// everything.
func (h *Hub) compareAll(ctx context.Context) error {
	before := h.positions()
	names := make([]notification.Stream, 0, len(before))
	for t := range before {
		names = append(names, t.name)
	}
	if len(names) == 0 {
		h.metrics.positionLag.Set(0)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	list, err := h.store.Heads(ctx, names)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	heads := make(map[notification.Stream]notification.Position, len(list))
	for _, head := range list {
		heads[head.Stream] = head.Position
	}
	var lag int64
	for t, was := range before {
		head, known := heads[t.name]
		if !known || head.Seq < was.Seq { // the database was restored to an earlier state
			h.endTopic(t)
			continue
		}
		lag += head.Seq - was.Seq
		h.resync(t, t.learn(head))
	}
	h.metrics.positionLag.Set(float64(lag))
	return nil
}

// positions returns the positions of all topics that have one.
func (h *Hub) positions() map[*topic]notification.Position {
	topics := h.allTopics()
	positions := make(map[*topic]notification.Position, len(topics))
	for _, t := range topics {
		if p, _ := t.position(); p.Epoch != "" {
			positions[t] = p
		}
	}
	return positions
}
