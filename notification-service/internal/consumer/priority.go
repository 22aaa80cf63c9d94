package consumer

import (
	"context"
	"sync"
	"time"
)

// maxYield bounds how long a batch makes way for more urgent queues, so that
// an endless stream of those slows the others down and never stops them. It
// is also how long an urgent queue that makes no progress is waited for.
const maxYield = 100 * time.Millisecond

// refill is how long the broker may take to send more of an urgent queue that
// has more, once all that was in hand is acknowledged.
const refill = 2 * time.Millisecond

// A priority lets the queues that residents wait for go first: a batch of a
// later queue is not begun while deliveries of an earlier one are in hand
// and are getting on.
type priority struct {
	mu      sync.Mutex
	ranks   []queued
	changed chan struct{}
}

// queued is what a priority knows of a rank.
type queued struct {
	inHand int       // deliveries
	moved  time.Time // when it last got on
	more   bool      // there seem to be more at the broker
}

func newPriority(ranks int) *priority {
	return &priority{ranks: make([]queued, ranks), changed: make(chan struct{})}
}

// came notes that a delivery of rank is in hand.
func (p *priority) came(rank int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &p.ranks[rank]
	if r.inHand == 0 {
		r.moved = time.Now()
	}
	r.inHand++
}

// done notes that n deliveries of rank are out of hand. More says that the
// broker seems to have others: then the later ranks wait for those to come. If
// they did so after each lone delivery, a trickle would hold them up for most
// of the time.
func (p *priority) done(rank, n int, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &p.ranks[rank]
	r.inHand -= n
	r.moved, r.more = time.Now(), more
	if r.inHand == 0 {
		close(p.changed)
		p.changed = make(chan struct{})
	}
}

// yield returns once nothing more urgent than rank is in hand or about to be,
// or after maxYield.
func (p *priority) yield(ctx context.Context, rank int) {
	limit := time.NewTimer(maxYield)
	defer limit.Stop()
	for {
		changed, wait := p.look(rank)
		if wait <= 0 {
			return
		}
		again := time.NewTimer(wait)
		select {
		case <-changed:
		case <-again.C:
		case <-limit.C:
			wait = 0
		case <-ctx.Done():
			wait = 0
		}
		again.Stop()
		if wait == 0 {
			return
		}
	}
}

// look returns for how long at the most to make way for more urgent ranks.
func (p *priority) look(rank int) (changed <-chan struct{}, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.ranks[:rank] {
		switch {
		case r.inHand > 0:
			wait = max(wait, maxYield-time.Since(r.moved))
		case r.more:
			wait = max(wait, refill-time.Since(r.moved))
		}
	}
	return p.changed, wait
}
