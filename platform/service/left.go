package service

import (
	"context"
	"errors"
	"net"
	"syscall"
)

// connKey finds the syscall.RawConn of a request's connection in its context.
type connKey struct{}

// withConn lets ClientLeft find conn in the contexts of its requests.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return ctx
	}
	raw, err := sc.SyscallConn()
	if err != nil { // it is closed already
		return ctx
	}
	return context.WithValue(ctx, connKey{}, raw)
}

// ClientLeft reports whether the client of the request that ctx belongs to has
// closed its connection. It costs one system call. The context
// ends for the same reason, but only once net/http has come to read: in a process
// that was frozen, or on a busy machine, that may be after the work is done.
func ClientLeft(ctx context.Context) bool {
	raw, ok := ctx.Value(connKey{}).(syscall.RawConn)
	if !ok {
		return false
	}
	left := false
	// Not raw.Read, which waits for the read of net/http.
	err := raw.Control(func(fd uintptr) {
		var next [1]byte
		n, _, err := syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		left = err == nil && n == 0 || errors.Is(err, syscall.ECONNRESET)
	})
	return left || errors.Is(err, net.ErrClosed)
}
