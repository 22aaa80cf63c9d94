package sse

import (
	"slices"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
)

const (
	// ringFrames is how many of a topic's last events are kept for clients
	// that come back, so that a reconnect storm spares the database. It is
	// also what a client may lag while it is being joined.
	ringFrames = 64
	// aheadFrames is how many notifications may wait for one that is late,
	// such as when two replicas commit one after the other and the second
	// announces first. More are left to the database.
	aheadFrames = 64
)

// A topic is a stream that somebody listens to. It passes on a gapless
// sequence: whatever it is given, in any order, its clients get n+1 after n.
type topic struct {
	name notification.Stream

	mu    sync.Mutex
	epoch string   // "" until the database was asked
	last  int64    // the number passed on last
	seen  int64    // the highest number known to exist
	ring  []*frame // the last events passed on, oldest first
	ahead []ahead  // waiting for the numbers before theirs, ascending
	subs  []*client
	over  bool // nobody joins any more

	users  int       // clients joined or being joined; guarded by the hub's mutex
	idleAt time.Time // since when there have been none; likewise
}

// An ahead is a notification whose predecessor is missing.
type ahead struct {
	n  notification.Notification
	at time.Time
}

// A verdict is what a topic makes of something that it was told.
type verdict int

const (
	settled verdict = iota
	behind          // a number is missing: ask the database
	foreign         // of another life of the stream: start over
)

// accept takes a notification from the live exchange or the database.
func (t *topic) accept(n notification.Notification, at time.Time) (verdict, []*client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = max(t.seen, n.Seq)
	switch {
	case t.epoch == "" || t.over:
		return settled, nil // learn will look at seen
	case n.Epoch != t.epoch:
		return foreign, nil
	case n.Seq > t.last+1:
		t.waitLocked(ahead{n, at})
		return behind, nil
	case n.Seq <= t.last:
		return t.verdictLocked(), nil
	}
	woken := t.passLocked(notificationFrame(n, at), nil)
	for len(t.ahead) > 0 && t.ahead[0].n.Seq <= t.last+1 {
		if next := t.ahead[0]; next.n.Seq == t.last+1 {
			woken = t.passLocked(notificationFrame(next.n, next.at), woken)
		}
		t.ahead = slices.Delete(t.ahead, 0, 1)
	}
	return t.verdictLocked(), woken
}

func (t *topic) verdictLocked() verdict {
	if t.seen > t.last {
		return behind
	}
	t.ahead = nil
	return settled
}

// waitLocked keeps a notification that came too early, if there is room.
func (t *topic) waitLocked(a ahead) {
	i, found := slices.BinarySearchFunc(t.ahead, a.n.Seq, func(e ahead, seq int64) int { return int(e.n.Seq - seq) })
	if !found && len(t.ahead) < aheadFrames {
		t.ahead = slices.Insert(t.ahead, i, a)
	}
}

// passLocked gives the next frame to all clients and keeps it in the ring. It
// adds to woken those whose writer has to be told.
func (t *topic) passLocked(f *frame, woken []*client) []*client {
	t.last = f.seq
	if len(t.ring) == ringFrames {
		copy(t.ring, t.ring[1:])
		t.ring = t.ring[:ringFrames-1]
	}
	t.ring = append(t.ring, f)
	return t.sendLocked(f, woken)
}

func (t *topic) sendLocked(f *frame, woken []*client) []*client {
	for _, c := range t.subs {
		if c.offer(t, f) {
			woken = append(woken, c)
		}
	}
	return woken
}

// broadcast passes on an event without a number.
func (t *topic) broadcast(f *frame) []*client {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sendLocked(f, nil)
}

// learn tells the topic where its stream stands in the database.
func (t *topic) learn(head notification.Position) verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.epoch == "" {
		t.epoch, t.last = head.Epoch, head.Seq
	}
	if t.epoch != head.Epoch {
		return foreign
	}
	t.seen = max(t.seen, head.Seq)
	return t.verdictLocked()
}

// position returns where the topic stands, and whether it misses something.
func (t *topic) position() (p notification.Position, missing int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p = notification.Position{Epoch: t.epoch, Seq: t.last}
	if t.over || t.epoch == "" {
		return p, 0
	}
	return p, max(0, t.seen-t.last)
}

// covers tells whether a client that has everything up to after could be
// joined, since what follows is in the ring.
func (t *topic) covers(after int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.coversLocked(after)
}

func (t *topic) coversLocked(after int64) bool {
	return !t.over && after >= t.last-int64(len(t.ring))
}

// join makes c a receiver from the number after its last one on, and returns
// what it has to be sent first. Not joined, it lags too far: the database has
// what it misses.
//
// Since both happen under the lock under which frames are passed on, nothing
// falls between what is returned and what is offered, and nothing is in both.
func (t *topic) join(c *client) (backlog []*frame, joined bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	after := c.lastOf(t)
	if !t.coversLocked(after) {
		return nil, false
	}
	if lag := t.last - after; lag > 0 {
		backlog = slices.Clone(t.ring[len(t.ring)-int(lag):])
		c.skipTo(t, t.last)
	}
	c.setPlace(t, len(t.subs))
	t.subs = append(t.subs, c)
	return backlog, true
}

// leave ends what join began.
func (t *topic) leave(c *client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := c.place(t)
	if i < 0 {
		return
	}
	last := len(t.subs) - 1
	t.subs[i] = t.subs[last]
	t.subs[i].setPlace(t, i)
	t.subs[last] = nil
	t.subs = t.subs[:last]
	c.setPlace(t, -1)
}

// oldest returns the receivers beyond the newest limit of those that are not
// on their way out.
func (t *topic) oldest(limit int) []*client {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.subs) <= limit {
		return nil
	}
	staying := slices.DeleteFunc(slices.Clone(t.subs), (*client).ending)
	slices.SortFunc(staying, func(a, b *client) int { return a.born.Compare(b.born) })
	return staying[:max(0, len(staying)-limit)]
}

// end lets nobody join any more and returns those who have.
func (t *topic) end() []*client {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	return slices.Clone(t.subs)
}
