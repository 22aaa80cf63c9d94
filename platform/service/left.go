package service

import (
	"context"
	"errors"
	"net"
	"syscall"
)

type connKey struct{}

// ClientLeft reports whether the client of the request that ctx belongs to has
// closed its connection. It asks the system, at the cost of one call. The context
// ends for the same reason, but only once net/http has come to read: in a process
// that was frozen, or on a busy machine, that may be after the work is done.
func ClientLeft(ctx context.Context) bool {
	conn, ok := ctx.Value(connKey{}).(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	left := false
	// Not raw.Read, which waits for the read of net/http.
	err = raw.Control(func(fd uintptr) {
		n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		left = err == nil && n == 0 || errors.Is(err, syscall.ECONNRESET)
	})
	return left || errors.Is(err, net.ErrClosed)
}
