package sse

// Held counts what the hub keeps of clients: in its own list, as receivers of
// topics, and in the wheel.
func (h *Hub) Held() (clients, receivers, seats int) {
	topics := []*topic{h.feed}
	h.mu.Lock()
	clients = len(h.clients)
	for _, t := range h.topics {
		topics = append(topics, t)
	}
	h.mu.Unlock()
	for _, t := range topics {
		t.mu.Lock()
		receivers += len(t.subs)
		t.mu.Unlock()
	}
	h.pulse.mu.Lock()
	defer h.pulse.mu.Unlock()
	for _, slot := range h.pulse.wheel {
		seats += len(slot)
	}
	return clients, receivers, seats
}
