package shards

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// A Lease is the right to publish one shard in one epoch.
type Lease struct {
	Shard int16
	Epoch int64
}

// Leases are the leases of this replica, as far as it knows: written by the
// Coordinator, checked by the relay before every publish.
//
//	          acquire                   surplus, or no broker
//	free ───────────────► active ──────────────────────────► releasing
//	 ▲                    │ ▲ │                               │ │ │
//	 │                    │ │ └── renewed                     │ │ │
//	 │                    │ └────── the share grew again ─────┘ │ │
//	 │◄──── expired ──────┴─────────────────────────────────────┘ │
//	 │◄──── released, when no row is in progress ─────────────────┘
//
// Rows of an active lease are read and published. For a releasing one, nothing
// more is published, and rows in flight are awaited. All leases of a replica
// expire together: when it could not renew them in time, or half a second after
// it lost its session with the database. Valid is false then, before another
// can own the shards.
type Leases struct {
	changed chan struct{} // holds a value after every change

	mu         sync.Mutex
	validUntil time.Time // publish nothing after this
	owned      map[int16]*ownedShard
	lost       int64 // leases that ended without being released
}

// An ownedShard is a lease as the replica holds it.
type ownedShard struct {
	epoch      int64
	releasing  bool
	inProgress int // rows between Begin and End
}

// NewLeases returns the leases of a replica that owns nothing yet.
func NewLeases() *Leases {
	return &Leases{changed: make(chan struct{}, 1), owned: make(map[int16]*ownedShard)}
}

// Renew replaces the leases, until the given time. A lease that was held before
// continues undisturbed: most renewals change nothing, and do not signal
// Changed.
func (l *Leases) Renew(leases []Lease, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.owned
	changed := !notExpired(l.validUntil) || len(leases) != len(before)
	l.validUntil = until
	l.owned = make(map[int16]*ownedShard, len(leases))
	for _, lease := range leases {
		if o, ok := before[lease.Shard]; ok && o.epoch == lease.Epoch {
			l.owned[lease.Shard] = o
			continue
		}
		l.owned[lease.Shard] = &ownedShard{epoch: lease.Epoch}
		changed = true
	}
	for shard, o := range before {
		if now := l.owned[shard]; now == nil || now.epoch != o.epoch {
			l.lost++
		}
	}
	if changed {
		l.notifyLocked()
	}
}

// endBy ends the leases at the given time, unless they end before.
func (l *Leases) endBy(end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end.Before(l.validUntil) {
		l.validUntil = end
	}
}

// add adds leases that were acquired after the last Renew, and end with it.
func (l *Leases) add(leases []Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lease := range leases {
		l.owned[lease.Shard] = &ownedShard{epoch: lease.Epoch}
	}
	l.notifyLocked()
}

// setReleasing makes n leases releasing, including those that are releasing
// already, and the others active. It always takes the highest shards, because
// otherwise each renewal would begin to drain different ones.
func (l *Leases) setReleasing(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	highest := slices.Sorted(maps.Keys(l.owned))
	slices.Reverse(highest)
	changed := false
	for i, shard := range highest {
		o := l.owned[shard]
		changed = changed || o.releasing != (i < n)
		o.releasing = i < n
	}
	if changed {
		l.notifyLocked()
	}
}

// takeDrained removes the releasing leases that have no row in progress, and
// returns their shards. They are removed before the database is updated, so
// that nothing can be published between its commit and its answer.
func (l *Leases) takeDrained() []int16 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var drained []int16
	for shard, o := range l.owned {
		if o.releasing && o.inProgress == 0 {
			drained = append(drained, shard)
			delete(l.owned, shard)
		}
	}
	return drained
}

// clear removes all leases, at the end.
func (l *Leases) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.owned)
	l.notifyLocked()
}

// Changed holds a value after leases were added or removed.
func (l *Leases) Changed() <-chan struct{} { return l.changed }

// Active returns the active leases, by shard.
func (l *Leases) Active() []Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	leases := make([]Lease, 0, len(l.owned))
	for shard, o := range l.owned {
		if !o.releasing {
			leases = append(leases, Lease{shard, o.epoch})
		}
	}
	slices.SortFunc(leases, func(a, b Lease) int { return int(a.Shard - b.Shard) })
	return leases
}

// ActiveSet returns the shards of the active leases.
func (l *Leases) ActiveSet() Set {
	l.mu.Lock()
	defer l.mu.Unlock()
	var set Set
	for shard, o := range l.owned {
		if !o.releasing {
			set = set.Add(shard)
		}
	}
	return set
}

// Owned returns how many shards are owned, those being released included.
func (l *Leases) Owned() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.owned)
}

// Owns reports whether this replica owns shard now.
func (l *Leases) Owns(shard int16) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.owned[shard]
	return ok && notExpired(l.validUntil)
}

// Begin counts a row of lease as in progress, and reports whether it may be
// worked on: the lease is held, and active.
func (l *Leases) Begin(lease Lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.owned[lease.Shard]
	if o == nil || o.epoch != lease.Epoch || o.releasing {
		return false
	}
	o.inProgress++
	return true
}

// End ends what Begin began.
func (l *Leases) End(lease Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.owned[lease.Shard]; o != nil && o.epoch == lease.Epoch {
		o.inProgress--
	}
}

// MayPublish reports whether a row for which Begin was called may be published
// now.
func (l *Leases) MayPublish(lease Lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.owned[lease.Shard]
	return o != nil && o.epoch == lease.Epoch && !o.releasing
}

// Valid reports whether the leases last long enough to publish under them.
func (l *Leases) Valid() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return notExpired(l.validUntil)
}

// Lost returns how many leases have ended here without being released, so that
// another replica may have owned the shard since. Valid does not tell: it is true again
// as soon as the replica has any lease.
func (l *Leases) Lost() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// ValidUntil returns when publishing must stop.
func (l *Leases) ValidUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.validUntil
}

func (l *Leases) notifyLocked() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// notExpired compares by the monotonic clock, which cannot be set, and also by the
// wall clock, which runs on while a virtual machine is suspended: whichever
// comes first counts.
func notExpired(until time.Time) bool {
	now := time.Now()
	return now.Before(until) && now.Round(0).Before(until.Round(0))
}
