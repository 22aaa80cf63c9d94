package sse

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse/transport"
)

const (
	// queueFrames and queueBytes bound the frames that wait for a client. Its socket
	// takes some more; a client further behind reads from the database later.
	queueFrames = 64
	queueBytes  = 64 << 10
	// optionalFrames may wait for a client that still gets frames that it can do
	// without. There is room behind them for those that it cannot.
	optionalFrames = 8
)

// A reason says why a stream ended.
type reason uint8

const (
	reasonNone reason = iota // it has not ended
	reasonLeft
	reasonStalled   // a write took longer than it may
	reasonOverflow  // too much waited for it
	reasonLifetime  // old enough, or its token expires
	reasonDisplaced // its user opened too many others
	reasonDrain
	reasonEpoch // the stream started over
	reasonGap   // never: a topic passes on no gap
	reasonStopped
)

// reasons are the labels of a metric.
var reasons = [...]string{
	reasonLeft: "client_left", reasonStalled: "stalled", reasonOverflow: "overflow", reasonLifetime: "lifetime",
	reasonDisplaced: "displaced", reasonDrain: "drain", reasonEpoch: "epoch", reasonGap: "gap", reasonStopped: "stopped",
}

func (r reason) String() string { return reasons[r] }

// Results of a request for a stream that alerts and dashboards name.
const (
	resultOpen = "open"
	resultBusy = "busy"
)

// A kind of stream.
type kind uint8

const (
	kindNotifications kind = iota
	kindFeed
)

// kinds are the labels of a metric.
var kinds = [...]string{kindNotifications: "notifications", kindFeed: "feed"}

func (k kind) String() string { return kinds[k] }

// A client is one connection: a queue between the topics that offer frames and
// the transport that writes them. It is the transport's Source.
//
// While it is opening, the goroutine of its request writes. Afterwards the
// transport writes in turns: the client is scheduled from the moment something
// waits until everything is written, so that it is woken once, and one
// goroutine at a time writes to it.
//
//	opening ──transport takes over──► scheduled ──nothing waits──► resting
//	   │                                │    ▲                      │   │
//	   │                                │    └───offer, heartbeat───┘   │
//	   └───────────┬────────────────────┴───────────────────────────────┘
//	               ├─ closeGracefully: what waits and a last frame are written ─┐
//	               └─ disconnect: nothing more is written ──────────────────────┴─► ended ─► closed
//
// Nearly all clients wait nearly all of the time, so their number is bounded by what
// one takes: hence times of 8 bytes, and room for a second stream where there is one.
type client struct {
	hub    *Hub
	conn   transport.Conn // nil until the response has begun
	opened time.Duration  // since the hub began
	// expires is the end of the stream's lifetime since the hub began, or that of the
	// user's token since 1970: the clock of tokens may be set, and runs while a
	// machine sleeps.
	expires       time.Duration
	slot          slot // guarded by the timer wheel's mutex
	endsWithToken bool
	kind          kind
	first         subscription
	second        *subscription // of an official, else nil

	mu        sync.Mutex
	scheduled bool
	ended     reason        // nothing more is queued
	bytes     int32         // in the queue
	queue     []queuedFrame // grown when needed, given back when empty
	lastFrame *frame        // the frame after the queue when the stream ends gracefully
	lastWrite time.Duration // since the hub began
}

// A subscription ties a client to a topic.
type subscription struct {
	client *client
	topic  *topic
	epoch  string // of the client's position; set before the client joins
	index  int32  // among the topic's subscribers, -1 outside; guarded by the topic's mutex
	queued int64  // the number queued last; guarded by the client's mutex
	sent   int64  // the number written last; only the goroutine that writes uses it
}

// A queuedFrame waits in a client's queue. A frame without a number needs no
// subscription.
type queuedFrame struct {
	frame *frame
	from  *subscription
}

// follow ties c to a topic that it will join.
func (c *client) follow(t *topic) {
	s := subscription{client: c, topic: t, index: -1}
	if c.first.topic == nil {
		c.first = s
	} else {
		c.second = &s
	}
}

// left returns how long the stream may go on.
func (c *client) left(now time.Time) time.Duration {
	if c.endsWithToken {
		return c.expires - time.Duration(now.UnixNano())
	}
	return c.expires - c.hub.age(now)
}

// subscriptions returns what c follows.
func (c *client) subscriptions() []*subscription {
	switch {
	case c.first.topic == nil:
		return nil
	case c.second == nil:
		return []*subscription{&c.first}
	}
	return []*subscription{&c.first, c.second}
}

// startAt sets the position of c before it joins its topics.
func (c *client) startAt(cursor notification.Cursor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range c.subscriptions() {
		p := cursor[i]
		s.epoch, s.queued, s.sent = p.Epoch, p.Seq, p.Seq
	}
}

// cursor returns the position of c by the frames that were written.
func (c *client) cursor() notification.Cursor {
	cursor := make(notification.Cursor, 0, 2)
	for _, s := range c.subscriptions() {
		cursor = append(cursor, notification.Position{Epoch: s.epoch, Seq: s.sent})
	}
	return cursor
}

// queuedSeq returns the number that was queued or written last.
func (s *subscription) queuedSeq() int64 {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	return s.queued
}

// skipTo says that everything up to seq is taken care of.
func (s *subscription) skipTo(seq int64) {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	s.queued = seq
}

