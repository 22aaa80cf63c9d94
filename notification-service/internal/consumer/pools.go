package consumer

import (
	"context"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/failure"
)

// poolPoll is how often a replica reads the pools' settings: a change is to
// hold everywhere within two seconds.
const poolPoll = 500 * time.Millisecond

// A PoolStore keeps what operators set for the pools.
type PoolStore interface {
	// PoolSettings returns the settings by queue; a queue that nobody has
	// touched is missing.
	PoolSettings(ctx context.Context) (map[string]PoolSettings, error)
	// ChangePool keeps the settings that change makes of the present ones,
	// or of initial where there are none, and notes who did it.
	ChangePool(ctx context.Context, actor, queue string, initial PoolSettings, change PoolChange) (PoolSettings, error)
}

// A PoolChange names what is to change; nil leaves as it is.
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

// followPools applies what operators set, until ctx ends.
func (c *Consumer) followPools(ctx context.Context) {
	for pause(ctx, poolPoll) {
		if c.deps.gate.isOpen() {
			c.refreshPools(ctx)
		}
	}
}

func (c *Consumer) refreshPools(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	settings, err := c.pools.PoolSettings(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.deps.log.Warn().Str("reason", failure.Describe(err)).Msg("read worker pools")
		}
		return
	}
	for _, l := range c.lanes {
		want, ok := settings[l.queue]
		if !ok {
			want = PoolSettings{Concurrency: l.tuning.Workers, Prefetch: l.tuning.Prefetch}
		}
		if l.crew.set(want) {
			l.log.Info().Str("queue", l.queue).Int("concurrency", want.Concurrency).
				Int("prefetch", want.Prefetch).Bool("paused", want.Paused).Msg("worker pool changed")
		}
	}
}
