package consumer

import (
	"context"
	"sync"
	"time"
)

// How the gate probes: soon at first, then at a rate that a recovering
// database does not feel.
const (
	firstProbe = 250 * time.Millisecond
	slowProbe  = 5 * time.Second
)

// A gate holds every worker back while the database is away, and lets one at
// a time try whether it is back. Without it an outage would spend every
// message's attempts within a minute.
type gate struct {
	changed func(open bool) // told of each change, under no lock

	mu      sync.Mutex
	opened  chan struct{} // closed while the gate is open
	probing bool
	delay   time.Duration
}

func newGate(changed func(open bool)) *gate {
	opened := make(chan struct{})
	close(opened)
	return &gate{changed: changed, opened: opened, delay: firstProbe}
}

// enter returns once the database may be used. With probe it may be used for
// one message only, and the caller owes a call of probed.
func (g *gate) enter(ctx context.Context) (probe bool, err error) {
	for {
		opened, delay, mine := g.look()
		timer := time.NewTimer(delay)
		select {
		case <-opened:
			timer.Stop()
			return false, nil
		case <-timer.C: // if another's turn, it may have left meanwhile
			if mine {
				return true, nil
			}
		case <-ctx.Done():
			timer.Stop()
			if mine {
				g.leave()
			}
			return false, ctx.Err()
		}
	}
}

// look makes the caller the prober if the gate is shut and nobody is.
func (g *gate) look() (opened chan struct{}, delay time.Duration, mine bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	mine = !isClosed(g.opened) && !g.probing
	g.probing = g.probing || mine
	return g.opened, g.delay, mine
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probing = false
}

// shut closes the gate: the database was found to be away.
func (g *gate) shut() {
	g.mu.Lock()
	wasOpen := isClosed(g.opened)
	if wasOpen {
		g.opened, g.delay = make(chan struct{}), firstProbe
	}
	g.mu.Unlock()
	if wasOpen {
		g.changed(false)
	}
}

// probed ends the probe that enter granted.
func (g *gate) probed(back bool) {
	g.mu.Lock()
	g.probing = false
	g.delay = min(2*g.delay, slowProbe)
	reopened := back && !isClosed(g.opened)
	if reopened {
		close(g.opened)
	}
	g.mu.Unlock()
	if reopened {
		g.changed(true)
	}
}

// isOpen tells whether the database is thought to be there.
func (g *gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return isClosed(g.opened)
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
