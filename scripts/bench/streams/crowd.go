//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// opening is how many connections are made at the same time at first.
	opening = 256
	// slotLength is how exactly clients come back.
	slotLength = 10 * time.Millisecond
	// firstRetry is for clients that have received no time yet.
	firstRetry = time.Second
	// control is where the command asks, in the place of a client's number.
	control = -1
)

// A crowd is many clients in one thread, which behave as EventSource does: one
// whose connection ends comes back with the last id, after the time that it was
// told. Goroutines would take more memory than what is measured.
type crowd struct {
	addr       string
	first      int // the number of the first client, among those of all crowds
	perAddress int

	server  unix.SockaddrInet4
	poll    int
	clients []client
	due     map[int64][]int32 // by slot, who comes back
	slot    int64             // the last that was looked at
	next    int               // who opens a stream next
	pending int               // who have begun to
	status  status
	buffer  []byte
}

// A client is one stream.
type client struct {
	fd     int32
	asked  bool // the request is sent
	open   bool // ready has come
	begun  bool // it was open before
	retry  time.Duration
	seen   int // number of the last event
	id     [48]byte
	idSize int
	rest   []byte // the beginning of a line
}

// A status says how far a crowd is.
type status struct {
	Open     int   `json:"open"`
	Received int   `json:"received"`
	Wrong    int   `json:"wrong"`   // came twice, or too early
	LastAt   int64 `json:"last_at"` // when something came last, or somebody
}

// run opens streams and keeps them open. For each line of the standard input it
// prints its status; it ends with the input.
func (c *crowd) run(streams int) error {
	host, port, err := net.SplitHostPort(c.addr)
	if err != nil {
		return err
	}
	copy(c.server.Addr[:], net.ParseIP(host).To4())
	if c.server.Port, err = strconv.Atoi(port); err != nil {
		return err
	}
	if c.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	c.clients, c.due, c.buffer = make([]client, streams), make(map[int64][]int32), make([]byte, 64<<10)
	c.slot = time.Now().UnixNano() / int64(slotLength)
	if err := unix.EpollCtl(c.poll, unix.EPOLL_CTL_ADD, int(os.Stdin.Fd()), &unix.EpollEvent{Events: unix.EPOLLIN, Fd: control}); err != nil {
		return err
	}
	events := make([]unix.EpollEvent, 1024)
	for {
		for c.pending < opening && c.next < streams {
			c.pending++
			c.connect(int32(c.next)) //nolint:gosec // far below 2³¹
			c.next++
		}
		n, err := unix.EpollWait(c.poll, events, int(slotLength/time.Millisecond))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		for _, e := range events[:max(n, 0)] {
			switch {
			case e.Fd == control:
				if ended, err := c.answer(); ended || err != nil {
					return err
				}
			case !c.clients[e.Fd].asked:
				c.ask(e.Fd)
			default:
				c.read(e.Fd)
			}
		}
		for now := time.Now().UnixNano() / int64(slotLength); c.slot < now; c.slot++ {
			for _, i := range c.due[c.slot] {
				c.connect(i)
			}
			delete(c.due, c.slot)
		}
	}
}

// answer prints the status for each line that was asked.
func (c *crowd) answer() (ended bool, err error) {
	n, err := unix.Read(int(os.Stdin.Fd()), c.buffer)
	if n == 0 || err != nil {
		return true, err
	}
	for range bytes.Count(c.buffer[:n], []byte("\n")) {
		if err := json.NewEncoder(os.Stdout).Encode(c.status); err != nil {
			return true, err
		}
	}
	return false, nil
}

// connect begins a connection. It waits for nobody: where a replica's queue is
// full, only this client is late.
func (c *crowd) connect(i int32) {
	client := &c.clients[i]
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		c.comeBack(i)
		return
	}
	client.fd, client.asked = int32(fd), false //nolint:gosec // below the limit of files
	address := 1 + (c.first+int(i))/c.perAddress
	source := unix.SockaddrInet4{Addr: [4]byte{127, 1, byte(address >> 8), byte(address)}} //nolint:gosec // below 2¹⁶
	err = errors.Join(
		// The port is chosen with the other end known, so that each address has all.
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1),
		unix.Bind(fd, &source),
		unix.EpollCtl(c.poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLOUT, Fd: i}),
	)
	if err == nil {
		if err = unix.Connect(fd, &c.server); errors.Is(err, unix.EINPROGRESS) {
			err = nil
		}
	}
	if err != nil {
		c.end(i)
	}
}

// ask sends the request of a client that is connected, or could not be.
func (c *crowd) ask(i int32) {
	client := &c.clients[i]
	client.asked = true
	request := fmt.Appendf(nil, "GET /sub/t%d?official=1 HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n", c.first+int(i), c.addr)
	if client.idSize > 0 {
		request = fmt.Appendf(request, "Last-Event-ID: %s\r\n", client.id[:client.idSize])
	}
	_, err := unix.Write(int(client.fd), append(request, "\r\n"...)) // fails if there is no connection
	if err == nil {
		err = unix.EpollCtl(c.poll, unix.EPOLL_CTL_MOD, int(client.fd), &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP, Fd: i})
	}
	if err != nil {
		c.end(i)
	}
}

// end closes a connection; its client comes back.
func (c *crowd) end(i int32) {
	client := &c.clients[i]
	_ = unix.Close(int(client.fd)) // the server may have been first
	if client.open {
		client.open = false
		c.status.Open--
	}
	client.rest = nil
	c.comeBack(i)
}

func (c *crowd) comeBack(i int32) {
	retry := c.clients[i].retry
	if retry == 0 {
		retry = firstRetry
	}
	at := max(time.Now().Add(retry).UnixNano()/int64(slotLength), c.slot+1)
	c.due[at] = append(c.due[at], i)
}

// read takes what a client was sent.
func (c *crowd) read(i int32) {
	client := &c.clients[i]
	kept := copy(c.buffer, client.rest)
	n, err := unix.Read(int(client.fd), c.buffer[kept:])
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return
	}
	if n <= 0 || err != nil {
		c.end(i)
		return
	}
	rest := c.buffer[:kept+n]
	for {
		line, after, found := bytes.Cut(rest, []byte("\n"))
		if !found {
			break
		}
		c.take(client, line)
		rest = after
	}
	client.rest = append(client.rest[:0], rest...)
}

// take takes a line. Those of the header of HTTP have no meaning here.
func (c *crowd) take(client *client, line []byte) {
	name, value, _ := bytes.Cut(line, []byte(": "))
	switch string(name) {
	case "retry":
		ms, _ := strconv.Atoi(string(value)) // 0 is none
		client.retry = time.Duration(ms) * time.Millisecond
	case "id":
		client.idSize = copy(client.id[:], value)
	case "event":
		if string(value) != "ready" {
			return
		}
		client.open = true
		c.status.Open++
		c.status.LastAt = time.Now().UnixNano()
		if !client.begun {
			client.begun = true
			c.pending--
		}
	case "data":
		_, number, found := bytes.Cut(value, []byte(`"n":`))
		if !found {
			return
		}
		digits, _, _ := bytes.Cut(number, []byte(","))
		n, _ := strconv.Atoi(string(digits)) // 0 is wrong
		if n != client.seen+1 {
			c.status.Wrong++
			return
		}
		client.seen = n
		c.status.Received++
		c.status.LastAt = time.Now().UnixNano()
	}
}
