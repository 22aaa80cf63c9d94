package sse

import (
	"errors"
	"iter"
	"net"
	"os"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse/transport"
)

const (
	// queueFrames and queueBytes bound what waits for a client. Its socket
	// takes some more; who lags further reads on from the database later.
	queueFrames = 64
	queueBytes  = 64 << 10
)

// A reason says why a connection ended. It is a metric's label.
type reason string

const (
	reasonNone      reason = ""
	reasonLeft      reason = "client_left"
	reasonStalled   reason = "stalled"   // a write took longer than it may
	reasonOverflow  reason = "overflow"  // too much waits for it
	reasonLifetime  reason = "lifetime"  // old enough, or its token expires
	reasonDisplaced reason = "displaced" // the user opened too many others
	reasonDrain     reason = "drain"
	reasonEpoch     reason = "epoch" // the stream began another life
	reasonGap       reason = "gap"   // never: the topic passes no gap on
	reasonStopped   reason = "stopped"
)

// A client is one connection: a queue between those who offer events and the
// one writer that sends them.
type client struct {
	hub     *Hub
	out     transport.Outlet
	lanes   [2]lane // one per stream that it follows; the second may be empty
	born    time.Time
	expires time.Time
	seat    seat // guarded by the pulse's mutex

	mu        sync.Mutex
	queue     []entry // grown when needed, given back when empty
	bytes     int
	last      [2]int64 // per lane, the number that was queued last
	scheduled bool     // its writer knows that there is something to do
	ended     reason   // nothing more is queued
	farewell  []byte   // what it gets after its queue when it was not cut off
	wrote     time.Time
}

// A lane ties a client to a topic. Topic and epoch never change; place is
// guarded by the topic's mutex, and sent belongs to the writer.
type lane struct {
	topic *topic
	epoch string
	place int   // in topic.subs, -1 outside
	sent  int64 // the number written last
}

// An entry is a frame that waits, and the lane that it came by.
type entry struct {
	frame *frame
	lane  int8
}

// topics yields what the client follows.
func (c *client) topics() iter.Seq[*topic] {
	return func(yield func(*topic) bool) {
		for i := range c.lanes {
			if t := c.lanes[i].topic; t != nil && !yield(t) {
				return
			}
		}
	}
}

// kind is the value of a metric's label.
func (c *client) kind() string {
	if c.lanes[0].topic == c.hub.feed {
		return "feed"
	}
	return "notifications"
}

// moveTo sets where the client is, before it has joined anything.
func (c *client) moveTo(cursor notification.Cursor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, p := range cursor {
		c.lanes[i].epoch, c.lanes[i].sent, c.last[i] = p.Epoch, p.Seq, p.Seq
	}
}

func (c *client) laneOf(t *topic) int {
	if c.lanes[0].topic == t {
		return 0
	}
	return 1
}

func (c *client) place(t *topic) int       { return c.lanes[c.laneOf(t)].place }
func (c *client) setPlace(t *topic, i int) { c.lanes[c.laneOf(t)].place = i }

// lastOf returns the number of t that was queued or sent last.
func (c *client) lastOf(t *topic) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last[c.laneOf(t)]
}

// skipTo notes that everything up to seq is taken care of.
func (c *client) skipTo(t *topic, seq int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last[c.laneOf(t)] = seq
}

// offer queues f and never blocks. It reports whether the writer must be
// told. A client whose queue is full is cut off; it comes back with its
// cursor.
func (c *client) offer(t *topic, f *frame) (wake bool) {
	lane := c.laneOf(t)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended != reasonNone:
		return false
	case f.seq == 0:
	case f.seq <= c.last[lane]:
		return false // it has it from the database already
	case f.seq != c.last[lane]+1:
		return c.cutLocked(reasonGap)
	default:
		c.last[lane] = f.seq
	}
	if len(c.queue) >= queueFrames || (len(c.queue) > 0 && c.bytes+len(f.bytes) > queueBytes) {
		if wake = c.cutLocked(reasonOverflow); !wake {
			c.out.Interrupt() // its writer is waiting for it
		}
		return wake
	}
	c.queue = append(c.queue, entry{f, int8(lane)})
	c.bytes += len(f.bytes)
	return c.scheduleLocked()
}

func (c *client) scheduleLocked() (wake bool) {
	wake = !c.scheduled
	c.scheduled = true
	return wake
}

