package transport

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A poller notices that clients leave, without a goroutine for each: all
// sockets are in one epoll set, and Go's own poller waits for that.
type poller struct {
	file *os.File
	raw  syscall.RawConn

	mu    sync.Mutex
	last  uint64 // token
	conns map[uint64]*sharedConn
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
	return &poller{file: file, raw: raw, conns: make(map[uint64]*sharedConn)}, nil
}

// add watches c. A token is never used twice, unlike a file descriptor, so that
// a late event cannot reach the wrong connection.
func (p *poller) add(c *sharedConn) error {
	p.mu.Lock()
	p.last++
	c.token = p.last
	p.conns[c.token] = c
	p.mu.Unlock()
	event := unix.EpollEvent{
		Events: unix.EPOLLRDHUP | unix.EPOLLET, // errors and hang-ups are always reported
		Fd:     int32(c.token),
		Pad:    int32(c.token >> 32),
	}
	var added error
	err := p.raw.Control(func(set uintptr) {
		err := c.raw.Control(func(socket uintptr) {
			added = unix.EpollCtl(int(set), unix.EPOLL_CTL_ADD, int(socket), &event)
		})
		added = errors.Join(added, err)
	})
	return errors.Join(err, added)
}

// remove forgets c. Closing its socket takes it out of the set.
func (p *poller) remove(c *sharedConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c.token)
}

// run ends the sources of clients that left, until close.
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
			p.mu.Lock()
			c := p.conns[uint64(uint32(e.Fd))|uint64(uint32(e.Pad))<<32]
			p.mu.Unlock()
			if c != nil {
				c.source.Fail(errLeft)
			}
		}
	}
}

func (p *poller) close() { _ = p.file.Close() }
