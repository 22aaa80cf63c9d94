package sse

import (
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// An outlet is what carries bytes to a client: its connection, and whoever
// writes to it.
type outlet interface {
	// write sends p whole, and may block up to the write timeout. It is for
	// the time before run.
	write(p []byte) error
	// run sends what the client is offered until it has ended. It may return
	// before that and leave the work to others.
	run(c *client)
	// wake tells the writer of c that there is something to do. It never
	// blocks.
	wake(c *client)
	// serve does at once, if it can, what wake has the writer do. It never
	// blocks either.
	serve(c *client)
	// interrupt ends a write that is waiting for the client.
	interrupt()
}

// A carrier makes outlets out of requests.
type carrier interface {
	// open begins the answer: status and header.
	open(w http.ResponseWriter, r *http.Request) (outlet, error)
	// serve does for the outlets what is to be done in the background until
	// stop is closed.
	serve(stop <-chan struct{})
}

// streamHeader sets the header of every stream. Buffering and transforming
// on the way would hold events back.
func streamHeader(h http.Header) {
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
	metrics *metrics
	loads   sync.Pool
}

func newHTTPCarrier(timeout time.Duration, m *metrics) *httpCarrier {
	return &httpCarrier{timeout: timeout, metrics: m, loads: sync.Pool{New: func() any { return new(load) }}}
}

func (*httpCarrier) serve(stop <-chan struct{}) { <-stop }

func (h *httpCarrier) open(w http.ResponseWriter, r *http.Request) (outlet, error) {
	streamHeader(w.Header())
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

func (o *httpOutlet) write(p []byte) error {
	// The server's own deadline is for a whole answer; a stream has one per write.
	if err := o.rc.SetWriteDeadline(time.Now().Add(o.carrier.timeout)); err != nil {
		return err
	}
	if _, err := o.w.Write(p); err != nil {
		return err
	}
	return o.rc.Flush()
}

func (o *httpOutlet) wake(*client) {
	select {
	case o.bell <- struct{}{}:
	default: // it rings already
	}
}

func (o *httpOutlet) serve(c *client) { o.wake(c) }

func (o *httpOutlet) interrupt() {
	_ = o.rc.SetWriteDeadline(time.Now()) // fails only on a connection that is gone
}

func (o *httpOutlet) run(c *client) {
	o.wake(c)
	for {
		select {
		case <-o.bell:
		case <-o.gone:
			c.cut(reasonLeft)
		}
		if why := o.flush(c); why != reasonNone {
			c.hub.remove(c, why)
			return
		}
	}
}

// flush writes until nothing waits, or tells why the client has ended.
func (o *httpOutlet) flush(c *client) reason {
	l := o.carrier.loads.Get().(*load)
	defer o.carrier.loads.Put(l)
	for {
		why := c.take(l, time.Now())
		if len(l.bytes) == 0 {
			return why
		}
		if err := o.write(l.bytes); err != nil {
			c.cut(failure(err))
			continue
		}
		o.carrier.metrics.sent(l)
	}
}

// failure tells a client that does not read from one that is gone.
func failure(err error) reason {
	var timeout net.Error
	if errors.Is(err, os.ErrDeadlineExceeded) || (errors.As(err, &timeout) && timeout.Timeout()) {
		return reasonStalled
	}
	return reasonLeft
}
