package sse

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse/transport"
	"github.com/cityconnect/cityconnect/platform/ratelimit"
)

// A Store is what the hub reads from the database.
type Store interface {
	// View returns the heads of a reader's streams and their unread count.
	View(ctx context.Context, reader notification.Reader) (notification.View, error)
	// Heads returns the heads of streams. Unknown streams are omitted.
	Heads(ctx context.Context, streams []notification.Stream) ([]notification.Head, error)
	// Since returns the notifications that follow each head in its stream, by stream
	// and in order, at most limit of each.
	Since(ctx context.Context, heads []notification.Head, limit int) ([]notification.Notification, error)
}

// A Hub has the clients of all streams at this replica.
type Hub struct {
	cfg        Config
	began      time.Time
	store      Store
	log        zerolog.Logger
	metrics    *metrics
	transport  transport.Transport
	wheel      *timerWheel
	feed       *topic
	feedAt     atomic.Int64 // when the feed had its last event, in milliseconds; at first, when the hub began
	incomplete *topicSet    // waiting for a repair
	compareNow chan struct{}
	moderated  moderations
	opening    *ratelimit.Limiter // by user, of notifications

	mu          sync.Mutex
	draining    bool // no more clients are admitted
	topics      map[notification.Stream]*topic
	clients     map[*client]struct{}
	feedClients int           // those of the feed among them
	allGone     chan struct{} // closed when the last client of a hub that ends is gone
}

// New returns a Hub that works while Run runs.
func New(cfg Config, store Store, log zerolog.Logger, reg prometheus.Registerer) *Hub {
	h := &Hub{
		cfg: cfg, began: time.Now(), store: store, log: log, metrics: newMetrics(reg),
		transport:  transport.NewPerRequest(cfg.WriteTimeout),
		wheel:      newTimerWheel(cfg.Heartbeat),
		feed:       &topic{},
		incomplete: &topicSet{wakeup: make(chan struct{}, 1), topics: make(map[*topic]struct{})},
		compareNow: make(chan struct{}, 1),
		topics:     make(map[notification.Stream]*topic),
		clients:    make(map[*client]struct{}),
		opening:    ratelimit.New(ratelimit.Limit{Turns: opensPerStream * cfg.MaxPerUser, Period: time.Minute}),
	}
	h.feedAt.Store(h.began.UnixMilli())
	if cfg.Writer == Shared {
		h.transport = transport.NewShared(cfg.WriteTimeout, h.transport)
	}
	return h
}

// Run does the work in the background until ctx ends. Then it disconnects the
// clients that are left, and returns when they are gone.
func (h *Hub) Run(ctx context.Context) error {
	transportCtx, stopTransport := context.WithCancel(context.WithoutCancel(ctx))
	defer stopTransport()
	var writing, working sync.WaitGroup
	writing.Go(func() { h.transport.Run(transportCtx) })
	working.Go(func() { h.wheel.run(ctx) })
	working.Go(func() { h.repair(ctx) })
	working.Go(func() { h.compare(ctx) })
	<-ctx.Done()
	working.Wait()
	<-h.disconnectAll()
	stopTransport()
	writing.Wait()
	return nil
}

// age returns how long after its beginning the hub has a time.
func (h *Hub) age(now time.Time) time.Duration { return now.Sub(h.began) }

// Deliver passes on a batch that was committed at the given time, and never waits for
// a client. It accepts batches twice, late and in any order.
func (h *Hub) Deliver(b notification.Batch, committed time.Time) {
	if len(b.Moderated) > 0 {
		h.moderated.add(b.Moderated)
		h.forget()
	}
	for _, n := range b.Notifications {
		h.mu.Lock()
		t := h.topics[n.Stream]
		h.mu.Unlock()
		switch {
		case t == nil:
		case n.Seq == 0:
			wake(t.broadcast(adopted))
			h.endTopic(t)
		default:
			measured := time.Time{} // not of one reader, see metrics
			if n.Stream == notification.Officials {
				h.metrics.fanoutLag.Observe(time.Since(committed).Seconds())
				measured = committed
			}
			h.accept(t, n, measured)
		}
	}
	if len(b.Feed) > 0 { // before the first client gets it: see feedReady
		h.feedAt.Store(time.Now().UnixMilli())
	}
	for _, d := range b.Feed {
		if h.moderated.passed(d) {
			continue
		}
		f, err := feedFrame(d, committed)
		if err != nil {
			h.log.Error().Err(err).Msg("encoding a feed event failed, the feed goes on without it")
			continue
		}
		wake(h.feed.broadcast(f))
	}
}

