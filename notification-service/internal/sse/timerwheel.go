package sse

import (
	"context"
	"sync"
	"time"
)

// wheelSlots is the size of the wheel in ticks; a heartbeat is due after
// heartbeatTicks. The rest is room for a late one.
const wheelSlots, heartbeatTicks = 32, 20

// A timerWheel visits every client when something is due for it: a heartbeat,
// or its end. One wheel and one timer serve all clients, so that an idle client
// costs neither a goroutine nor a timer.
type timerWheel struct {
	tick      time.Duration
	heartbeat durationRange // the pause before one, a tenth around the configured

	mu      sync.Mutex
	current int
	slots   [wheelSlots][]*client
}

// A slot is where the wheel has a client.
type slot struct {
	index  int32
	number int8
	taken  bool
}

func newTimerWheel(heartbeat time.Duration) *timerWheel {
	return &timerWheel{
		tick:      heartbeat / heartbeatTicks,
		heartbeat: durationRange{heartbeat * 9 / 10, heartbeat * 11 / 10},
	}
}

// add has c visited when its first heartbeat is due.
func (w *timerWheel) add(c *client, now time.Time) { w.schedule(c, now, w.heartbeat.random()) }

// schedule has c visited after d, and in any case before it expires.
func (w *timerWheel) schedule(c *client, now time.Time, d time.Duration) {
	ticks := int(min(d, c.left(now)) / w.tick)
	w.mu.Lock()
	defer w.mu.Unlock()
	number := (w.current + min(max(ticks, 1), wheelSlots-1)) % wheelSlots
	c.slot = slot{int32(len(w.slots[number])), int8(number), true}
	w.slots[number] = append(w.slots[number], c)
}

// remove forgets c. It does nothing if the wheel does not have it.
func (w *timerWheel) remove(c *client) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !c.slot.taken {
		return
	}
	c.slot.taken = false
	clients := w.slots[c.slot.number]
	last := len(clients) - 1
	clients[c.slot.index] = clients[last]
	clients[c.slot.index].slot.index = c.slot.index
	clients[last] = nil
	w.slots[c.slot.number] = clients[:last]
}

// run turns the wheel until ctx ends.
func (w *timerWheel) run(ctx context.Context) {
	tick := time.NewTicker(w.tick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for _, c := range w.advance() {
				w.visit(c, now)
			}
		}
	}
}

// advance returns the clients of the next slot and empties it.
func (w *timerWheel) advance() []*client {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current = (w.current + 1) % wheelSlots
	due := w.slots[w.current]
	w.slots[w.current] = nil
	for _, c := range due {
		c.slot.taken = false
	}
	return due
}

// visit does the work that is due for c and schedules the next visit.
func (w *timerWheel) visit(c *client, now time.Time) {
	// A tick early rather than a tick late: no stream outlives its token.
	if left := c.left(now); left < w.tick {
		retry := retryMoved
		if c.endsWithToken { // earlier it would be served once more, for a moment
			retry = retry.after(left)
		}
		c.closeGracefully(reasonLifetime, retry.random())
		return
	}
	pause := w.heartbeat.random()
	if quietFor, open := c.sendHeartbeat(now, pause-w.tick); open {
		w.schedule(c, now, pause-quietFor)
	}
}
