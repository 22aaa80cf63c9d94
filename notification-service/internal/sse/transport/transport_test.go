package transport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/sse/transport"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A source is a queue of bytes. It keeps the rules of transport.Source, and
// fails the test if the Conn does not.
type source struct {
	t    *testing.T
	conn transport.Conn

	mu        sync.Mutex
	queue     [][]byte
	scheduled bool // a turn has begun
	taking    bool
	err       error // of the first Fail
	ended     bool
	sent      int
	closed    chan struct{}
}

// newSource returns a source that is scheduled until Serve has been called.
func newSource(t *testing.T) *source {
	return &source{t: t, scheduled: true, closed: make(chan struct{})}
}

// put queues p. Every other time it flushes instead of waking a writer.
func (s *source) put(p []byte, flush bool) {
	s.mu.Lock()
	s.queue = append(s.queue, p)
	begin := !s.scheduled && !s.ended
	s.scheduled = true
	s.mu.Unlock()
	switch {
	case !begin:
	case flush:
		s.conn.Flush()
	default:
		s.conn.Wake()
	}
}

// end ends the source after what is queued.
func (s *source) end() {
	s.mu.Lock()
	begin := !s.scheduled
	s.ended, s.scheduled = true, true
	s.mu.Unlock()
	if begin {
		s.conn.Wake()
	}
}

func (s *source) Take(b *transport.Buffer, _ time.Time) (ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taking {
		s.t.Error("two goroutines take from one source")
	}
	b.Bytes, b.Shared = bytes.Join(s.queue, nil), len(s.queue)
	s.taking = len(s.queue) > 0
	if s.queue = nil; !s.taking {
		s.scheduled = s.ended
		return s.ended
	}
	return false
}

func (s *source) Sent(b *transport.Buffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taking = false
	s.sent += b.Shared
}

func (s *source) Rest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 || s.ended {
		return false
	}
	s.scheduled = false
	return true
}

func (s *source) Fail(err error) {
	s.mu.Lock()
	s.taking, s.queue = false, nil
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	s.end()
}

func (s *source) Closed() { close(s.closed) }

// wait waits for the end of the connection and returns why the source failed.
func (s *source) wait() error {
	s.t.Helper()
	select {
	case <-s.closed:
	case <-time.After(eventually.Patience):
		s.t.Fatal("the connection was not closed")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// each runs a test with each of the transports.
func each(t *testing.T, timeout time.Duration, test func(t *testing.T, tr transport.Transport)) {
	t.Parallel()
	for name, tr := range map[string]transport.Transport{
		"per request": transport.NewPerRequest(timeout),
		"shared":      transport.NewShared(timeout, transport.NewPerRequest(timeout)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
			var running sync.WaitGroup
			running.Go(func() { tr.Run(ctx) })
			t.Cleanup(func() { stop(); running.Wait() })
			test(t, tr)
		})
	}
}

// serve returns the address of a server that serves s, with small buffers.
func serve(t *testing.T, tr transport.Transport, s *source) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := tr.Open(w, r)
		if err != nil {
			t.Errorf("open: %v", err)
			return
		}
		s.mu.Lock()
		s.conn = conn
		s.mu.Unlock()
		if err := conn.Write([]byte("begin ")); err != nil {
			t.Errorf("write: %v", err)
		}
		conn.Serve(s)
	}))
	server.Listener.Close()
	lc := net.ListenConfig{Control: transport.Control}
	var err error
	if server.Listener, err = lc.Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// get makes a request and reads what was written before Serve.
func get(t *testing.T, client *http.Client, url string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	resp, err := client.Do(req)
	// net/http's server drops a connection of HTTP/2 whose first frame it has not read
	// after 2 s, which a busy machine may take. No handler has had the request then.
	for errors.Is(err, io.ErrUnexpectedEOF) && time.Since(began) < eventually.Patience {
		resp, err = client.Do(req)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() }) // the stream is given up
	want := "begin "
	got := make([]byte, len(want))
	if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
		t.Fatalf("the stream begins with %q (error %v), want %q", got, err, want)
	}
	return resp
}

