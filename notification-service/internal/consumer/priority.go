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

// refill is how long the broker may take to send more of an urgent queue, once
// all that was in hand is acknowledged.
const refill = 2 * time.Millisecond

// A priority lets the queues that residents wait for go first: a batch of a
// later queue is not begun while deliveries of an earlier one are in hand
// and are getting on.
type priority struct {
	mu      sync.Mutex
	waiting []int       // deliveries in hand, by rank
	moved   []time.Time // when the rank last got on
	changed chan struct{}
}

func newPriority(ranks int) *priority {
	return &priority{waiting: make([]int, ranks), moved: make([]time.Time, ranks), changed: make(chan struct{})}
}

// add notes that n more deliveries of rank are in hand, or fewer if negative.
func (p *priority) add(rank, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[rank] == 0 || n < 0 {
		p.moved[rank] = time.Now()
	}
	p.waiting[rank] += n
	if p.waiting[rank] == 0 {
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
	for r := range rank {
		patience := refill
		if p.waiting[r] > 0 {
			patience = maxYield
		}
		wait = max(wait, patience-time.Since(p.moved[r]))
	}
	return p.changed, wait
}
