package rabbit

import (
	"fmt"
	"net"
	"time"
)

const (
	// missedHeartbeats is how many may fail to come before the broker is gone.
	missedHeartbeats = 3
	// minSilence spares a broker that stalls on its disk from losing
	// connections that ask for very frequent heartbeats.
	minSilence = 5 * time.Second
)

// A wire is a socket whose reads and writes end. amqp091-go sets no write
// deadline, so that a publish towards a silent broker would block for ever,
// whatever its context says; and it sets a read deadline only after the first
// frame that follows the handshake, so that a broker that falls silent before
// would never be missed. The wire therefore keeps the deadlines itself.
type wire struct {
	net.Conn

	silence time.Duration // what a read waits
	guard   func() error
}

func newWire(conn net.Conn, cfg Config) *wire {
	guard := cfg.Guard
	if guard == nil {
		guard = func() error { return nil }
	}
	return &wire{Conn: conn, silence: max(missedHeartbeats*cfg.heartbeat(), minSilence), guard: guard}
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

// Write sends p unless the guard forbids it. After an error the socket is
// closed: half a frame may be out, so nothing sensible can follow.
func (w *wire) Write(p []byte) (int, error) {
	if err := w.Conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	if err := w.guard(); err != nil {
		_ = w.Conn.Close()
		return 0, fmt.Errorf("write to rabbitmq: %w", err)
	}
	n, err := w.Conn.Write(p)
	if err != nil {
		_ = w.Conn.Close()
	}
	return n, err
}
