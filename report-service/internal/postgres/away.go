package postgres

import (
	"errors"
	"io"
	"net"
)

// isNetwork reports whether err came from the network.
func isNetwork(err error) bool {
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}
