//go:build !linux

package transport

import "syscall"

// Control leaves a listening socket as it is.
func Control(_, _ string, _ syscall.RawConn) error { return nil }
