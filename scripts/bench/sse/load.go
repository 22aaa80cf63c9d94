package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A crowd is many clients of one server, in plain HTTP/1.1 with as little of
// the processor as possible.
type crowd struct {
	conns    []net.Conn
	received atomic.Int64
	dead     atomic.Int64
	reading  sync.WaitGroup

	mu        sync.Mutex
	latencies []time.Duration
}

// connecting is how many connections are opened at the same time.
const connecting = 64

// gather connects n clients to topics t0 to t<topics-1>.
func gather(h *hub, n, topics int) (*crowd, error) {
	c := &crowd{conns: make([]net.Conn, n)}
	var opening sync.WaitGroup
	var failed atomic.Pointer[error]
	slots := make(chan struct{}, connecting)
	for i := range n {
		slots <- struct{}{}
		opening.Go(func() {
			defer func() { <-slots }()
			conn, err := subscribe(h, "t"+strconv.Itoa(i%topics))
			if err != nil {
				failed.Store(&err)
				return
			}
			c.conns[i] = conn
			c.reading.Go(func() { c.read(conn) })
		})
	}
	opening.Wait()
	if err := failed.Load(); err != nil {
		c.leave()
		return nil, *err
	}
	return c, nil
}

// subscribe opens a stream and waits for the answer's header.
func subscribe(h *hub, topic string) (net.Conn, error) {
	conn, err := net.Dial("tcp", h.Addr)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "GET /sub/%s HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", topic, h.Addr)
	if err == nil {
		err = answered(conn)
	}
	if err != nil {
		_ = conn.Close() // it was of no use
		return nil, err
	}
	return conn, nil
}

// answered waits for the first bytes of the answer.
func answered(conn net.Conn) error {
	want := "HTTP/1.1 200"
	got := make([]byte, len(want))
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, got); err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	if string(got) != want {
		return fmt.Errorf("answer %q", got)
	}
	return conn.SetReadDeadline(time.Time{})
}

// stamp stands before the time at which an event was published, in
// nanoseconds.
const stamp, stampDigits = `"t":`, 19

// read counts the events of a client by their stamps.
func (c *crowd) read(conn net.Conn) {
	buf := make([]byte, 1024)
	var own []time.Duration
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.latencies = append(c.latencies, own...)
	}()
	for carried := 0; ; {
		n, err := conn.Read(buf[carried:])
		if err != nil {
			c.dead.Add(1)
			return
		}
		carried = scan(buf, carried+n, func(t int64) {
			own = append(own, time.Duration(time.Now().UnixNano()-t))
			c.received.Add(1)
		})
	}
}

// scan finds the stamps in buf[:n] and returns how much of its end it moved
// to the beginning, because a stamp may go on.
func scan(buf []byte, n int, found func(int64)) int {
	rest := buf[:n]
	for {
		i := bytes.Index(rest, []byte(stamp))
		if i < 0 {
			return copy(buf, rest[max(0, len(rest)-len(stamp)):])
		}
		if len(rest) < i+len(stamp)+stampDigits {
			return copy(buf, rest[i:])
		}
		digits := rest[i+len(stamp):][:stampDigits]
		if t, err := strconv.ParseInt(string(digits), 10, 64); err == nil {
			found(t)
		}
		rest = rest[i+len(stamp)+stampDigits:]
	}
}

// leave closes all connections, and returns the latencies of what came.
func (c *crowd) leave() []time.Duration {
	for _, conn := range c.conns {
		if conn != nil {
			_ = conn.Close() // the server may have been first
		}
	}
	c.reading.Wait()
	return c.latencies
}

var publisher = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

var errPublish = errors.New("publish refused")

// publish sends an event of the size to a topic.
func publish(h *hub, topic string, size int) error {
	body := fmt.Sprintf(`{%s%d,"pad":%q}`, stamp, time.Now().UnixNano(), strings.Repeat("x", max(0, size-40)))
	res, err := publisher.Post("http://"+h.Addr+"/pub/"+topic, "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body) // so that the connection is used again
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%w: %s", errPublish, res.Status)
	}
	return nil
}
