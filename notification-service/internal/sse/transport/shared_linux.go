package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// shared hijacks plain HTTP/1.1 connections and lets a few writers serve all of
// them. From Serve on it has the bare socket: net.Conn and its place in Go's poller
// are 900 bytes, which a stream that waits has no use for. An idle client has no
// goroutine, no buffer and no timer either.
//
// A writer writes as much as the socket takes at once. The rest of a client that
// takes less waits until the poller says that there is room, until the timeout, or
// until the client is interrupted.
type shared struct {
	timeout  time.Duration
	fallback Transport // for connections that cannot be hijacked
	writers  []*sharedWriter
	next     atomic.Uint32
	poller   *poller
	buffers  sync.Pool // for goroutines that flush without being a writer
}

// NewShared returns the Transport that hijacks plain HTTP/1.1 connections, and
// leaves all others to fallback.
func NewShared(timeout time.Duration, fallback Transport) Transport {
	p, err := newPoller()
	if err != nil {
		return fallback // no epoll here; a goroutine for each client works everywhere
	}
	t := &shared{timeout: timeout, fallback: fallback, poller: p}
	t.buffers.New = func() any { return new(Buffer) }
	for range runtime.GOMAXPROCS(0) {
		t.writers = append(t.writers, &sharedWriter{transport: t, wakeup: make(chan struct{}, 1), slow: make(map[*sharedConn]struct{})})
	}
	return t
}

// Run runs the writers and the poller until ctx ends.
func (t *shared) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, w := range t.writers {
		wg.Go(func() { w.run(ctx) })
	}
	wg.Go(t.poller.run)
	<-ctx.Done()
	t.poller.close()
	wg.Wait()
}

