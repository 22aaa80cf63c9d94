//go:build !linux

package transport

import "time"

// NewShared returns fallback: connections are hijacked on Linux only.
func NewShared(_ time.Duration, fallback Transport) Transport { return fallback }