// offer queues f and never blocks. It reports whether the transport must be
// woken. A client whose queue is full is disconnected; its cursor brings it
// back.
func (s *subscription) offer(f *frame) (wake bool) {
	c := s.client
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended != reasonNone:
		return false
	case f.optional && len(c.queue) >= optionalFrames:
		return false
	case f.seq == 0:
	case f.seq <= s.queued:
		return false // it came from the database already
	case f.seq != s.queued+1:
		return c.disconnectLocked(reasonGap)
	default:
		s.queued = f.seq
	}
	if len(c.queue) >= queueFrames || (len(c.queue) > 0 && int(c.bytes)+len(f.bytes) > queueBytes) {
		if wake = c.disconnectLocked(reasonOverflow); !wake {
			c.conn.Interrupt() // a write is waiting for the client
		}
		return wake
	}
	c.queue = append(c.queue, queuedFrame{f, s})
	c.bytes += int32(len(f.bytes))
	return c.scheduleLocked()
}

// sendHeartbeat queues a heartbeat if nothing was written for quiet. It
// returns for how long nothing has been written, and whether the stream is open.
func (c *client) sendHeartbeat(now time.Time, quiet time.Duration) (quietFor time.Duration, open bool) {
	frame := c.hub.heartbeat()
	c.mu.Lock()
	wake := false
	if quietFor = c.hub.age(now) - c.lastWrite; c.ended == reasonNone && !c.scheduled && quietFor >= quiet {
		c.queue = append(c.queue, queuedFrame{frame: frame})
		c.lastWrite, quietFor = c.hub.age(now), 0
		wake = c.scheduleLocked()
	}
	open = c.ended == reasonNone
	c.mu.Unlock()
	if wake {
		c.conn.Wake()
	}
	return quietFor, open
}

// closeGracefully ends the stream after its queue, with a last frame that says after
// how long to come back.
func (c *client) closeGracefully(why reason, retry time.Duration) {
	c.mu.Lock()
	wake := false
	if c.ended == reasonNone {
		c.ended, c.lastFrame = why, &frame{bytes: append(appendRetry(nil, retry), '\n')}
		wake = c.scheduleLocked()
	}
	c.mu.Unlock()
	if wake {
		c.conn.Wake()
	}
}

// disconnect ends the stream at once.
func (c *client) disconnect(why reason) {
	c.mu.Lock()
	wake := c.disconnectLocked(why)
	c.mu.Unlock()
	if wake {
		c.conn.Wake()
	}
}

func (c *client) disconnectLocked(why reason) (wake bool) {
	if c.ended != reasonNone {
		return false
	}
	c.ended, c.queue, c.bytes = why, nil, 0
	return c.scheduleLocked()
}

func (c *client) scheduleLocked() (wake bool) {
	wake = !c.scheduled
	c.scheduled = true
	return wake
}

func (c *client) endReason() reason {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// write writes frames at once, while c is opening.
func (c *client) write(s *subscription, frames []*frame) error {
	if len(frames) == 0 {
		return nil
	}
	var b []byte
	for _, f := range frames {
		b = c.render(b, queuedFrame{f, s})
	}
	return c.conn.Write(b)
}

// Take moves waiting frames into b. When none waits, it reports whether the stream
// has ended; otherwise the client rests until it is woken.
func (c *client) Take(b *transport.Buffer, now time.Time) (ended bool) {
	c.mu.Lock()
	queue, lastFrame := c.queue, c.lastFrame
	c.queue, c.lastFrame, c.bytes = nil, nil, 0
	if len(queue) == 0 && lastFrame == nil {
		ended = c.ended != reasonNone
		c.scheduled = ended // one that has ended is not woken again
	} else {
		c.lastWrite = c.hub.age(now)
	}
	c.mu.Unlock()

	b.Bytes, b.Commits, b.Shared = b.Bytes[:0], b.Commits[:0], 0
	for _, q := range queue {
		before := len(b.Bytes)
		b.Bytes = c.render(b.Bytes, q)
		if !q.frame.commit.At.IsZero() {
			b.Commits = append(b.Commits, q.frame.commit)
			b.Shared += len(b.Bytes) - before
		}
	}
	if lastFrame != nil {
		b.Bytes = append(b.Bytes, lastFrame.bytes...)
	}
	return ended
}

// render appends the frame as this client gets it: with one stream as it was
// encoded, with two under an id that has both positions.
func (c *client) render(b []byte, q queuedFrame) []byte {
	f := q.frame
	if f.seq == 0 {
		return append(b, f.bytes...)
	}
	q.from.sent = f.seq
	if c.second == nil {
		return append(b, f.bytes...)
	}
	b = append(b, f.bytes[:f.idAt]...)
	return append(appendID(b, c.cursor()), '\n')
}

// Sent counts the written frames.
func (c *client) Sent(b *transport.Buffer) { c.hub.metrics.sent(b) }

// Rest reports that nothing waits. From then on c must be woken.
func (c *client) Rest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) > 0 || c.ended != reasonNone {
		return false
	}
	c.scheduled = false
	return true
}

// Fail disconnects a client that left or does not read.
func (c *client) Fail(err error) {
	timeout, isNet := errors.AsType[net.Error](err)
	if errors.Is(err, os.ErrDeadlineExceeded) || isNet && timeout.Timeout() {
		c.disconnect(reasonStalled)
		return
	}
	c.disconnect(reasonLeft)
}

// Closed takes the client out of the hub.
func (c *client) Closed() { c.hub.remove(c) }
