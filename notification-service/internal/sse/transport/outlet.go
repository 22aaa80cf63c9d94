// Package transport carries streams to clients: it takes what a Source has for
// its client to the client's connection, and tells the Source when that ends.
//
// It knows HTTP, sockets and who writes when, and nothing of what is sent.
package transport

import (
	"errors"
	"net/http"
	"sync"
	"time"
)

// A Source is what a client is sent. Exactly one writer works on it at a time:
// whoever woke it, until Rest or Take says that nothing is left.
type Source interface {
	// Take moves what waits into l. With nothing left, it reports whether the
	// stream has ended; if not, the outlet must be woken for what comes next.
	Take(l *Load, now time.Time) (ended bool)
	// Sent says that what was taken is written.
	Sent(l *Load)
	// Rest reports that nothing waits, and from then on the outlet must be woken.
	Rest() bool
	// Fail ends the stream: the client left or does not read.
	Fail(err error)
	// Closed says that the connection is closed, or about to be. It is called
	// once, after Take has reported the end.
	Closed()
}

// A Load is what a writer sends to a client at once. Writers use theirs again
// and again.
type Load struct {
	Bytes  []byte
	Events int
	At     []time.Time // when those that came live were committed
}

// An Outlet is what carries bytes to a client: its connection, and whoever
// writes to it.
type Outlet interface {
	// Write sends p whole, and may block up to the write timeout. It is for
	// the time before Run.
	Write(p []byte) error
	// Run sends what source has until it has ended. It may return before that
	// and leave the work to others.
	Run(source Source)
	// Wake tells the writer that there is something to do. It never blocks.
	Wake()
	// Serve does at once, if it can, what Wake has the writer do. It never
	// blocks either.
	Serve()
	// Interrupt ends a write that is waiting for the client.
	Interrupt()
}

// A Carrier makes outlets out of requests.
type Carrier interface {
	// Open begins the answer: status and header.
	Open(w http.ResponseWriter, r *http.Request) (Outlet, error)
	// Serve does for the outlets what is to be done in the background until
	// stop is closed.
	Serve(stop <-chan struct{})
}

// errLeft says that the client closed its connection.
var errLeft = errors.New("client left")

// StreamHeader sets the header of every stream. Buffering and transforming
// on the way would hold events back.
func StreamHeader(h http.Header) {
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
}

// httpCarrier leaves each client to the goroutine of its request. It works
// with any version of HTTP and any middleware, at the price of a stack and
// net/http's buffers for each.
type httpCarrier struct {
	timeout time.Duration
	loads   sync.Pool
}

// NewHTTP returns a Carrier that leaves each client to the goroutine of its
// request. A client that takes nothing for the timeout has failed.
func NewHTTP(timeout time.Duration) Carrier {
	return &httpCarrier{timeout: timeout, loads: sync.Pool{New: func() any { return new(Load) }}}
}

func (*httpCarrier) Serve(stop <-chan struct{}) { <-stop }

func (h *httpCarrier) Open(w http.ResponseWriter, r *http.Request) (Outlet, error) {
	StreamHeader(w.Header())
	o := &httpOutlet{h, w, http.NewResponseController(w), r.Context().Done(), make(chan struct{}, 1)}
	w.WriteHeader(http.StatusOK)
	return o, o.rc.Flush()
}

type httpOutlet struct {
	carrier *httpCarrier
	w       http.ResponseWriter
	rc      *http.ResponseController
	gone    <-chan struct{}
	bell    chan struct{}
}

func (o *httpOutlet) Write(p []byte) error {
	// The server's own deadline is for a whole answer; a stream has one per write.
	if err := o.rc.SetWriteDeadline(time.Now().Add(o.carrier.timeout)); err != nil {
		return err
	}
	if _, err := o.w.Write(p); err != nil {
		return err
	}
	return o.rc.Flush()
}

func (o *httpOutlet) Wake() {
	select {
	case o.bell <- struct{}{}:
	default: // it rings already
	}
}

func (o *httpOutlet) Serve() { o.Wake() }

func (o *httpOutlet) Interrupt() {
	_ = o.rc.SetWriteDeadline(time.Now()) // fails only on a connection that is gone
}

func (o *httpOutlet) Run(source Source) {
	o.Wake()
	for {
		select {
		case <-o.bell:
		case <-o.gone:
			source.Fail(errLeft)
		}
		if o.flush(source) {
			source.Closed()
			return
		}
	}
}

// flush writes until nothing waits, and reports whether the stream has ended.
func (o *httpOutlet) flush(source Source) (ended bool) {
	l := o.carrier.loads.Get().(*Load)
	defer o.carrier.loads.Put(l)
	for {
		ended := source.Take(l, time.Now())
		if len(l.Bytes) == 0 {
			return ended
		}
		if err := o.Write(l.Bytes); err != nil {
			source.Fail(err)
			continue
		}
		source.Sent(l)
	}
}
