package transport

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// shared hijacks plain HTTP/1.1 connections and lets a few writers serve all
// of them. An idle client has no goroutine, no buffer and no timer: a socket
// and some 500 bytes are all it costs.
//
// A writer writes as much as the socket takes at once. Only a client that takes
// less gets a goroutine, until it has read the rest or is disconnected.
type shared struct {
	timeout  time.Duration
	fallback Transport // for connections that cannot be hijacked
	writers  []*sharedWriter
	next     atomic.Uint32
	poller   *poller
	scratch  sync.Pool // for goroutines that flush without being a writer
}

// NewShared returns the Transport that hijacks plain HTTP/1.1 connections, and
// leaves all others to fallback.
func NewShared(timeout time.Duration, fallback Transport) Transport {
	p, err := newPoller()
	if err != nil {
		return fallback // no epoll here; a goroutine for each client works everywhere
	}
	t := &shared{timeout: timeout, fallback: fallback, poller: p}
	t.scratch.New = func() any { return newScratch() }
	for range runtime.GOMAXPROCS(0) {
		t.writers = append(t.writers, &sharedWriter{transport: t, wakeup: make(chan struct{}, 1)})
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
	raw, err := tcp.SyscallConn()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("hijack connection: %w", err)
	}
	c := &sharedConn{conn: tcp, raw: raw, writer: t.writers[int(t.next.Add(1))%len(t.writers)]}
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

// A sharedConn is a hijacked connection.
type sharedConn struct {
	conn   *net.TCPConn
	raw    syscall.RawConn
	writer *sharedWriter
	source Source // set by Serve
	token  uint64 // by which the poller names it
}

func (c *sharedConn) Write(p []byte) error {
	defer func() { _ = c.conn.SetWriteDeadline(time.Time{}) }() // fails only on a connection that is closed
	if err := c.conn.SetWriteDeadline(time.Now().Add(c.writer.transport.timeout)); err != nil {
		return err
	}
	_, err := c.conn.Write(p)
	return err
}

func (c *sharedConn) Serve(source Source) {
	c.source = source
	if err := c.writer.transport.poller.add(c); err != nil {
		source.Fail(err)
	}
	c.Wake()
}

// Wake leaves the turn to the writer. Since only one turn exists at a time, a
// connection is in one writer's list at most once.
func (c *sharedConn) Wake() {
	w := c.writer
	w.mu.Lock()
	w.ready = append(w.ready, c)
	first := len(w.ready) == 1
	w.mu.Unlock()
	if first {
		w.wakeup <- struct{}{} // never full: it was taken before ready was emptied
	}
}

// Flush saves the way through a writer's goroutine, which for a few clients
// costs more than the writes.
func (c *sharedConn) Flush() {
	s := c.writer.transport.scratch.Get().(*scratch)
	c.flush(s, time.Now())
	c.writer.transport.scratch.Put(s)
}

func (c *sharedConn) Interrupt() {
	_ = c.conn.SetWriteDeadline(time.Now()) // fails only on a connection that is closed
}

// flush writes waiting bytes, as far as the socket takes them, and ends the turn or
// passes it on.
func (c *sharedConn) flush(s *scratch, now time.Time) {
	ended := c.source.Take(&s.buffer, now)
	if len(s.buffer.Bytes) == 0 {
		if ended {
			c.writer.transport.poller.remove(c)
			_ = c.conn.Close() // the client gets lost frames again by its cursor
			c.source.Closed()
		}
		return
	}
	n, err := s.write.do(c.raw, s.buffer.Bytes)
	switch {
	case err != nil:
		c.source.Fail(err)
	case n < len(s.buffer.Bytes):
		rest := s.buffer
		s.buffer = Buffer{}
		// The turn lasts until the client has taken the rest, so no other goroutine
		// writes to it.
		c.writer.slow.Go(func() {
			if err := c.Write(rest.Bytes[n:]); err != nil {
				c.source.Fail(err)
			} else {
				c.source.Sent(&rest)
			}
			c.Wake()
		})
		return
	default:
		c.source.Sent(&s.buffer)
		if c.source.Rest() {
			return
		}
	}
	c.Wake()
}

// A sharedWriter serves the connections that were woken, one after the other.
type sharedWriter struct {
	transport *shared
	wakeup    chan struct{}
	slow      sync.WaitGroup // those that write the rest

	mu    sync.Mutex
	ready []*sharedConn
}

func (w *sharedWriter) run(ctx context.Context) {
	defer w.slow.Wait()
	s := newScratch()
	var batch, spare []*sharedConn
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wakeup:
		}
		w.mu.Lock()
		batch, w.ready = w.ready, spare[:0]
		w.mu.Unlock()
		now := time.Now()
		for i, c := range batch {
			c.flush(s, now)
			batch[i] = nil
		}
		spare = batch
	}
}

// A scratch is what a goroutine needs to flush, used again and again.
type scratch struct {
	buffer Buffer
	write  nonblockingWrite
}

func newScratch() *scratch {
	s := &scratch{}
	s.write.fn = s.write.onReady
	return s
}

// A nonblockingWrite writes what the socket has room for. It is kept for the
// next write, because a closure for each would be garbage.
type nonblockingWrite struct {
	p   []byte
	n   int
	err error
	fn  func(fd uintptr) bool
}

// do returns how much of p was written.
func (w *nonblockingWrite) do(raw syscall.RawConn, p []byte) (int, error) {
	w.p, w.n, w.err = p, 0, nil
	if err := raw.Write(w.fn); err != nil {
		return 0, err
	}
	return w.n, w.err
}

// onReady always reports that it is done: with less than all of p, too, since
// the caller does not wait.
func (w *nonblockingWrite) onReady(fd uintptr) (done bool) {
	for w.n < len(w.p) {
		n, err := syscall.Write(int(fd), w.p[w.n:])
		switch {
		case n > 0:
			w.n += n
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return true
		default:
			w.err = err
			return true
		}
	}
	return true
}
