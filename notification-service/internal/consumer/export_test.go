package consumer

// BreakChannels makes the broker close the channel of every worker, by a
// violation of the protocol.
func (c *Consumer) BreakChannels() (broken int) {
	for _, l := range c.lanes {
		l.crew.mu.Lock()
		for s := range l.crew.members {
			if s.ch.Ack(1<<40, false) == nil {
				broken++
			}
		}
		l.crew.mu.Unlock()
	}
	return broken
}
