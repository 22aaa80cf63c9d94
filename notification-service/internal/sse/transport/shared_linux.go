package transport

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
	plain   Carrier // for what cannot be taken over
	writers []*sharedWriter
	next    atomic.Uint32
	watch   *watcher
	hands   sync.Pool // for those who serve a client themselves
}

// NewShared returns a Carrier that takes plain HTTP/1.1 connections over and
// leaves all others to plain.
func NewShared(timeout time.Duration, plain Carrier) Carrier {
	watch, err := newWatcher()
	if err != nil {
		return plain // no epoll here; a goroutine per client works everywhere
	}
	s := &sharedCarrier{timeout: timeout, plain: plain, watch: watch}
	s.hands.New = func() any { return newHand() }
	for range runtime.GOMAXPROCS(0) {
		s.writers = append(s.writers, newSharedWriter(s))
	}
	return s
}

// Serve runs the writers until stop is closed, when no client is left.
func (s *sharedCarrier) Serve(stop <-chan struct{}) {
	var wg sync.WaitGroup
	for _, w := range s.writers {
		wg.Go(func() { w.run(stop) })
	}
	wg.Go(s.watch.run)
	<-stop
	s.watch.close()
	wg.Wait()
}

func (s *sharedCarrier) Open(w http.ResponseWriter, r *http.Request) (Outlet, error) {
	rc := http.NewResponseController(w)
	if r.ProtoMajor != 1 || r.TLS != nil {
		return s.plain.Open(w, r)
	}
	conn, _, err := rc.Hijack()
	if err != nil { // some middleware does not let go of it
		return s.plain.Open(w, r)
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
	if err := o.Write(answerHeader(w.Header())); err != nil {
		conn.Close()
		return nil, err
	}
	return o, nil
}

// answerHeader returns the header that the server would have sent. The body
// ends with the connection.
func answerHeader(h http.Header) []byte {
	StreamHeader(h)
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
	source Source // set by Run
	token  uint64 // by which the watcher knows it
}

func (o *sharedOutlet) Write(p []byte) error {
	defer func() { _ = o.conn.SetWriteDeadline(time.Time{}) }() // fails only on a connection that is gone
	if err := o.conn.SetWriteDeadline(time.Now().Add(o.writer.carrier.timeout)); err != nil {
		return err
	}
	_, err := o.conn.Write(p)
	return err
}

func (o *sharedOutlet) Run(source Source) {
	o.source = source
	if err := o.writer.carrier.watch.add(o); err != nil {
		source.Fail(err)
	}
	o.Wake()
}

func (o *sharedOutlet) Wake() { o.writer.push(o) }

// Serve saves the way through a writer's goroutine, which costs a client of
// its own more than the write.
func (o *sharedOutlet) Serve() {
	h := o.writer.carrier.hands.Get().(*hand)
	o.writer.flush(h, o, time.Now())
	o.writer.carrier.hands.Put(h)
}

func (o *sharedOutlet) Interrupt() {
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
	ready []*sharedOutlet
}

func newSharedWriter(s *sharedCarrier) *sharedWriter {
	return &sharedWriter{carrier: s, bell: make(chan struct{}, 1)}
}

// A hand is what a goroutine needs to write, used again and again.
type hand struct {
	load Load
	try  attempt
}

func newHand() *hand {
	h := &hand{}
	h.try.fn = h.try.write
	return h
}

// push has o served. An outlet is pushed by whoever schedules its client, so
// that it is never in the hands of two.
func (w *sharedWriter) push(o *sharedOutlet) {
	w.mu.Lock()
	w.ready = append(w.ready, o)
	first := len(w.ready) == 1
	w.mu.Unlock()
	if first {
		w.bell <- struct{}{} // never full: it was taken before ready was emptied
	}
}

func (w *sharedWriter) run(stop <-chan struct{}) {
	defer w.slow.Wait()
	h := newHand()
	var spare []*sharedOutlet
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
		for i, o := range batch {
			w.flush(h, o, now)
			batch[i] = nil
		}
		spare = batch
	}
}

// flush sends what waits for o, without waiting itself. Whoever has scheduled
// the client calls it, so that nobody else does.
func (w *sharedWriter) flush(h *hand, o *sharedOutlet, now time.Time) {
	ended := o.source.Take(&h.load, now)
	if len(h.load.Bytes) == 0 {
		if ended {
			o.close()
			o.source.Closed()
		}
		return
	}
	n, err := h.try.send(o.raw, h.load.Bytes)
	switch {
	case err != nil:
		o.source.Fail(err)
	case n < len(h.load.Bytes):
		rest := bytes.Clone(h.load.Bytes[n:])
		w.slow.Go(func() { w.insist(o, rest) })
		return
	default:
		o.source.Sent(&h.load)
		if o.source.Rest() {
			return
		}
	}
	w.push(o)
}

// insist waits for a client that does not take everything at once. Until it
// is done, the client stays scheduled and nobody else writes to it.
func (w *sharedWriter) insist(o *sharedOutlet, rest []byte) {
	if err := o.Write(rest); err != nil {
		o.source.Fail(err)
	}
	w.push(o)
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