// Whatever the socket takes at once, a client gets all bytes in order, and the
// connection is closed after the last.
func TestEverythingInOrder(t *testing.T) {
	each(t, eventually.Patience, func(t *testing.T, tr transport.Transport) {
		s := newSource(t)
		server := serve(t, tr, s)
		server.Start()
		resp := get(t, http.DefaultClient, server.URL)
		const pieces = 500
		var want bytes.Buffer
		for i := range pieces {
			fmt.Fprintf(&want, "%d:%s ", i, bytes.Repeat([]byte{'x'}, i*i%9000))
		}
		go func() { // all in all 2 MB, far more than the buffers on the way
			for i := range pieces {
				s.put(fmt.Appendf(nil, "%d:%s ", i, bytes.Repeat([]byte{'x'}, i*i%9000)), i%2 == 0)
			}
			s.end()
		}()
		got, err := io.ReadAll(resp.Body)
		if err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("got %d bytes (error %v), want the %d that were put", len(got), err, want.Len())
		}
		if err := s.wait(); err != nil || s.sent != pieces {
			t.Errorf("%d pieces counted as sent (error %v), want %d", s.sent, err, pieces)
		}
		if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
			t.Errorf("content type %q", got)
		}
	})
}

// A source that rests learns that its client left.
func TestClientLeaves(t *testing.T) {
	each(t, eventually.Patience, func(t *testing.T, tr transport.Transport) {
		s := newSource(t)
		server := serve(t, tr, s)
		server.Start()
		client := &http.Client{Transport: &http.Transport{}}
		get(t, client, server.URL).Body.Close()
		if err := s.wait(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the source failed with %v, want an error other than a timeout", err)
		}
	})
}

// A client that does not read fails with a timeout.
func TestStalledClient(t *testing.T) {
	each(t, 100*time.Millisecond, func(t *testing.T, tr transport.Transport) {
		s := newSource(t)
		server := serve(t, tr, s)
		server.Start()
		get(t, http.DefaultClient, server.URL)
		s.put(make([]byte, 32<<20), true)
		if err := s.wait(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the source failed with %v, want a timeout", err)
		}
	})
}

// Interrupt ends a write long before its timeout.
func TestInterrupt(t *testing.T) {
	each(t, time.Hour, func(t *testing.T, tr transport.Transport) {
		s := newSource(t)
		server := serve(t, tr, s)
		server.Start()
		get(t, http.DefaultClient, server.URL)
		s.put(make([]byte, 32<<20), false)
		interrupt := time.NewTicker(10 * time.Millisecond) // the write may not have begun
		defer interrupt.Stop()
		for deadline := time.After(eventually.Patience); ; {
			select {
			case <-s.closed:
				return
			case <-interrupt.C:
				s.mu.Lock()
				conn := s.conn
				s.mu.Unlock()
				conn.Interrupt()
			case <-deadline:
				t.Fatal("the write goes on")
			}
		}
	})
}

// HTTP/2 has no connection of its own for a stream: it is served per request.
func TestHTTP2(t *testing.T) {
	each(t, eventually.Patience, func(t *testing.T, tr transport.Transport) {
		s := newSource(t)
		server := serve(t, tr, s)
		server.EnableHTTP2 = true
		server.StartTLS()
		resp := get(t, server.Client(), server.URL)
		if resp.ProtoMajor != 2 {
			t.Errorf("protocol %s, want HTTP/2", resp.Proto)
		}
		go func() {
			s.put([]byte("end"), true)
			s.end()
		}()
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != "end" {
			t.Errorf("got %q (error %v), want the end", got, err)
		}
		if err := s.wait(); err != nil {
			t.Errorf("the source failed: %v", err)
		}
	})
}
