package sse

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse/transport"
)

// ServeNotifications answers with the streams of reader, from the request's
// Last-Event-ID or its parameter last_event_id on. The stream ends before
// expires. Whatever stands in the way is answered with a time after which to
// come back, since another status would end a browser's EventSource for ever.
func (h *Hub) ServeNotifications(w http.ResponseWriter, r *http.Request, reader notification.Reader, expires time.Time) {
	ctx, cancel := context.WithTimeout(r.Context(), openTimeout)
	defer cancel()
	c := h.newClient(expires)
	if !h.admit(c) {
		h.bounce(w, "busy", retryBusy)
		return
	}
	for i, name := range reader.Streams() {
		c.lanes[i] = lane{topic: h.open(name), place: -1}
	}
	hello, err := h.enter(ctx, c, reader, lastEventID(r))
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			h.log.Warn().Err(err).Msg("cannot open stream")
		}
		h.remove(c, reasonNone)
		h.bounce(w, "unavailable", retryBusy)
		return
	}
	h.metrics.resumes.WithLabelValues(hello.resume).Inc()
	h.serve(ctx, w, r, c, hello.opening())
}

// ServeFeed answers with the public feed, which has no history.
func (h *Hub) ServeFeed(w http.ResponseWriter, r *http.Request) {
	c := h.newClient(time.Time{})
	if !h.admit(c) {
		h.bounce(w, "busy", retryBusy)
		return
	}
	c.lanes[0] = lane{topic: h.feed, place: -1}
	opening := append(appendEvent(appendRetry(nil, retryLost.pick()), eventReady, []byte("{}")), '\n')
	h.serve(r.Context(), w, r, c, opening)
}

// serve opens the connection, brings c to the present and leaves it to its
// writer.
func (h *Hub) serve(ctx context.Context, w http.ResponseWriter, r *http.Request, c *client, opening []byte) {
	out, err := h.carrier.Open(w, r)
	if err != nil {
		h.metrics.connects.WithLabelValues("left").Inc()
		h.remove(c, reasonLeft)
		return
	}
	c.out = out
	h.metrics.opened(c.kind())
	if err = out.Write(opening); err == nil {
		err = h.catchUp(ctx, c)
	}
	if err != nil {
		h.log.Debug().Err(err).Msg("client left while its stream was opened")
		c.cut(failure(err))
	}
	h.makeRoom(c.lanes[0].topic)
	h.pulse.add(c, time.Now())
	out.Run(c)
}

// enter asks the database where c begins.
func (h *Hub) enter(ctx context.Context, c *client, reader notification.Reader, lastEventID string) (welcome, error) {
	view, err := h.store.View(ctx, reader)
	if err != nil {
		return welcome{}, err
	}
	hello := greet(view, lastEventID)
	for i, head := range view.Heads {
		t := c.lanes[i].topic
		v := t.learn(head.Position)
		h.judge(t, v)
		if v == foreign {
			return welcome{}, errLost // a topic of this life is opened by the next who comes
		}
	}
	c.moveTo(hello.start)
	return hello, nil
}

// makeRoom sends the oldest clients of a topic away that one user has too
// many of.
func (h *Hub) makeRoom(t *topic) {
	if t == h.feed {
		return
	}
	for _, c := range t.oldest(h.cfg.MaxPerUser) {
		c.dismiss(reasonDisplaced, retryDisplaced.pick())
	}
}

// bounce tells a client to come back later.
func (h *Hub) bounce(w http.ResponseWriter, result string, retry span) {
	h.metrics.connects.WithLabelValues(result).Inc()
	if h.draining() { // another replica has room
		retry = retryMoved
	}
	transport.StreamHeader(w.Header())
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(append(appendRetry(nil, retry.pick()), '\n')) // a client that left is no fault of ours
}

func (h *Hub) draining() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.drained
}

// newClient returns a client that ends before expires, or only with its
// lifetime if that is zero.
func (h *Hub) newClient(expires time.Time) *client {
	now := time.Now()
	end := now.Add(around(h.cfg.Lifetime, 0.2))
	if !expires.IsZero() && expires.Before(end) {
		end = expires
	}
	// Nobody is to be woken before run.
	return &client{hub: h, born: now, expires: end, wrote: now, scheduled: true}
}

// lastEventID returns the cursor that the client sent. What EventSource adds
// by itself is newer than what stands in its URL.
func lastEventID(r *http.Request) string {
	return cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("last_event_id"))
}
