package rabbit

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// missedHeartbeats is how many may fail to come before the broker is gone.
	missedHeartbeats = 3
	// minSilence spares a broker that stalls on its disk from losing
	// connections that ask for very frequent heartbeats.
	minSilence = 5 * time.Second
	// lookAgain is for how long a read takes what is in the socket already.
	lookAgain = 100 * time.Millisecond
	// maxPending is how many bytes may wait for the socket.
	maxPending = 64 << 10
)

// A deadlineConn is a socket whose reads and writes end. amqp091-go sets no
// write deadline, so that a publish towards a silent broker would block
// without limit, whatever its context says; and it sets a read deadline only
// after the first frame that follows the handshake, so that a broker that falls
// silent before would never be noticed. A deadlineConn therefore keeps the
// deadlines itself.
//
// Writes are gathered: bytes that come while a write is under way go out with the
// next one. amqp091-go flushes after every message, and a system call per
// message costs the broker more than it costs us.
type deadlineConn struct {
	net.Conn

	silence time.Duration // what a read waits
	guard   func() error

	reading sync.Mutex // of limit, and of the deadline of reads
	limit   time.Time  // when reads end in any case; zero for never

	mu      sync.Mutex
	changed sync.Cond // room in pending, something in pending, or the end
	pending []byte    // bounded: a writer waits while it is full
	err     error     // the end
}

// newDeadlineConn takes conn over, and closes it after a failed write.
func newDeadlineConn(conn net.Conn, cfg Config) *deadlineConn {
	guard := cfg.Guard
	if guard == nil {
		guard = func() error { return nil }
	}
	c := &deadlineConn{Conn: conn, silence: max(missedHeartbeats*cfg.heartbeat(), minSilence), guard: guard}
	c.changed.L = &c.mu
	go c.flush()
	return c
}

// SetDeadline limits all that is read and written until then, even if something
// comes in before: a broker that hangs sends heartbeats. Without a time, which is
// what amqp091-go sets after the handshake while a read is under way, each read has
// its own limit again.
func (c *deadlineConn) SetDeadline(t time.Time) error {
	if err := c.Conn.SetWriteDeadline(t); err != nil {
		return err
	}
	return c.limitReads(func() { c.limit = t })
}

// limitReads sets the deadline of the read that is under way, and of the next.
func (c *deadlineConn) limitReads(change func()) error {
	c.reading.Lock()
	defer c.reading.Unlock()
	change()
	deadline := time.Now().Add(c.silence)
	if !c.limit.IsZero() && c.limit.Before(deadline) {
		deadline = c.limit
	}
	return c.Conn.SetReadDeadline(deadline)
}

// SetReadDeadline leaves the deadline as it is: see Read.
func (c *deadlineConn) SetReadDeadline(time.Time) error { return nil }

// Read waits for as long as a living broker can be silent.
func (c *deadlineConn) Read(p []byte) (int, error) {
	if err := c.limitReads(func() {}); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	// On a starved machine the deadline passes while what the broker has sent in time waits
	// in the socket.
	c.reading.Lock()
	late := c.limit.IsZero() || time.Now().Before(c.limit)
	if late {
		_ = c.Conn.SetReadDeadline(time.Now().Add(lookAgain)) // the read says why
	}
	c.reading.Unlock()
	if !late {
		return n, err
	}
	return c.Conn.Read(p)
}

// Write takes p over; it waits while much is pending. Accepted bytes may still
// not arrive: a publisher notices that by the missing confirm.
func (c *deadlineConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) > maxPending && c.err == nil {
		c.changed.Wait()
	}
	if c.err != nil {
		return 0, c.err
	}
	c.pending = append(c.pending, p...)
	c.changed.Broadcast()
	return len(p), nil
}

// Close ends the writing, and the socket.
func (c *deadlineConn) Close() error {
	c.end(net.ErrClosed)
	return c.Conn.Close()
}

// flush sends pending bytes until the end.
func (c *deadlineConn) flush() {
	var batch []byte
	for {
		var err error
		if batch, err = c.next(batch[:0]); err == nil {
			err = c.send(batch)
		}
		if err != nil {
			c.end(err)
			_ = c.Conn.Close() // half a frame may be out: nothing sensible can follow
			return
		}
	}
}

// next waits for something to send, and leaves spare to be filled while that is sent.
func (c *deadlineConn) next(spare []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) == 0 && c.err == nil {
		c.changed.Wait()
	}
	batch := c.pending
	c.pending = spare
	c.changed.Broadcast()
	return batch, c.err
}

// send writes unless the guard forbids it.
func (c *deadlineConn) send(batch []byte) error {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if err := c.guard(); err != nil {
		return fmt.Errorf("write to rabbitmq: %w", err)
	}
	_, err := c.Conn.Write(batch)
	return err
}

func (c *deadlineConn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	c.changed.Broadcast()
}
