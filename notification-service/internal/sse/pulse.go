package sse

import (
	"context"
	"sync"
	"time"
)

// slots is the size of the wheel in ticks; a heartbeat takes beatTicks. The
// rest is room for a late one.
const slots, beatTicks = 32, 20

// A pulse looks at every client when something is due for it: a heartbeat, or
// its end. One wheel and one timer serve them all, so that an idle client
// costs neither a goroutine nor a timer.
type pulse struct {
	tick time.Duration

	mu    sync.Mutex
	now   int
	wheel [slots][]*client
}

// A seat is where the wheel has a client.
type seat struct {
	slot, index int
	taken       bool
}

func newPulse(heartbeat time.Duration) *pulse { return &pulse{tick: heartbeat / beatTicks} }

// add has c looked at after its first heartbeat's time.
func (p *pulse) add(c *client, now time.Time) { p.put(c, now, around(beatTicks*p.tick, 0.1)) }

// put has c looked at after d, and in any case before it expires.
func (p *pulse) put(c *client, now time.Time, d time.Duration) {
	ticks := int(min(d, c.expires.Sub(now)) / p.tick)
	p.mu.Lock()
	defer p.mu.Unlock()
	slot := (p.now + min(max(ticks, 1), slots-1)) % slots
	c.seat = seat{slot, len(p.wheel[slot]), true}
	p.wheel[slot] = append(p.wheel[slot], c)
}

// drop forgets c, which has ended.
func (p *pulse) drop(c *client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !c.seat.taken {
		return
	}
	c.seat.taken = false
	slot := p.wheel[c.seat.slot]
	last := len(slot) - 1
	slot[c.seat.index] = slot[last]
	slot[c.seat.index].seat.index = c.seat.index
	slot[last] = nil
	p.wheel[c.seat.slot] = slot[:last]
}

// run turns the wheel until ctx ends.
func (p *pulse) run(ctx context.Context) {
	tick := time.NewTicker(p.tick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for _, c := range p.turn() {
				p.look(c, now)
			}
		}
	}
}

func (p *pulse) turn() []*client {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = (p.now + 1) % slots
	due := p.wheel[p.now]
	p.wheel[p.now] = nil
	for _, c := range due {
		c.seat.taken = false
	}
	return due
}

// look does what is due for c and when to look next.
func (p *pulse) look(c *client, now time.Time) {
	// Expiry is rounded down to a tick, so that no stream outlives its token.
	if c.expires.Sub(now) < p.tick {
		c.dismiss(reasonLifetime, retryMoved.pick())
		return
	}
	beat := around(beatTicks*p.tick, 0.1)
	since, alive := c.beat(now, beat-p.tick)
	if alive {
		p.put(c, now, since.Add(beat).Sub(now))
	}
}