func (t *shared) Open(w http.ResponseWriter, r *http.Request) (Conn, error) {
	if r.ProtoMajor != 1 || r.TLS != nil {
		return t.fallback.Open(w, r)
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil { // some middleware does not support it
		return t.fallback.Open(w, r)
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		conn.Close()
		return nil, fmt.Errorf("hijack connection: it is a %T", conn)
	}
	c := &sharedConn{opening: tcp, fd: -1, writer: t.writers[int(t.next.Add(1))%len(t.writers)]}
	// The header that the server would have sent. The body ends with the
	// connection.
	SetHeader(w.Header())
	w.Header().Set("Connection", "close")
	w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	var header bytes.Buffer
	header.WriteString("HTTP/1.1 200 OK\r\n")
	_ = w.Header().Write(&header) // a buffer never fails
	header.WriteString("\r\n")
	if err := c.Write(header.Bytes()); err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// A sharedConn is a hijacked connection. Its socket belongs to the turn: nothing
// outside of one reads, writes or closes it.
type sharedConn struct {
	writer *sharedWriter
	source Source // set by Serve
	token  uint64 // by which the poller names it
	fd     int    // the socket, from Serve on

	// Guarded by the writer's mutex.
	opening     *net.TCPConn // before Serve
	rest        *rest        // what the client has not taken yet; the turn lasts as long
	room        bool         // the poller saw room since the last write
	interrupted bool         // the next rest is given up
}

// A rest is what a socket had no room for.
type rest struct {
	buffer   Buffer
	written  int
	deadline time.Time
	woken    bool // it is in the writer's list
}

func (c *sharedConn) Write(p []byte) error {
	defer func() { _ = c.opening.SetWriteDeadline(time.Time{}) }() // fails only on a connection that is closed
	if err := c.opening.SetWriteDeadline(time.Now().Add(c.writer.transport.timeout)); err != nil {
		return err
	}
	_, err := c.opening.Write(p)
	return err
}

func (c *sharedConn) Serve(source Source) {
	c.source = source
	if err := c.takeSocket(); err != nil {
		source.Fail(err)
	}
	c.Wake()
}

// takeSocket takes the socket from Go's poller to this package's.
func (c *sharedConn) takeSocket() error {
	w := c.writer
	w.mu.Lock()
	conn := c.opening
	c.opening = nil
	w.mu.Unlock()
	defer conn.Close() // its descriptor: the socket has another one
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var duplicated error
	err = raw.Control(func(fd uintptr) { c.fd, duplicated = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, duplicated); err != nil {
		return fmt.Errorf("duplicate descriptor: %w", err)
	}
	return w.transport.poller.add(c)
}

// Wake leaves the turn to the writer. Since only one turn exists at a time, a
// connection is in one writer's list at most once.
func (c *sharedConn) Wake() {
	c.writer.mu.Lock()
	defer c.writer.mu.Unlock()
	c.writer.listLocked(c)
}

// Flush saves the way through a writer's goroutine, which for a few clients
// costs more than the writes.
func (c *sharedConn) Flush() {
	b := c.writer.transport.buffers.Get().(*Buffer)
	c.flush(b, time.Now())
	c.writer.transport.buffers.Put(b)
}

func (c *sharedConn) Interrupt() {
	w := c.writer
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.opening != nil {
		_ = c.opening.SetWriteDeadline(time.Now()) // fails only on a connection that is closed
	}
	c.interrupted = true
	w.wakeRestLocked(c)
}

// hasRoom says that the socket takes more.
func (c *sharedConn) hasRoom() {
	w := c.writer
	w.mu.Lock()
	defer w.mu.Unlock()
	c.room = true
	w.wakeRestLocked(c)
}

// flush writes waiting bytes, as far as the socket takes them, and ends the turn or
// passes it on.
func (c *sharedConn) flush(b *Buffer, now time.Time) {
	ended := c.source.Take(b, now)
	if len(b.Bytes) == 0 {
		if ended {
			c.writer.transport.poller.remove(c)
			_ = unix.Close(c.fd) // the client gets lost frames again by its cursor
			c.source.Closed()
		}
		return
	}
	n, err := writeNow(c.fd, b.Bytes)
	if err == nil && n < len(b.Bytes) {
		c.writer.keep(c, &rest{buffer: *b, written: n, deadline: now.Add(c.writer.transport.timeout)})
		*b = Buffer{}
		return
	}
	c.wrote(b, err)
}

// resume writes of the rest what there is room for now.
func (c *sharedConn) resume(r *rest, now time.Time) {
	w := c.writer
	w.mu.Lock()
	interrupted := c.interrupted
	c.room = false // of room that comes from here on the poller tells again
	w.mu.Unlock()
	err := os.ErrDeadlineExceeded
	if !interrupted && now.Before(r.deadline) {
		var n int
		n, err = writeNow(c.fd, r.buffer.Bytes[r.written:])
		r.written += n
	}
	if err == nil && r.written < len(r.buffer.Bytes) {
		w.keep(c, r)
		return
	}
	w.mu.Lock()
	c.rest = nil
	delete(w.slow, c)
	w.mu.Unlock()
	c.wrote(&r.buffer, err)
}

// wrote takes the result of a write, and ends the turn or passes it on.
func (c *sharedConn) wrote(b *Buffer, err error) {
	if err != nil {
		c.source.Fail(err)
	} else if c.source.Sent(b); c.source.Rest() {
		return
	}
	c.Wake()
}

// writeNow writes what the socket has room for, and returns how much that was.
func writeNow(fd int, p []byte) (n int, err error) {
	for n < len(p) {
		m, err := unix.Write(fd, p[n:])
		switch err {
		case nil:
			n += m
		case unix.EINTR:
		case unix.EAGAIN:
			return n, nil
		default:
			return n, err
		}
	}
	return n, nil
}

// A sharedWriter serves the connections that were woken, one after the other.
type sharedWriter struct {
	transport *shared
	wakeup    chan struct{}

	mu    sync.Mutex
	ready []*sharedConn
	slow  map[*sharedConn]struct{} // those with a rest
}

func (w *sharedWriter) run(ctx context.Context) {
	overdue := time.NewTicker(w.transport.timeout / 8)
	defer overdue.Stop()
	var b Buffer
	var batch, spare []*sharedConn
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-overdue.C:
			w.wakeOverdue(now)
			continue
		case <-w.wakeup:
		}
		w.mu.Lock()
		batch, w.ready = w.ready, spare[:0]
		w.mu.Unlock()
		now := time.Now()
		for i, c := range batch {
			if c.rest != nil { // it has the turn, and so has this goroutine
				c.resume(c.rest, now)
			} else {
				c.flush(&b, now)
			}
			batch[i] = nil
		}
		spare = batch
	}
}

// listLocked has the writer's goroutine serve c.
func (w *sharedWriter) listLocked(c *sharedConn) {
	w.ready = append(w.ready, c)
	if len(w.ready) == 1 {
		w.wakeup <- struct{}{} // never full: it was taken before ready was emptied
	}
}

// keep holds the turn of c until the rest is written or given up.
func (w *sharedWriter) keep(c *sharedConn, r *rest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.rest, r.woken = r, false
	w.slow[c] = struct{}{}
	if c.room || c.interrupted { // since the write
		w.wakeRestLocked(c)
	}
}

// wakeRestLocked has the writer's goroutine look at the rest of c, if it has one.
func (w *sharedWriter) wakeRestLocked(c *sharedConn) {
	if c.rest != nil && !c.rest.woken {
		c.rest.woken = true
		w.listLocked(c)
	}
}

// wakeOverdue looks at the rests that took too long.
func (w *sharedWriter) wakeOverdue(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.slow {
		if !now.Before(c.rest.deadline) {
			w.wakeRestLocked(c)
		}
	}
}
