package transport

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// perRequest leaves each client to the goroutine of its request. It works with
// any version of HTTP and any middleware, at the price of a stack and
// net/http's buffers for each client.
type perRequest struct {
	timeout time.Duration
	buffers sync.Pool
}

// NewPerRequest returns the Transport that has a goroutine for each client. A
// client that takes nothing for the timeout has failed.
func NewPerRequest(timeout time.Duration) Transport {
	return &perRequest{timeout: timeout, buffers: sync.Pool{New: func() any { return new(Buffer) }}}
}

func (*perRequest) Run(ctx context.Context) { <-ctx.Done() }

func (t *perRequest) Open(w http.ResponseWriter, r *http.Request) (Conn, error) {
	SetHeader(w.Header())
	c := &requestConn{t, w, http.NewResponseController(w), r.Context().Done(), make(chan struct{}, 1)}
	w.WriteHeader(http.StatusOK)
	return c, c.rc.Flush()
}

// A requestConn writes in the goroutine of its request.
type requestConn struct {
	transport *perRequest
	w         http.ResponseWriter
	rc        *http.ResponseController
	left      <-chan struct{}
	wakeup    chan struct{}
}

func (c *requestConn) Write(p []byte) error {
	// The server's own deadline is for a whole response; a stream has one per write.
	if err := c.rc.SetWriteDeadline(time.Now().Add(c.transport.timeout)); err != nil {
		return err
	}
	if _, err := c.w.Write(p); err != nil {
		return err
	}
	return c.rc.Flush()
}

func (c *requestConn) Wake() {
	select {
	case c.wakeup <- struct{}{}:
	default: // a wake-up is pending
	}
}

func (c *requestConn) Flush() { c.Wake() }

func (c *requestConn) Interrupt() {
	_ = c.rc.SetWriteDeadline(time.Now()) // fails only on a connection that is closed
}

func (c *requestConn) Serve(source Source) {
	c.Wake()
	for {
		select {
		case <-c.wakeup:
		case <-c.left:
			source.Fail(errLeft)
		}
		if c.flush(source) {
			source.Closed()
			return
		}
	}
}

// flush writes until nothing waits, and reports whether source has ended.
func (c *requestConn) flush(source Source) (ended bool) {
	b := c.transport.buffers.Get().(*Buffer) // only now: a client that rests has none
	defer c.transport.buffers.Put(b)
	for {
		ended := source.Take(b, time.Now())
		if len(b.Bytes) == 0 {
			return ended
		}
		if err := c.Write(b.Bytes); err != nil {
			source.Fail(err)
			continue
		}
		source.Sent(b)
	}
}
