package consumer

// BreakChannels makes the broker close the channel of every worker, by a
// violation of the protocol.
func (c *Consumer) BreakChannels() (broken int) {
	for _, q := range c.queues {
		q.mu.Lock()
		for s := range q.active {
			if s.ch.Ack(1<<40, false) == nil {
				broken++
			}
		}
		q.mu.Unlock()
	}
	return broken
}
