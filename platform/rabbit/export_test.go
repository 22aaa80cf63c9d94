package rabbit

import (
	"time"

	"github.com/cityconnect/cityconnect/platform/backoff"
)

// WithRedial returns cfg with other pauses between attempts.
func (cfg Config) WithRedial(first, longest time.Duration) Config {
	cfg.redial = backoff.Backoff{First: first, Max: longest}
	return cfg
}

// LongestRedial is the longest pause between attempts.
var LongestRedial = defaultRedial.Max
