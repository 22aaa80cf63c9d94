//go:build !linux

package transport

import "time"

// NewShared returns plain: taking connections over is for Linux only.
func NewShared(_ time.Duration, plain Carrier) Carrier { return plain }
