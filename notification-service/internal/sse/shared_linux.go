package sse

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// sharedCarrier takes plain HTTP/1.1 connections over from the server and
// lets a few writers serve all of them. An idle client has no goroutine, no
// buffer and no timer: a socket and some 500 bytes are all it costs.
//
// A writer sends as much as the socket takes at once. Only a client that
// takes less gets a goroutine, until it has caught up or is cut off.
type sharedCarrier struct {
	timeout time.Duration
	metrics *metrics
	plain   carrier // for what cannot be taken over
	writers []*sharedWriter
	next    atomic.Uint32
	watch   *watcher
	hands   sync.Pool // for those who serve a client themselves
}

func newSharedCarrier(timeout time.Duration, m *metrics, plain carrier) carrier {
	watch, err := newWatcher()
	if err != nil {
		return plain // no epoll here; a goroutine per client works everywhere
	}
	s := &sharedCarrier{timeout: timeout, metrics: m, plain: plain, watch: watch}
	s.hands.New = func() any { return newHand() }
	for range runtime.GOMAXPROCS(0) {
		s.writers = append(s.writers, newSharedWriter(s))
	}
	return s
}

// serve runs the writers until stop is closed, when no client is left.
func (s *sharedCarrier) serve(stop <-chan struct{}) {
	var wg sync.WaitGroup
	for _, w := range s.writers {
		wg.Go(func() { w.run(stop) })
	}
	wg.Go(s.watch.run)
	<-stop
	s.watch.close()
	wg.Wait()
}

func (s *sharedCarrier) open(w http.ResponseWriter, r *http.Request) (outlet, error) {
	rc := http.NewResponseController(w)
	if r.TLS != nil {
		return s.plain.open(w, r)
	}
	conn, _, err := rc.Hijack()
	if err != nil { // some middleware does not let go of it
		return s.plain.open(w, r)
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		conn.Close()
		return nil, fmt.Errorf("take connection over: it is a %T", conn)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("take connection over: %w", err)
	}
	o := &sharedOutlet{conn: tcp, raw: raw, writer: s.writers[int(s.next.Add(1))%len(s.writers)]}
	if err := o.write(answerHeader(w.Header())); err != nil {
		conn.Close()
		return nil, err
	}
	return o, nil
}

// answerHeader returns the header that the server would have sent. The body
// ends with the connection.
func answerHeader(h http.Header) []byte {
	streamHeader(h)
	h.Set("Connection", "close")
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 200 OK\r\n")
	_ = h.Write(&b) // a buffer never fails
	b.WriteString("\r\n")
	return b.Bytes()
}

// sharedOutlet is a connection that was taken over.
type sharedOutlet struct {
	conn   *net.TCPConn
	raw    syscall.RawConn
	writer *sharedWriter
	token  uint64 // by which the watcher knows it
}

func (o *sharedOutlet) write(p []byte) error {
	defer func() { _ = o.conn.SetWriteDeadline(time.Time{}) }() // fails only on a connection that is gone
	if err := o.conn.SetWriteDeadline(time.Now().Add(o.writer.carrier.timeout)); err != nil {
		return err
	}
	_, err := o.conn.Write(p)
	return err
}

func (o *sharedOutlet) run(c *client) {
	if err := o.writer.carrier.watch.add(o, c); err != nil {
		c.cut(reasonLeft)
	}
	o.wake(c)
}

func (o *sharedOutlet) wake(c *client) { o.writer.push(c) }

// serve saves the way through a writer's goroutine, which costs a client of
// its own more than the write.
func (o *sharedOutlet) serve(c *client) {
	h := o.writer.carrier.hands.Get().(*hand)
	o.writer.flush(h, c, time.Now())
	o.writer.carrier.hands.Put(h)
}

func (o *sharedOutlet) interrupt() {
	_ = o.conn.SetWriteDeadline(time.Now()) // fails only on a connection that is gone
}

func (o *sharedOutlet) close() {
	o.writer.carrier.watch.remove(o)
	_ = o.conn.Close() // what is lost with it comes again with the cursor
}

// A sharedWriter sends to the clients that were woken, one after the other.
type sharedWriter struct {
	carrier *sharedCarrier
	bell    chan struct{}
	slow    sync.WaitGroup

	mu    sync.Mutex
	ready []*client
}

func newSharedWriter(s *sharedCarrier) *sharedWriter {
	return &sharedWriter{carrier: s, bell: make(chan struct{}, 1)}
}

// A hand is what a goroutine needs to write, used again and again.
type hand struct {
	load load
	try  attempt
}

func newHand() *hand {
	h := &hand{}
	h.try.fn = h.try.write
	return h
}

// push has c served. A client is pushed by whoever schedules it, so that it
// is never in the hands of two.
func (w *sharedWriter) push(c *client) {
	w.mu.Lock()
	w.ready = append(w.ready, c)
	first := len(w.ready) == 1
	w.mu.Unlock()
	if first {
		w.bell <- struct{}{} // never full: it was taken before ready was emptied
	}
}

func (w *sharedWriter) run(stop <-chan struct{}) {
	defer w.slow.Wait()
	h := newHand()
	var spare []*client
	for {
		select {
		case <-stop:
			return
		case <-w.bell:
		}
		w.mu.Lock()
		batch := w.ready
		w.ready = spare[:0]
		w.mu.Unlock()
		now := time.Now()
		for i, c := range batch {
			w.flush(h, c, now)
			batch[i] = nil
		}
		spare = batch
	}
}

// flush sends what waits for c, without waiting itself. Whoever has
// scheduled the client calls it, so that nobody else does.
func (w *sharedWriter) flush(h *hand, c *client, now time.Time) {
	o := c.out.(*sharedOutlet)
	why := c.take(&h.load, now)
	if len(h.load.bytes) == 0 {
		if why != reasonNone {
			o.close()
			c.hub.remove(c, why)
		}
		return
	}
	n, err := h.try.send(o.raw, h.load.bytes)
	switch {
	case err != nil:
		c.cut(reasonLeft)
	case n < len(h.load.bytes):
		rest := bytes.Clone(h.load.bytes[n:])
		w.slow.Go(func() { w.insist(c, o, rest) })
		return
	default:
		w.carrier.metrics.sent(&h.load)
		if c.rest() {
			return
		}
	}
	w.push(c)
}

// insist waits for a client that does not take everything at once. Until it
// is done, the client stays scheduled and nobody else writes to it.
func (w *sharedWriter) insist(c *client, o *sharedOutlet, rest []byte) {
	if err := o.write(rest); err != nil {
		c.cut(failure(err))
	}
	w.push(c)
}

// An attempt is a write that takes what the socket has room for. It is kept
// for the next one, because a closure per write would be garbage.
type attempt struct {
	p   []byte
	n   int
	err error
	fn  func(fd uintptr) bool
}

func (a *attempt) send(raw syscall.RawConn, p []byte) (int, error) {
	a.p, a.n, a.err = p, 0, nil
	if err := raw.Write(a.fn); err != nil {
		return 0, err
	}
	return a.n, a.err
}

func (a *attempt) write(fd uintptr) bool {
	for a.n < len(a.p) {
		n, err := syscall.Write(int(fd), a.p[a.n:])
		switch {
		case n > 0:
			a.n += n
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return true
		default:
			a.err = err
			return true
		}
	}
	return true // also with less: nobody waits here
}
