package consumer

import (
	"context"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// PoolSettings are what an operator sets for the worker pool of a queue. They
// hold for each replica.
type PoolSettings struct {
	Concurrency int  `json:"concurrency"`
	Prefetch    int  `json:"prefetch"`
	Paused      bool `json:"paused"`
}

// A crew is the workers of a lane.
type crew struct {
	mu       sync.Mutex
	settings PoolSettings
	changed  chan struct{} // closed when settings are
	members  map[*subscription]struct{}
}

func (c *crew) init(s PoolSettings) {
	c.settings, c.changed, c.members = s, make(chan struct{}), make(map[*subscription]struct{})
}

// set changes the settings, and tells whether they differ from before.
func (c *crew) set(s PoolSettings) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s == c.settings {
		return false
	}
	c.settings = s
	close(c.changed)
	c.changed = make(chan struct{})
	return true
}

func (c *crew) get() (PoolSettings, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settings, c.changed
}

func (c *crew) enlist(s *subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members[s] = struct{}{}
}

func (c *crew) dismiss(s *subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.members, s)
}

// stalled returns how many members subscribe, and how many of them have had
// their batch in hand for longer than limit.
func (c *crew) stalled(limit time.Duration) (members, stalled int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.members {
		since := s.busySince.Load()
		if since != 0 && time.Since(time.Unix(0, since)) > limit {
			stalled++
		}
	}
	return len(c.members), stalled
}

// A hand is a worker that was taken on.
type hand struct {
	prefetch int
	dismiss  context.CancelFunc
}

// staff keeps as many workers on conn as the settings say, until ctx ends
// and all have drained. Changing the prefetch replaces a worker: it belongs
// to the consumer's channel.
func (l *lane) staff(ctx context.Context, conn *amqp.Connection) {
	var hands []hand
	var working sync.WaitGroup
	defer working.Wait()
	for {
		settings, changed := l.crew.get()
		want := settings.Concurrency
		if settings.Paused {
			want = 0
		}
		hands = dismiss(hands, want, settings.Prefetch)
		for len(hands) < want {
			workerCtx, cancel := context.WithCancel(ctx)
			working.Go(func() { defer cancel(); l.work(workerCtx, conn, settings.Prefetch) })
			hands = append(hands, hand{settings.Prefetch, cancel})
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// dismiss keeps at most want hands, of those that have the right prefetch.
func dismiss(hands []hand, want, prefetch int) []hand {
	var kept []hand
	for _, h := range hands {
		if h.prefetch == prefetch && len(kept) < want {
			kept = append(kept, h)
		} else {
			h.dismiss()
		}
	}
	return kept
}
