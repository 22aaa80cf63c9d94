package consumer

import (
	"fmt"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/delay"
)

// A Config is what an operator may set by environment. The sizes of the worker
// pools are only where a queue starts: PATCH /admin/workers overrides them. Fields
// without a variable are the same everywhere but in tests.
type Config struct {
	Prefetch     int             `env:"PREFETCH" envDefault:"10"`
	Workers      int             `env:"CONSUMER_WORKERS" envDefault:"4"`
	BatchSize    int             `envDefault:"10"` // what has arrived, and nobody waits for more
	BatchWait    time.Duration   `envDefault:"0s"`
	ApplyTimeout time.Duration   `envDefault:"10s"` // far below the broker's 30 min for an ack
	StallAfter   time.Duration   `envDefault:"15s"` // after the former, so that a slow batch raises no alarm
	MaxAttempts  int             `env:"RETRY_MAX_ATTEMPTS" envDefault:"4"`
	Backoff      Backoff         `env:"RETRY_BACKOFF" envDefault:"exponential"`
	Delays       []time.Duration `env:"RETRY_DELAYS" envDefault:"1s,5s,30s"`
	// MissingAfter is how long a message may take before reconciliation calls it
	// missing.
	MissingAfter time.Duration `env:"RECONCILIATION_AFTER" envDefault:"5m"`
	Delay        delay.Config
}

// Defaults returns the Config of an empty environment.
func Defaults() Config {
	var c Config
	if err := config.Load(&c, func(string) string { return "" }, nil); err != nil {
		panic(err) // the tags above are wrong
	}
	return c
}

// Backoff says how the delays before further attempts grow.
type Backoff string

// The ways in which delays grow.
const (
	// Exponential takes the configured delays one after another, and then
	// the last one again and again.
	Exponential Backoff = "exponential"
	// Linear waits n times the first delay before attempt n+1.
	Linear Backoff = "linear"
)

// Limits of the settings.
const (
	maxPrefetch  = 1000
	maxWorkers   = 64
	maxAttempts  = 20
	minDelay     = time.Second // below that, an immediate retry is the better way
	maxDelay     = 30 * time.Second
	maxBatchWait = time.Second
	minAfter     = 10 * time.Second // longer than most take
	maxAfter     = time.Hour
)

// Validate returns everything that is wrong with c.
func (c Config) Validate() []config.Fault {
	var faults config.Faults
	faults.Check(within(c.Prefetch, 1, maxPrefetch), "PREFETCH", fmt.Sprintf("1 to %d, such as 10", maxPrefetch))
	faults.Check(within(c.Workers, 1, maxWorkers), "CONSUMER_WORKERS", fmt.Sprintf("1 to %d, such as 4", maxWorkers))
	faults.Check(within(c.MaxAttempts, 1, maxAttempts), "RETRY_MAX_ATTEMPTS", fmt.Sprintf("1 to %d, such as 4", maxAttempts))
	faults.Check(c.Backoff == Exponential || c.Backoff == Linear, "RETRY_BACKOFF", "exponential or linear")
	delaysOK := len(c.Delays) > 0 && slices.IsSorted(c.Delays) && !slices.ContainsFunc(c.Delays, func(d time.Duration) bool {
		return !within(d, minDelay, maxDelay) || d%time.Second != 0
	})
	faults.Check(delaysOK, "RETRY_DELAYS", fmt.Sprintf("rising whole seconds from %s to %s, such as 1s,5s,30s", minDelay, maxDelay))
	faults.Check(within(c.MissingAfter, minAfter, maxAfter), "RECONCILIATION_AFTER", fmt.Sprintf("%s to %s, such as 5m", minAfter, maxAfter))
	return append(faults, c.Delay.Validate()...)
}

func within[T int | time.Duration](n, low, high T) bool { return n >= low && n <= high }

// RetrySchedule returns the delay before the second attempt, the third and so
// on: one fewer than there are attempts.
func (c Config) RetrySchedule() []time.Duration {
	schedule := make([]time.Duration, c.MaxAttempts-1)
	for i := range schedule {
		if c.Backoff == Linear {
			schedule[i] = min(time.Duration(i+1)*c.Delays[0], maxDelay)
		} else {
			schedule[i] = c.Delays[min(i, len(c.Delays)-1)]
		}
	}
	return schedule
}

// PoolSettings are what an operator sets for the worker pool of a queue. They
// hold for each replica.
type PoolSettings struct {
	Concurrency int
	Prefetch    int
	Paused      bool
}

// A PoolChange is a change of a pool; fields that are nil stay. The audit log keeps
// it as JSON.
type PoolChange struct {
	Concurrency *int  `json:"concurrency"`
	Prefetch    *int  `json:"prefetch"`
	Paused      *bool `json:"paused"`
}

// Apply returns s with the change made.
func (c PoolChange) Apply(s PoolSettings) PoolSettings {
	if c.Concurrency != nil {
		s.Concurrency = *c.Concurrency
	}
	if c.Prefetch != nil {
		s.Prefetch = *c.Prefetch
	}
	if c.Paused != nil {
		s.Paused = *c.Paused
	}
	return s
}
