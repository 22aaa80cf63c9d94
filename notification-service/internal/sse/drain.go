package sse

import (
	"context"
	"math/rand/v2"
	"time"
)

// drainStep is the pace at which clients are sent away: often enough that no
// second sees many more than another.
const drainStep = 20 * time.Millisecond

// Drain sends everyone away, evenly and in random order, and tells whoever
// comes meanwhile to try again. It takes at most the drain window, less for a
// few, and returns when all are gone or, a write timeout later, given up on.
func (h *Hub) Drain(ctx context.Context) {
	h.mu.Lock()
	h.drained = true
	h.mu.Unlock()
	clients := h.all()
	rand.Shuffle(len(clients), func(i, j int) { clients[i], clients[j] = clients[j], clients[i] })
	window := min(h.cfg.DrainWindow, time.Duration(len(clients))*time.Second/drainRate)
	h.log.Info().Int("streams", len(clients)).Dur("window_ms", window).Msg("draining streams")

	ctx, cancel := context.WithTimeout(ctx, window+h.cfg.WriteTimeout)
	defer cancel()
	tick := time.NewTicker(drainStep)
	defer tick.Stop()
	steps := max(1, int(window/drainStep))
	for i := 0; i < steps || h.count() > 0; i++ {
		if i < steps {
			dismissAll(clients[len(clients)*i/steps : len(clients)*(i+1)/steps])
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func dismissAll(clients []*client) {
	for _, c := range clients {
		c.dismiss(reasonDrain, retryMoved.pick())
	}
}

func (h *Hub) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients)
}
