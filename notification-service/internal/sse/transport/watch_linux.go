package transport

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A watcher notices when clients go away, without a goroutine for each: all
// sockets are in one epoll set, which is itself waited for by Go's poller.
type watcher struct {
	file *os.File
	raw  syscall.RawConn

	mu      sync.Mutex
	last    uint64
	outlets map[uint64]*sharedOutlet
}

func newWatcher() (*watcher, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll set: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that Go's poller takes it
		_ = unix.Close(fd)
		return nil, fmt.Errorf("create epoll set: %w", err)
	}
	file := os.NewFile(uintptr(fd), "epoll")
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("create epoll set: %w", err)
	}
	return &watcher{file: file, raw: raw, outlets: make(map[uint64]*sharedOutlet)}, nil
}

// add watches the connection of o. Tokens are never used twice, unlike file
// descriptors, so that a late event cannot meet the wrong client.
func (w *watcher) add(o *sharedOutlet) error {
	w.mu.Lock()
	w.last++
	o.token = w.last
	w.outlets[o.token] = o
	w.mu.Unlock()
	event := unix.EpollEvent{
		Events: unix.EPOLLRDHUP | unix.EPOLLET, // errors and hang-ups are always told
		Fd:     int32(o.token),
		Pad:    int32(o.token >> 32),
	}
	return w.control(func(epoll int) (err error) {
		if outer := o.raw.Control(func(fd uintptr) {
			err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, int(fd), &event)
		}); outer != nil {
			return outer
		}
		return err
	})
}

func (w *watcher) control(do func(epoll int) error) (err error) {
	if outer := w.raw.Control(func(fd uintptr) { err = do(int(fd)) }); outer != nil {
		return outer
	}
	return err
}

// remove forgets a client. Closing its socket takes that out of the set.
func (w *watcher) remove(o *sharedOutlet) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.outlets, o.token)
}

// run ends the streams of clients that left, until close.
func (w *watcher) run() {
	events := make([]unix.EpollEvent, 128)
	for {
		n := 0
		err := w.raw.Read(func(fd uintptr) bool {
			n, _ = unix.EpollWait(int(fd), events, 0) // EINTR: the poller asks again
			return n > 0
		})
		if err != nil {
			return
		}
		for _, e := range events[:n] {
			if o := w.outlet(uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32); o != nil {
				o.source.Fail(errLeft)
			}
		}
	}
}

func (w *watcher) outlet(token uint64) *sharedOutlet {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outlets[token]
}

func (w *watcher) close() { _ = w.file.Close() }
