package sse

// Held counts what the hub keeps of clients: in its own list, as subscribers of
// topics, and in the timer wheel.
func (h *Hub) Held() (clients, subscribers, slots int) {
	topics := []*topic{h.feed}
	h.mu.Lock()
	clients = len(h.clients)
	for _, t := range h.topics {
		topics = append(topics, t)
	}
	h.mu.Unlock()
	for _, t := range topics {
		t.mu.Lock()
		subscribers += len(t.subscribers)
		t.mu.Unlock()
	}
	h.wheel.mu.Lock()
	defer h.wheel.mu.Unlock()
	for _, slot := range h.wheel.slots {
		slots += len(slot)
	}
	return clients, subscribers, slots
}
