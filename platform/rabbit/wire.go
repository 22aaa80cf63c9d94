package rabbit

import (
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	// missedHeartbeats is how many may fail to come before the broker is gone.
	missedHeartbeats = 3
	// minSilence spares a broker that stalls on its disk from losing
	// connections that ask for very frequent heartbeats.
	minSilence = 5 * time.Second
	// maxPending is what may wait for the socket, in bytes.
	maxPending = 64 << 10
)

// A wire is a socket whose reads and writes end. amqp091-go sets no write
// deadline, so that a publish towards a silent broker would block for ever,
// whatever its context says; and it sets a read deadline only after the first
// frame that follows the handshake, so that a broker that falls silent before
// would never be missed. The wire therefore keeps the deadlines itself.
//
// Writes are gathered: what comes while a write is under way goes out with the
// next one. amqp091-go flushes after every message, and a system call per
// message costs the broker more than it costs us.
type wire struct {
	net.Conn

	silence time.Duration // what a read waits
	guard   func() error

	mu      sync.Mutex
	changed sync.Cond // room in pending, something in pending, or the end
	pending []byte    // bounded: a writer waits while it is full
	err     error     // the end
}

func newWire(conn net.Conn, cfg Config) *wire {
	guard := cfg.Guard
	if guard == nil {
		guard = func() error { return nil }
	}
	w := &wire{Conn: conn, silence: max(missedHeartbeats*cfg.heartbeat(), minSilence), guard: guard}
	w.changed.L = &w.mu
	go w.flush()
	return w
}

// SetDeadline sets both deadlines. Lifting them, as amqp091-go does after the
// handshake while a read is under way, leaves the read its own.
func (w *wire) SetDeadline(t time.Time) error {
	if err := w.Conn.SetDeadline(t); err != nil || !t.IsZero() {
		return err
	}
	return w.Conn.SetReadDeadline(time.Now().Add(w.silence))
}

// SetReadDeadline leaves the deadline as it is: see Read.
func (w *wire) SetReadDeadline(time.Time) error { return nil }

// Read waits for as long as a living broker can be silent.
func (w *wire) Read(p []byte) (int, error) {
	if err := w.Conn.SetReadDeadline(time.Now().Add(w.silence)); err != nil {
		return 0, err
	}
	return w.Conn.Read(p)
}

// Write takes p over; it waits while much is pending. What was taken may still
// not arrive: a publisher learns that from the missing confirm.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.pending) > maxPending && w.err == nil {
		w.changed.Wait()
	}
	if w.err != nil {
		return 0, w.err
	}
	w.pending = append(w.pending, p...)
	w.changed.Broadcast()
	return len(p), nil
}

// Close ends the writing, and the socket.
func (w *wire) Close() error {
	w.end(net.ErrClosed)
	return w.Conn.Close()
}

// flush sends what is pending until the end.
func (w *wire) flush() {
	var batch []byte
	for {
		var err error
		if batch, err = w.next(batch[:0]); err == nil {
			err = w.send(batch)
		}
		if err != nil {
			w.end(err)
			_ = w.Conn.Close() // half a frame may be out: nothing sensible can follow
			return
		}
	}
}

// next waits for something to send, and leaves spare for what comes meanwhile.
func (w *wire) next(spare []byte) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.pending) == 0 && w.err == nil {
		w.changed.Wait()
	}
	batch := w.pending
	w.pending = spare
	w.changed.Broadcast()
	return batch, w.err
}

// send writes unless the guard forbids it.
func (w *wire) send(batch []byte) error {
	if err := w.Conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if err := w.guard(); err != nil {
		return fmt.Errorf("write to rabbitmq: %w", err)
	}
	_, err := w.Conn.Write(batch)
	return err
}

func (w *wire) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.changed.Broadcast()
}
