package transport

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// sendBuffer bounds what the kernel takes for a client that does not read;
	// by default it is some megabytes. The kernel doubles what it is told.
	sendBuffer = 32 << 10
	// unackedMillis ends a connection whose other side is gone without a word.
	unackedMillis = 30_000
)

// Control prepares a listening socket, for net.ListenConfig. The connections
// inherit what is set here.
func Control(_, _ string, raw syscall.RawConn) error {
	var err error
	outer := raw.Control(func(fd uintptr) {
		if err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer); err == nil {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, unackedMillis)
		}
	})
	if outer != nil {
		return outer
	}
	return err
}
