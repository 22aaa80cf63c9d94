package sse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse/transport"
	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// ServeNotifications answers with the streams of reader, from the request's
// Last-Event-ID or its parameter last_event_id on. The stream ends before
// expires. A client that cannot be served gets a time after which to come
// back: any other status would end a browser's EventSource permanently.
func (h *Hub) ServeNotifications(w http.ResponseWriter, r *http.Request, reader notification.Reader, expires time.Time) {
	ctx, cancel := context.WithTimeout(r.Context(), openTimeout)
	defer cancel()
	if left := time.Until(expires); left < h.wheel.tick { // the wheel would be late for it
		h.refuseWithRetry(w, "expired", retryMoved.after(max(left, 0)))
		return
	}
	if h.opening.Take(reader.UserID) > 0 { // before it costs the database anything
		h.refuseWithRetry(w, "too_often", retryBusy)
		return
	}
	c := h.newClient(kindNotifications, expires)
	if !h.admit(c) {
		h.refuseWithRetry(w, resultBusy, retryBusy)
		return
	}
	for _, name := range reader.Streams() {
		c.follow(h.acquireTopic(name))
	}
	// EventSource sends the header by itself, and only when it reconnects: it
	// is newer than the URL. So are the parameters of polyfills.
	lastEventID, query := r.Header.Get("Last-Event-ID"), r.URL.Query()
	for _, name := range []string{"lastEventId", "lastEventID", "Last-Event-ID", "evs_last_event_id", "last_event_id"} {
		lastEventID = cmp.Or(lastEventID, query.Get(name))
	}
	point, err := h.resume(ctx, c, reader, lastEventID)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			h.log.Warn().Str("error", pgpool.LogText(err)).Msg("opening a stream failed, the client will retry")
		}
		h.remove(c)
		h.refuseWithRetry(w, "unavailable", retryUnavailable)
		return
	}
	h.metrics.resumes.WithLabelValues(point.result).Inc()
	h.serve(ctx, w, r, c, point.firstFrames(h.retryLost()))
}

// ServeFeed answers with the public feed, which has no history.
func (h *Hub) ServeFeed(w http.ResponseWriter, r *http.Request) {
	c := h.newClient(kindFeed, time.Time{})
	if !h.admit(c) {
		h.refuseWithRetry(w, resultBusy, retryBusy)
		return
	}
	c.follow(h.feed)
	h.serve(r.Context(), w, r, c, nil) // ready comes once it has joined
}

// feedReady returns the first bytes of the feed: for how long nothing has happened,
// so that a page that was away no longer than that has missed nothing. It is
// called once the client has joined, and says too little rather than too much.
func (h *Hub) feedReady() []byte {
	quiet := max(0, time.Now().UnixMilli()-h.feedAt.Load())
	return append(appendEvent(appendRetry(nil, h.retryLost().random()), eventReady, fmt.Appendf(nil, `{"quiet_ms":%d}`, quiet)), '\n')
}

// retryLost returns after how long a client is to come back if its connection
// breaks.
func (h *Hub) retryLost() durationRange { return retryLostFor(h.clientCount(), h.cfg.ReconnectRate) }

// heartbeat returns the frame of a heartbeat. Where streams are many, it repeats after
// how long to come back: clients that connected early were given a short time.
func (h *Hub) heartbeat() *frame {
	retry := h.retryLost()
	if retry == retryLost {
		return heartbeat
	}
	b := append(appendRetry([]byte("event: hb\ndata: 1\n"), retry.random()), '\n')
	return &frame{bytes: b, idAt: len(b) - 1}
}

// newClient returns a client that ends before expires, or only with its
// lifetime if that is zero.
func (h *Hub) newClient(kind kind, expires time.Time) *client {
	now, lifetime := time.Now(), backoff.Jitter(h.cfg.Lifetime)
	age := h.age(now)
	// It counts as scheduled while it is opening, so that it is not woken.
	c := &client{hub: h, kind: kind, opened: age, expires: age + lifetime, lastWrite: age, scheduled: true}
	if !expires.IsZero() && expires.Before(now.Add(lifetime)) {
		c.expires, c.endsWithToken = time.Duration(expires.UnixNano()), true
	}
	return c
}

// serve begins the response, brings c to the present and leaves it to the
// transport.
func (h *Hub) serve(ctx context.Context, w http.ResponseWriter, r *http.Request, c *client, firstFrames []byte) {
	conn, err := h.transport.Open(w, r)
	if err != nil {
		h.metrics.connects.WithLabelValues("left").Inc()
		h.remove(c)
		return
	}
	c.conn = conn
	h.metrics.opened(c.kind)
	if len(firstFrames) > 0 {
		err = conn.Write(firstFrames)
	}
	if err == nil {
		err = h.join(ctx, c)
	}
	if err == nil && c.kind == kindFeed { // events offered since then wait: it counts as scheduled
		err = conn.Write(h.feedReady())
	}
	if errors.Is(err, errLost) { // the notifications after its cursor are gone, so it is reset first
		if err = h.reset(ctx, c); err == nil {
			err = h.join(ctx, c)
		}
	}
	if err != nil {
		h.log.Debug().Err(err).Msg("opening a stream failed, the client left")
		c.Fail(err)
	}
	if c.kind == kindNotifications { // whose user may have too many: the oldest end
		for _, old := range c.first.topic.oldest(h.cfg.MaxPerUser) {
			old.closeGracefully(reasonDisplaced, retryDisplaced.random())
		}
	}
	h.wheel.add(c, time.Now())
	conn.Serve(c)
}

// refuseWithRetry answers with nothing but the time after which to come back.
func (h *Hub) refuseWithRetry(w http.ResponseWriter, result string, retry durationRange) {
	h.metrics.connects.WithLabelValues(result).Inc()
	h.mu.Lock()
	if h.draining { // another replica has room
		retry = retryMoved
	}
	h.mu.Unlock()
	transport.SetHeader(w.Header())
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(append(appendRetry(nil, retry.random()), '\n')) // the client may have left
}
