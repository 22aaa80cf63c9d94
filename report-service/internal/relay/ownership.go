package relay

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
)

var errLeaseOver = errors.New("the lease is over")

// An ownership is what this replica may publish, as far as it knows: written
// by the lease keeper, asked before every publish.
type ownership struct {
	changed chan struct{} // holds a value after every change

	mu     sync.Mutex
	until  time.Time // publish nothing after this
	shards map[int16]*holding
}

// A holding is an owned shard. Its epoch tells it from the same shard at
// another time.
type holding struct {
	epoch     int64
	releasing bool // to be handed over once nothing of it is under way
	busy      int  // rows read and not yet finished
}

// A claim is a shard in one epoch.
type claim struct {
	shard int16
	epoch int64
}

func newOwnership() *ownership {
	return &ownership{changed: make(chan struct{}, 1), shards: make(map[int16]*holding)}
}

// renew replaces what is owned, until the given time. What is in claims with
// the same epoch as before goes on undisturbed: most renewals change nothing,
// and nobody is to look at the outbox for them.
func (o *ownership) renew(claims []claim, until time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.shards
	changed := !fresh(o.until) || len(claims) != len(before)
	o.until = until
	o.shards = make(map[int16]*holding, len(claims))
	for _, c := range claims {
		if h, ok := before[c.shard]; ok && h.epoch == c.epoch {
			o.shards[c.shard] = h
			continue
		}
		o.shards[c.shard] = &holding{epoch: c.epoch}
		changed = true
	}
	if changed {
		o.notifyLocked()
	}
}

// add notes shards that were taken under the lease that renew told of.
func (o *ownership) add(claims []claim) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range claims {
		o.shards[c.shard] = &holding{epoch: c.epoch}
	}
	o.notifyLocked()
}

// release stops work on n shards, those already being released included: always
// the highest, or each visit would begin to drain others.
func (o *ownership) release(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	highest := slices.Sorted(maps.Keys(o.shards))
	slices.Reverse(highest)
	changed := false
	for i, shard := range highest {
		h := o.shards[shard]
		changed = changed || h.releasing != (i < n)
		h.releasing = i < n
	}
	if changed {
		o.notifyLocked()
	}
}

// drained forgets the shards that are to be released and have nothing under
// way, and returns them: nothing of them is published any more.
func (o *ownership) drained() []int16 {
	o.mu.Lock()
	defer o.mu.Unlock()
	var free []int16
	for shard, h := range o.shards {
		// Forgotten before the database is told, so that nothing can go out
		// between its commit and our hearing of it.
		if h.releasing && h.busy == 0 {
			free = append(free, shard)
			delete(o.shards, shard)
		}
	}
	return free
}

// clear forgets everything, at the end.
func (o *ownership) clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.shards)
	o.notifyLocked()
}

// claims returns the shards that may be read, in order.
func (o *ownership) claims() []claim {
	o.mu.Lock()
	defer o.mu.Unlock()
	claims := make([]claim, 0, len(o.shards))
	for shard, h := range o.shards {
		if !h.releasing {
			claims = append(claims, claim{shard, h.epoch})
		}
	}
	slices.SortFunc(claims, func(a, b claim) int { return int(a.shard - b.shard) })
	return claims
}

// set returns the same shards, for a quick look.
func (o *ownership) set() outbox.Shards {
	o.mu.Lock()
	defer o.mu.Unlock()
	var set outbox.Shards
	for shard, h := range o.shards {
		if !h.releasing {
			set = set.Add(shard)
		}
	}
	return set
}

// count returns how many shards are owned.
func (o *ownership) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.shards)
}

// owns tells whether shard is ours at all, and so its upkeep.
func (o *ownership) owns(shard int16) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.shards[shard]
	return ok && fresh(o.until)
}

// admit counts a row as under way if its shard may still be worked on.
func (o *ownership) admit(c claim) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.shards[c.shard]
	if h == nil || h.epoch != c.epoch || h.releasing {
		return false
	}
	h.busy++
	return true
}

// done ends what admit began.
func (o *ownership) done(c claim) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h := o.shards[c.shard]; h != nil && h.epoch == c.epoch {
		h.busy--
	}
}

// mayPublish tells whether a row that was admitted may go out now. It may not
// once its shard is to be released: what has not gone out yet is dropped.
func (o *ownership) mayPublish(c claim) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.shards[c.shard]
	return h != nil && h.epoch == c.epoch && !h.releasing
}

// valid tells whether the lease is long enough yet to publish under it.
func (o *ownership) valid() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return fresh(o.until)
}

// leaseEnds returns until when publishing is allowed.
func (o *ownership) leaseEnds() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.until
}

func (o *ownership) notifyLocked() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// fresh compares by the monotonic clock, which nobody can set, and also by the
// wall clock, which runs on while a virtual machine is suspended: whichever
// comes first counts.
func fresh(until time.Time) bool {
	now := time.Now()
	return now.Before(until) && now.Round(0).Before(until.Round(0))
}
