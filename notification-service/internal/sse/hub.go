package sse

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse/transport"
)

// A Store is what the hub asks the database.
type Store interface {
	// View returns where the streams of a reader stand.
	View(ctx context.Context, reader notification.Reader) (notification.View, error)
	// Heads returns where streams stand. Unknown ones lack.
	Heads(ctx context.Context, streams []notification.Stream) ([]notification.Head, error)
	// Since returns what follows each head in its stream, by stream and in
	// order, at most limit of each.
	Since(ctx context.Context, heads []notification.Head, limit int) ([]notification.Notification, error)
}

// A Hub knows who listens to what.
type Hub struct {
	cfg     Config
	store   Store
	log     zerolog.Logger
	metrics *metrics
	carrier transport.Carrier
	feed    *topic
	pulse   *pulse
	repairs *backlog
	compare chan struct{}

	mu      sync.Mutex
	drained bool // nobody is let in any more
	topics  map[notification.Stream]*topic
	clients map[*client]struct{}
	empty   chan struct{} // closed when the last client of a hub that ends is gone
}

// New returns a Hub that does its work while Run runs.
func New(cfg Config, store Store, log zerolog.Logger, reg prometheus.Registerer) *Hub {
	h := &Hub{
		cfg: cfg, store: store, log: log, metrics: newMetrics(reg), carrier: transport.NewHTTP(cfg.WriteTimeout),
		feed:    &topic{},
		pulse:   newPulse(cfg.Heartbeat),
		repairs: newBacklog(),
		compare: make(chan struct{}, 1),
		topics:  make(map[notification.Stream]*topic),
		clients: make(map[*client]struct{}),
	}
	if cfg.Writer == Shared {
		h.carrier = transport.NewShared(cfg.WriteTimeout, h.carrier)
	}
	return h
}

// Run does what is to be done in the background until ctx ends: then it cuts
// off whoever is still there and waits for them to be gone.
func (h *Hub) Run(ctx context.Context) error {
	stop := make(chan struct{})
	var writers, others sync.WaitGroup
	writers.Go(func() { h.carrier.Serve(stop) })
	others.Go(func() { h.pulse.run(ctx) })
	others.Go(func() { h.repair(ctx) })
	others.Go(func() { h.watch(ctx) })
	<-ctx.Done()
	others.Wait()
	<-h.cutAll()
	close(stop)
	writers.Wait()
	return nil
}

// Deliver passes on what was committed at the given time, and never waits for
// a client. It may be told things twice, late or in any order.
func (h *Hub) Deliver(b notification.Batch, at time.Time) {
	for _, n := range b.Notifications {
		if t := h.topic(n.Stream); t != nil {
			h.metrics.fanoutLag.Observe(time.Since(at).Seconds())
			h.accept(t, n, at)
		}
	}
	for _, d := range b.Feed {
		f, err := feedFrame(d, at)
		if err != nil {
			h.log.Error().Err(err).Msg("feed event cannot be encoded")
			continue
		}
		wake(h.feed.broadcast(f))
	}
}

func (h *Hub) accept(t *topic, n notification.Notification, at time.Time) {
	v, woken := t.accept(n, at)
	wake(woken)
	h.judge(t, v)
}

// judge sees to what a topic cannot settle by itself.
func (h *Hub) judge(t *topic, v verdict) {
	switch v {
	case behind:
		h.repairs.add(t)
	case foreign:
		h.expire(t)
	}
}

// few is how many clients are served by whoever brings the event: those of
// one user. More are the writers' business, so that they share the work.
const few = 8

func wake(clients []*client) {
	for _, c := range clients {
		if len(clients) <= few {
			c.out.Serve()
		} else {
			c.out.Wake()
		}
	}
}

// topic returns the topic of a stream, or nil if nobody listens to it.
func (h *Hub) topic(name notification.Stream) *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.topics[name]
}

// open returns the topic of a stream for someone who is about to listen. From
// here on it notes what happens in the stream. close is owed.
func (h *Hub) open(name notification.Stream) *topic {
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

// close ends what open began.
func (h *Hub) close(t *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.users--; t.users == 0 {
		t.idleAt = time.Now()
	}
}

// expire ends a topic whose stream began another life, as after a restore of
// the database. Its clients come back and are told to start over.
func (h *Hub) expire(t *topic) {
	h.mu.Lock()
	if h.topics[t.name] == t {
		delete(h.topics, t.name)
	}
	h.mu.Unlock()
	for _, c := range t.end() {
		c.dismiss(reasonEpoch, retryMoved.pick())
	}
}

// sweep forgets the topics that nobody has listened to for a while.
func (h *Hub) sweep(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, t := range h.topics {
		if t.users == 0 && now.Sub(t.idleAt) > lingering {
			t.end()
			delete(h.topics, name)
		}
	}
}

// admit registers a client, unless the hub is full or about to end.
func (h *Hub) admit(c *client) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.drained || len(h.clients) >= h.cfg.MaxStreams {
		return false
	}
	h.clients[c] = struct{}{}
	return true
}

// remove takes a client out of everything. Its connection is closed already
// or about to be.
func (h *Hub) remove(c *client, why reason) {
	for t := range c.topics() {
		t.leave(c)
		if t != h.feed {
			h.close(t)
		}
	}
	h.pulse.drop(c)
	h.mu.Lock()
	delete(h.clients, c)
	if h.empty != nil && len(h.clients) == 0 {
		close(h.empty)
	}
	h.mu.Unlock()
	if c.out != nil {
		h.metrics.closed(c.kind(), why)
	}
}

// all returns the clients of this moment.
func (h *Hub) all() []*client {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*client, 0, len(h.clients))
	for c := range h.clients {
		list = append(list, c)
	}
	return list
}

// cutAll cuts everyone off and lets nobody in any more. The channel it
// returns is closed when all are gone.
func (h *Hub) cutAll() <-chan struct{} {
	h.mu.Lock()
	h.drained, h.empty = true, make(chan struct{})
	if len(h.clients) == 0 {
		close(h.empty)
	}
	h.mu.Unlock()
	for _, c := range h.all() {
		c.cut(reasonStopped)
	}
	return h.empty
}
