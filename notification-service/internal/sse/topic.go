package sse

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
)

const (
	// ringFrames is how many of a topic's last frames are kept for clients that
	// come back, so that a reconnect storm spares the database. It is also how
	// far a client may be behind when it joins.
	ringFrames = 64
	// maxEarly is how many notifications wait for one that is late, such as
	// when two replicas commit one after the other and the second announces
	// first. More are left to the database.
	maxEarly = 64
)

// A topic is a stream that has clients. It passes on a sequence without gaps:
// in whatever order it accepts notifications, its clients get n+1 after n. Here
// it waits for 43 and 44, and knows that there is a 47:
//
//	 passed on               missing   early   known to exist
//	… 38 39 40 41 42          43 44    45 46         47
//	   └─── ring ──┴─ last                       seen ┘
//
// 43 and 44 arrive by announcements, or the hub reads them from the database;
// then 45 and 46 follow at once. 47 is read when the hub compares.
type topic struct {
	name notification.Stream

	mu          sync.Mutex
	epoch       string   // "" until the database was asked
	last        int64    // the number passed on last
	seen        int64    // the highest number known to exist
	ring        []*frame // passed on last, oldest first
	early       []earlyNotification
	subscribers []*subscription
	ended       bool // no more clients join

	users       int32         // clients joined or about to join; guarded by the hub's mutex
	unusedSince time.Duration // since the hub began; likewise
}

// An earlyNotification waits for the numbers before its own. Those of a topic
// are sorted by number.
type earlyNotification struct {
	notification.Notification
	committed time.Time
}

// A syncState says how a topic compares with the known head of its stream.
type syncState int

const (
	inSync     syncState = iota
	behind               // a number is missing: read the database
	otherEpoch           // the stream started over, and so must the client
)

// accept takes a notification that was announced or read from the database. It
// returns the clients whose transport must be woken.
func (t *topic) accept(n notification.Notification, committed time.Time) (syncState, []*client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = max(t.seen, n.Seq)
	switch {
	case t.epoch == "" || t.ended:
		return inSync, nil // learn will compare with seen
	case n.Epoch != t.epoch:
		return otherEpoch, nil
	case n.Seq > t.last+1:
		at, known := slices.BinarySearchFunc(t.early, n.Seq, func(e earlyNotification, seq int64) int { return int(e.Seq - seq) })
		if !known && len(t.early) < maxEarly {
			t.early = slices.Insert(t.early, at, earlyNotification{n, committed})
		}
		return behind, nil
	case n.Seq <= t.last:
		return t.stateLocked(), nil
	}
	woken := t.passLocked(notificationFrame(n, committed), nil)
	for len(t.early) > 0 && t.early[0].Seq <= t.last+1 {
		if next := t.early[0]; next.Seq == t.last+1 {
			woken = t.passLocked(notificationFrame(next.Notification, next.committed), woken)
		}
		t.early = slices.Delete(t.early, 0, 1)
	}
	return t.stateLocked(), woken
}

func (t *topic) stateLocked() syncState {
	if t.seen > t.last {
		return behind
	}
	t.early = nil
	return inSync
}

// passLocked gives the next frame to all clients and keeps it in the ring. It
// adds to woken those whose transport must be woken.
func (t *topic) passLocked(f *frame, woken []*client) []*client {
	t.last = f.seq
	if len(t.ring) == ringFrames {
		copy(t.ring, t.ring[1:])
		t.ring = t.ring[:ringFrames-1]
	}
	t.ring = append(t.ring, f)
	return t.offerLocked(f, woken)
}

func (t *topic) offerLocked(f *frame, woken []*client) []*client {
	for _, s := range t.subscribers {
		if s.offer(f) {
			woken = append(woken, s.client)
		}
	}
	return woken
}

// broadcast passes on a frame without a number.
func (t *topic) broadcast(f *frame) (woken []*client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.offerLocked(f, nil)
}

// learn compares the topic with the head of its stream in the database. The
// first call sets where the topic begins.
func (t *topic) learn(head notification.Position) syncState {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.epoch == "" {
		t.epoch, t.last = head.Epoch, head.Seq
	}
	if t.epoch != head.Epoch {
		return otherEpoch
	}
	t.seen = max(t.seen, head.Seq)
	return t.stateLocked()
}

// position returns what the topic passed on last, and how much it misses.
func (t *topic) position() (p notification.Position, missing int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p = notification.Position{Epoch: t.epoch, Seq: t.last}
	if t.ended || t.epoch == "" {
		return p, 0
	}
	return p, max(0, t.seen-t.last)
}

// forget drops the frames kept for clients that come back, and those not passed on
// yet: the database has them.
func (t *topic) forget() syncState {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ring, t.early = nil, nil
	if t.epoch == "" || t.ended {
		return inSync
	}
	return t.stateLocked()
}

// covers reports whether a client that has everything up to after can join: the ring
// has the rest.
func (t *topic) covers(after int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.coversLocked(after)
}

func (t *topic) coversLocked(after int64) bool {
	return !t.ended && after >= t.last-int64(len(t.ring))
}

// join makes s a subscriber from the number after its last one on, and returns
// the frames that it must be sent first. It does not join a client that is too
// far behind: the database has the notifications that it misses.
//
// Frames are passed on under the same lock. So no frame is missing between
// those that join returns and those that are offered, and none is in both.
func (t *topic) join(s *subscription) (missed []*frame, joined bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	after := s.queuedSeq()
	if !t.coversLocked(after) {
		return nil, false
	}
	if n := t.last - after; n > 0 {
		missed = slices.Clone(t.ring[len(t.ring)-int(n):])
		s.skipTo(t.last)
	}
	s.index = int32(len(t.subscribers))
	t.subscribers = append(t.subscribers, s)
	return missed, true
}

// leave undoes join. It does nothing if s has not joined.
func (t *topic) leave(s *subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.index < 0 {
		return
	}
	last := len(t.subscribers) - 1
	t.subscribers[s.index] = t.subscribers[last]
	t.subscribers[s.index].index = s.index
	t.subscribers[last] = nil
	t.subscribers = t.subscribers[:last]
	s.index = -1
}

// oldest returns the clients beyond the newest limit, without those that have
// ended already.
func (t *topic) oldest(limit int) []*client {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.subscribers) <= limit {
		return nil
	}
	var open []*client
	for _, s := range t.subscribers {
		if s.client.endReason() == reasonNone {
			open = append(open, s.client)
		}
	}
	slices.SortFunc(open, func(a, b *client) int { return cmp.Compare(a.opened, b.opened) })
	return open[:max(0, len(open)-limit)]
}

// end admits no more clients and returns those that have joined.
func (t *topic) end() []*client {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	clients := make([]*client, len(t.subscribers))
	for i, s := range t.subscribers {
		clients[i] = s.client
	}
	return clients
}