// cutLocked ends the connection without another word.
func (c *client) cutLocked(why reason) (wake bool) {
	if c.ended != reasonNone {
		return false
	}
	c.ended, c.queue, c.bytes = why, nil, 0
	return c.scheduleLocked()
}

// cut ends the connection without another word.
func (c *client) cut(why reason) {
	c.mu.Lock()
	wake := c.cutLocked(why)
	c.mu.Unlock()
	if wake {
		c.out.Wake()
	}
}

// dismiss lets the client have what waits for it, tells it after how long to
// come back, and ends the connection.
func (c *client) dismiss(why reason, retry time.Duration) {
	c.mu.Lock()
	wake := c.ended == reasonNone
	if wake {
		c.ended, c.farewell = why, append(appendRetry(nil, retry), '\n')
		wake = c.scheduleLocked()
	}
	c.mu.Unlock()
	if wake {
		c.out.Wake()
	}
}

// Rest reports that nothing waits, and from then on c must be woken.
func (c *client) Rest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) > 0 || c.ended != reasonNone {
		return false
	}
	c.scheduled = false
	return true
}

func (c *client) ending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended != reasonNone
}

// beat queues a heartbeat if nothing was written for quiet. It reports
// whether the client is still there, and since when it has been quiet.
func (c *client) beat(now time.Time, quiet time.Duration) (since time.Time, alive bool) {
	c.mu.Lock()
	wake := false
	if c.ended == reasonNone && !c.scheduled && now.Sub(c.wrote) >= quiet {
		c.queue = append(c.queue, entry{frame: heartbeat})
		c.wrote = now
		wake = c.scheduleLocked()
	}
	since, alive = c.wrote, c.ended == reasonNone
	c.mu.Unlock()
	if wake {
		c.out.Wake()
	}
	return since, alive
}

// Take moves what waits into l. With nothing to send it reports whether the
// client has ended; otherwise the client rests until it is woken.
func (c *client) Take(l *transport.Load, now time.Time) (ended bool) {
	c.mu.Lock()
	queue, farewell := c.queue, c.farewell
	c.queue, c.farewell, c.bytes = nil, nil, 0
	if len(queue) == 0 && farewell == nil {
		ended = c.ended != reasonNone
		c.scheduled = ended // nobody wakes for one that has ended
	} else {
		c.wrote = now
	}
	c.mu.Unlock()

	l.Bytes, l.At, l.Events = l.Bytes[:0], l.At[:0], len(queue)
	for _, e := range queue {
		l.Bytes = c.render(l.Bytes, e)
		if !e.frame.at.IsZero() {
			l.At = append(l.At, e.frame.at)
		}
	}
	l.Bytes = append(l.Bytes, farewell...)
	return ended
}

// Sent counts what was written.
func (c *client) Sent(l *transport.Load) { c.hub.metrics.sent(l) }

// Fail cuts off a client that left, or that does not read.
func (c *client) Fail(err error) { c.cut(failure(err)) }

// failure tells a client that does not read from one that is gone.
func failure(err error) reason {
	var timeout net.Error
	if errors.Is(err, os.ErrDeadlineExceeded) || (errors.As(err, &timeout) && timeout.Timeout()) {
		return reasonStalled
	}
	return reasonLeft
}

// Closed takes the client out of the hub.
func (c *client) Closed() {
	c.mu.Lock()
	why := c.ended
	c.mu.Unlock()
	c.hub.remove(c, why)
}

// render appends the frame as this client gets it: with one stream as it was
// encoded, with two under an id that has both positions.
func (c *client) render(b []byte, e entry) []byte {
	f := e.frame
	if f.seq == 0 {
		return append(b, f.bytes...)
	}
	c.lanes[e.lane].sent = f.seq
	if c.lanes[1].topic == nil {
		return append(b, f.bytes...)
	}
	b = append(b, f.bytes[:f.idAt]...)
	return append(appendID(b, c.cursor()), '\n')
}

// cursor returns the client's position by what was written.
func (c *client) cursor() notification.Cursor {
	cursor := make(notification.Cursor, 0, len(c.lanes))
	for _, l := range c.lanes {
		if l.topic != nil {
			cursor = append(cursor, notification.Position{Epoch: l.epoch, Seq: l.sent})
		}
	}
	return cursor
}