// Progress passes the progress of a reader's upload on to those of the reader's
// clients that keep up, and never waits for one.
func (h *Hub) Progress(to notification.Stream, p notification.Progress) {
	h.mu.Lock()
	t := h.topics[to]
	h.mu.Unlock()
	if t == nil {
		return
	}
	f, err := progressFrame(p)
	if err != nil {
		h.log.Error().Err(err).Msg("encoding a progress failed, the stream goes on without it")
		return
	}
	wake(t.broadcast(f))
}

func (h *Hub) accept(t *topic, n notification.Notification, committed time.Time) {
	if h.moderated.passedIn(n.Data) { // it was read, or sent, before: the database has it without the words
		h.resync(t, t.learn(notification.Position{Epoch: n.Epoch, Seq: n.Seq}))
		return
	}
	state, woken := t.accept(n, committed)
	wake(woken)
	h.resync(t, state)
}

// flushLimit is how many clients the delivering goroutine writes to itself:
// those of one user. More are left to the writers, which share the work.
const flushLimit = 8

func wake(clients []*client) {
	for _, c := range clients {
		if len(clients) <= flushLimit {
			c.conn.Flush()
		} else {
			c.conn.Wake()
		}
	}
}

// resync does what a topic cannot do by itself to agree with the database.
func (h *Hub) resync(t *topic, state syncState) {
	switch state {
	case behind:
		h.incomplete.add(t)
	case otherEpoch:
		h.endTopic(t)
	}
}

// endTopic ends a topic whose stream has another epoch, as after a restore of
// the database, or an adoption. Its clients come back and start over.
func (h *Hub) endTopic(t *topic) {
	h.mu.Lock()
	if h.topics[t.name] == t {
		delete(h.topics, t.name)
	}
	h.mu.Unlock()
	for _, c := range t.end() {
		c.closeGracefully(reasonEpoch, retryMoved.random())
	}
}

// acquireTopic returns the topic of a stream for a client that is about to
// join it. From here on the topic records all deliveries to the stream.
// Removing the client releases the topic.
func (h *Hub) acquireTopic(name notification.Stream) *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[name]
	if t == nil {
		t = &topic{name: name}
		h.topics[name] = t
	}
	t.users++
	return t
}

// removeUnusedTopics removes the topics that have had no client for a while.
func (h *Hub) removeUnusedTopics(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, t := range h.topics {
		if t.users == 0 && h.age(now)-t.unusedSince > unusedTopicTTL {
			t.end()
			delete(h.topics, name)
		}
	}
}

// admit registers a client, unless the hub is full or about to end. The feed
// has a limit of its own: clients without a token must not keep out those that
// are signed in.
func (h *Hub) admit(c *client) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining || len(h.clients) >= h.cfg.MaxStreams {
		return false
	}
	if c.kind == kindFeed {
		if h.feedClients >= h.cfg.MaxFeed {
			return false
		}
		h.feedClients++
	}
	h.clients[c] = struct{}{}
	return true
}

// remove takes a client out of everything. Its connection is closed, or was
// never opened.
func (h *Hub) remove(c *client) {
	for _, s := range c.subscriptions() {
		s.topic.leave(s)
	}
	h.wheel.remove(c)
	h.mu.Lock()
	delete(h.clients, c)
	if c.kind == kindFeed {
		h.feedClients--
	} else {
		for _, s := range c.subscriptions() {
			if s.topic.users--; s.topic.users == 0 {
				s.topic.unusedSince = h.age(time.Now())
			}
		}
	}
	if h.allGone != nil && len(h.clients) == 0 {
		close(h.allGone)
	}
	h.mu.Unlock()
	if c.conn != nil {
		h.metrics.closed(c.kind, c.endReason())
	}
}

// snapshot returns the clients of this moment.
func (h *Hub) snapshot() []*client {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.AppendSeq(make([]*client, 0, len(h.clients)), maps.Keys(h.clients))
}

// allTopics returns the topics of this moment.
func (h *Hub) allTopics() []*topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.AppendSeq(make([]*topic, 0, len(h.topics)), maps.Values(h.topics))
}

func (h *Hub) clientCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients)
}

// disconnectAll disconnects every client and admits no other. The channel it
// returns is closed when all are gone.
func (h *Hub) disconnectAll() <-chan struct{} {
	h.mu.Lock()
	h.draining, h.allGone = true, make(chan struct{})
	if len(h.clients) == 0 {
		close(h.allGone)
	}
	h.mu.Unlock()
	for _, c := range h.snapshot() {
		c.disconnect(reasonStopped)
	}
	return h.allGone
}
