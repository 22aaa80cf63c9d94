package transport

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A poller notices that clients leave, and that sockets which were full have room,
// without a goroutine for each: all sockets are in one epoll set, and Go's own poller
// waits for that.
type poller struct {
	file *os.File
	raw  syscall.RawConn

	mu    sync.Mutex
	added uint32        // how many were
	conns []*sharedConn // by the lower half of their token
	free  []uint32      // places in conns
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll set: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that Go's poller accepts it
		_ = unix.Close(fd)
		return nil, fmt.Errorf("create epoll set: %w", err)
	}
	file := os.NewFile(uintptr(fd), "epoll")
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("create epoll set: %w", err)
	}
	return &poller{file: file, raw: raw}, nil
}

// add watches c. A token is never used twice, unlike a file descriptor or a place in
// conns, so that a late event cannot reach the wrong connection.
func (p *poller) add(c *sharedConn) error {
	p.mu.Lock()
	p.added++
	place := uint32(len(p.conns))
	if last := len(p.free) - 1; last >= 0 {
		place, p.free = p.free[last], p.free[:last]
		p.conns[place] = c
	} else {
		p.conns = append(p.conns, c)
	}
	c.token = uint64(p.added)<<32 | uint64(place)
	p.mu.Unlock()
	event := unix.EpollEvent{
		Events: unix.EPOLLRDHUP | unix.EPOLLOUT | unix.EPOLLET, // errors and hang-ups are always reported
		Fd:     int32(c.token),
		Pad:    int32(c.token >> 32),
	}
	var added error
	err := p.raw.Control(func(set uintptr) {
		added = unix.EpollCtl(int(set), unix.EPOLL_CTL_ADD, c.fd, &event)
	})
	return errors.Join(err, added)
}

// find returns the connection of a token, nil if it is closed.
func (p *poller) find(token uint64) *sharedConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.conns[uint32(token)]; c != nil && c.token == token {
		return c
	}
	return nil
}

// remove forgets c, which may never have been added. Closing its socket takes it out
// of the set.
func (p *poller) remove(c *sharedConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if place := uint32(c.token); c.token != 0 {
		p.conns[place] = nil
		p.free = append(p.free, place)
	}
}

// run tells connections of room, and ends the sources of clients that left, until close.
func (p *poller) run() {
	events := make([]unix.EpollEvent, 128)
	for {
		n := 0
		err := p.raw.Read(func(fd uintptr) bool {
			n, _ = unix.EpollWait(int(fd), events, 0) // after EINTR Go's poller wakes again
			return n > 0
		})
		if err != nil {
			return
		}
		for _, e := range events[:n] {
			c := p.find(uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32)
			switch {
			case c == nil:
			case e.Events&^unix.EPOLLOUT != 0:
				c.source.Fail(errLeft)
				c.Interrupt()
			default:
				c.hasRoom()
			}
		}
	}
}

func (p *poller) close() { _ = p.file.Close() }
