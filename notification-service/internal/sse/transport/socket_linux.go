package transport

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// sendBuffer bounds what the kernel buffers for a client that does not read;
	// by default it is some megabytes. The kernel doubles this number.
	sendBuffer = 32 << 10
	// unackedMillis ends a connection whose other side acknowledges nothing.
	unackedMillis = 30_000
)

// Control sets the options of a listening socket, for net.ListenConfig. Its
// connections inherit them.
func Control(_, _ string, raw syscall.RawConn) error {
	var err error
	outer := raw.Control(func(fd uintptr) {
		if err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer); err == nil {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, unackedMillis)
		}
	})
	return errors.Join(outer, err)
}
