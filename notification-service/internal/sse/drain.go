package sse

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// drainRate is how many clients a second may be closed without a bound on
	// the time it takes: as many reconnect elsewhere without being noticed.
	drainRate = 500
	// drainStep is the pace at which clients are closed: often enough that no
	// second sees many more than another.
	drainStep = 20 * time.Millisecond
)

// Drain closes all streams, evenly and in random order, and refuses new ones.
// It takes at most the drain window, less for few clients, and returns when all
// are gone, or a write timeout after the window.
func (h *Hub) Drain(ctx context.Context) {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	clients := h.snapshot()
	rand.Shuffle(len(clients), func(i, j int) { clients[i], clients[j] = clients[j], clients[i] })
	window := min(h.cfg.DrainWindow, time.Duration(len(clients))*time.Second/drainRate)
	h.log.Info().Int("streams", len(clients)).Dur("window_ms", window).Msg("draining streams")

	ctx, cancel := context.WithTimeout(ctx, window+h.cfg.WriteTimeout)
	defer cancel()
	tick := time.NewTicker(drainStep)
	defer tick.Stop()
	steps := max(1, int(window/drainStep))
	for i := 0; i < steps || h.clientCount() > 0; i++ {
		if i < steps {
			for _, c := range clients[len(clients)*i/steps : len(clients)*(i+1)/steps] {
				c.closeGracefully(reasonDrain, retryMoved.random())
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
