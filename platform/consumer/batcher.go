package consumer

import (
	"context"
	"sync"
	"time"
)

// How long a batch waits at the most, counted from its first delivery.
const (
	// maxFill is for more to come when the broker seems to have it, counted from
	// the latest delivery. After an acknowledgement the deliveries come one by
	// one, and a worker that takes the first few makes small transactions for as
	// long as there is a backlog.
	maxFill = time.Millisecond
	// maxTurn is for another worker of the queue that has a batch in hand. Two
	// small batches cost the database more than one that is as large as both.
	maxTurn = 20 * time.Millisecond
	// maxYield is for more urgent queues, where each of their batches takes long.
	// It is also how long an urgent queue that makes no progress is waited for.
	maxYield = 100 * time.Millisecond
	// refill is how long the broker may take to send more of an urgent queue
	// that has more, once all that was in hand is acknowledged.
	refill = 2 * time.Millisecond
)

// maxOvertaken is how many batches of more urgent queues a batch lets go first.
// On busy processors such a queue nearly always has something in hand, and then
// the others get their prefetch once for so many batches: they are slowed down,
// and never fall behind permanently.
const maxOvertaken = 2

// A batcher makes batches of the deliveries of one subscription. It alone
// decides when a batch begins:
//
//	        first delivery              nothing to wait for
//	idle ───────────────────► gathering ───────────────────► in hand
//	  ▲                         │   ▲                           │
//	  │                         └───┘ a delivery comes          │
//	  └──────────────────────────── done ◄──────────────────────┘
//
// A gathering batch waits as long as one of these holds:
//
//   - it is not full, the last batch was large, and 1 ms since the latest
//     delivery is not over: the backlog fills it;
//   - it is not full, and BatchWait since the last batch began is not
//     over;
//   - it is not full, another worker of the queue has a batch in hand, and
//     20 ms are not over: it grows instead of going beside the other;
//   - a more urgent queue makes progress, which has been less than two batches
//     since this one began to gather, and 100 ms are not over.
//
// So a lone message never waits, and with a backlog batches are large.
type batcher struct {
	intake   chan *job // holds the prefetch, so that the pump never waits
	size     int       // of a batch
	prefetch int
	spacing  time.Duration // from the beginning of a batch to that of the next one that is not full
	turn     chan struct{} // holds one while a worker of the queue has a batch in hand
	priority *priority
	rank     int
	acks     *ackTracker

	begun   time.Time // when the last batch was
	large   bool      // the last batch was: the broker seems to have more
	hasTurn bool
}

func newBatcher(cfg Config, prefetch int, turn chan struct{}, p *priority, rank int, acks *ackTracker) *batcher {
	return &batcher{
		intake: make(chan *job, prefetch), size: cfg.BatchSize, prefetch: prefetch, spacing: cfg.BatchWait,
		turn: turn, priority: p, rank: rank, acks: acks,
	}
}

// add takes a delivery. The broker sends no more than the prefetch.
func (b *batcher) add(j *job) {
	b.priority.came(b.rank)
	b.intake <- j
}

// end says that no more deliveries come.
func (b *batcher) end() { close(b.intake) }

// next returns the next batch once it should begin, and nothing when no more
// deliveries come or ctx ends.
func (b *batcher) next(ctx context.Context) []*job {
	var batch []*job
	select {
	case j, ok := <-b.intake:
		if !ok {
			return nil
		}
		batch = append(batch, j)
	case <-ctx.Done():
		return nil
	}
	// Messages on their way to a retry take up prefetch until that is confirmed,
	// and their places are not filled soon.
	pending := b.acks.pending()
	limit := max(1, min(b.size, b.prefetch-pending))
	batch = b.gather(ctx, batch, limit, b.large && pending == 0)
	b.begun, b.large = time.Now(), 2*len(batch) >= limit
	return batch
}

// gather adds deliveries to batch until the batch should begin. With more, the
// broker seems to have more than are here.
func (b *batcher) gather(ctx context.Context, batch []*job, limit int, more bool) []*job {
	began := time.Now()
	latest := began // delivery
	overtaken := b.priority.finished(b.rank) + maxOvertaken
	var timer *time.Timer
	for {
		for len(batch) < limit && len(b.intake) > 0 { // what has come already
			batch = append(batch, <-b.intake)
		}
		now := time.Now()
		waited := now.Sub(began)
		fill := b.spacing - now.Sub(b.begun)
		if more {
			fill = max(fill, maxFill-now.Sub(latest))
		}
		full, filled := len(batch) >= limit, fill <= 0
		if !b.hasTurn && (full || filled) {
			select {
			case b.turn <- struct{}{}:
				b.hasTurn = true
			default:
			}
		}

		urgent, changed := b.priority.wait(b.rank, overtaken)
		wait := min(urgent, maxYield-waited)
		var intake chan *job
		var turn chan struct{}
		if !full {
			intake = b.intake
			switch {
			case !filled:
				wait = max(wait, fill)
			case !b.hasTurn:
				wait, turn = max(wait, maxTurn-waited), b.turn
			}
		}
		if wait <= 0 {
			return batch
		}

		if timer == nil {
			timer = time.NewTimer(wait)
			defer timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case j, ok := <-intake:
			if !ok { // the subscription is over
				return batch
			}
			batch, latest = append(batch, j), time.Now()
		case turn <- struct{}{}:
			b.hasTurn = true
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			return batch
		}
	}
}

// done says that the batch of n deliveries is out of hand.
func (b *batcher) done(n int) {
	if b.hasTurn {
		b.hasTurn = false
		<-b.turn
	}
	// A batch that fills half of the prefetch was hardly all that the broker has.
	b.priority.done(b.rank, n, 2*n >= b.prefetch)
}

// rest returns the jobs that have come and were never in a batch.
func (b *batcher) rest() (jobs []*job) {
	for len(b.intake) > 0 {
		jobs = append(jobs, <-b.intake)
		b.priority.done(b.rank, 1, false)
	}
	return jobs
}

// discard drops the jobs that were never in a batch, once no more deliveries come.
func (b *batcher) discard() {
	for range b.intake {
		b.priority.done(b.rank, 1, false)
	}
}

// A priority lets the queues that residents wait for go first: a batch of a
// later queue does not begin while deliveries of an earlier one are in hand
// and make progress.
type priority struct {
	mu      sync.Mutex
	ranks   []progress
	changed chan struct{} // closed when a batch of a rank is done
}

// progress is a priority's record of a rank.
type progress struct {
	inHand  int       // deliveries
	at      time.Time // the last progress
	more    bool      // the broker seems to have more
	batches int       // that are done
}

func newPriority(ranks int) *priority {
	return &priority{ranks: make([]progress, ranks), changed: make(chan struct{})}
}

// came notes that a delivery of rank is in hand.
func (p *priority) came(rank int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &p.ranks[rank]
	if r.inHand == 0 {
		r.at = time.Now()
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
	r.at, r.more = time.Now(), more
	r.batches++
	close(p.changed)
	p.changed = make(chan struct{})
}

// finished returns how many batches of more urgent ranks than rank are done.
func (p *priority) finished(rank int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.finishedLocked(rank)
}

func (p *priority) finishedLocked(rank int) (n int) {
	for _, r := range p.ranks[:rank] {
		n += r.batches
	}
	return n
}

// wait returns how long at most to make way for more urgent ranks than rank until
// that many of their batches are done, and a channel that is closed when this may
// have changed.
func (p *priority) wait(rank, finished int) (wait time.Duration, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finishedLocked(rank) >= finished {
		return 0, p.changed
	}
	for _, r := range p.ranks[:rank] {
		switch {
		case r.inHand > 0:
			wait = max(wait, maxYield-time.Since(r.at))
		case r.more:
			wait = max(wait, refill-time.Since(r.at))
		}
	}
	return wait, p.changed
}
