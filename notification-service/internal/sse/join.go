package sse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
)

// A welcome is what a client of a reader's streams begins with.
type welcome struct {
	view   notification.View
	start  notification.Cursor // where it goes on
	resume string              // exact, reset or none: a metric's label
	why    string              // it has to start over
}

// greet finds out where a client with the given cursor begins. An empty one
// begins now.
func greet(view notification.View, lastEventID string) welcome {
	now := welcome{view: view, start: view.Cursor(), resume: "none"}
	if lastEventID == "" {
		return now
	}
	now.resume = "reset"
	cursor, err := notification.ParseCursor(lastEventID)
	if err != nil || len(cursor) != len(now.start) {
		now.why = "unknown_cursor"
		return now
	}
	for i, p := range cursor {
		switch head := now.start[i]; {
		case p.Epoch != head.Epoch || p.Seq > head.Seq:
			now.why = "unknown_cursor"
			return now
		case head.Seq-p.Seq > maxBehind:
			now.why = "too_far_behind"
			return now
		}
	}
	return welcome{view: view, start: cursor, resume: "exact"}
}

// opening returns the first bytes of a stream. A reset stands before ready:
// an id must never reach a client before it was told what led there. The id of
// ready is where the stream goes on; its data has the present, and what is
// unread there: what follows up to it is counted already.
func (w welcome) opening() []byte {
	b := appendRetry(nil, retryLost.pick())
	if w.why != "" {
		b = appendReset(b, w.why, w.start)
	}
	b = appendEvent(b, eventReady, fmt.Appendf(nil, `{"unread_count":%d,"last_event_id":%q}`,
		w.view.Unread, w.view.Cursor().String()))
	return append(appendID(b, w.start), '\n')
}

func appendReset(b []byte, why string, now notification.Cursor) []byte {
	b = appendEvent(b, eventReset, fmt.Appendf(nil, `{"reason":%q}`, why))
	return append(appendID(b, now), '\n')
}

// errLost says that what follows a cursor is not there any more.
var errLost = errors.New("notifications after the cursor are gone")

// catchUp brings c to where its topics are and joins it to them: first from
// the database, until the rest is in a ring, then from there.
func (h *Hub) catchUp(ctx context.Context, c *client) error {
	err := h.follow(ctx, c)
	if !errors.Is(err, errLost) {
		return err
	}
	if err := h.startOver(ctx, c); err != nil {
		return err
	}
	return h.follow(ctx, c)
}

// startOver tells c that something is gone that it should have got, and takes
// it to the present.
func (h *Hub) startOver(ctx context.Context, c *client) error {
	names := make([]notification.Stream, 0, len(c.lanes))
	for t := range c.topics() {
		names = append(names, t.name)
	}
	heads, err := h.store.Heads(ctx, names)
	if err != nil {
		return err
	}
	now := make(notification.Cursor, len(names))
	for i, name := range names {
		j := slices.IndexFunc(heads, func(head notification.Head) bool { return head.Stream == name })
		if j < 0 || heads[j].Epoch != c.lanes[i].epoch {
			return errLost
		}
		now[i] = heads[j].Position
	}
	c.moveTo(now)
	h.metrics.resumes.WithLabelValues("reset").Inc()
	return c.out.Write(appendReset(nil, "too_old", now))
}

// follow joins c to its topics. Both are replayed before the first is joined,
// so that little gathers in the queue meanwhile.
func (h *Hub) follow(ctx context.Context, c *client) error {
	for t := range c.topics() {
		if err := h.replay(ctx, c, t); err != nil {
			return err
		}
	}
	for t := range c.topics() {
		if err := h.join(ctx, c, t); err != nil {
			return err
		}
	}
	return nil
}

// join makes c a receiver of t.
func (h *Hub) join(ctx context.Context, c *client, t *topic) error {
	for {
		backlog, joined := t.join(c)
		if joined {
			return c.send(t, backlog)
		}
		if err := h.replay(ctx, c, t); err != nil {
			return err
		}
	}
}

// replay sends from the database until the rest is in the ring of t.
func (h *Hub) replay(ctx context.Context, c *client, t *topic) error {
	for !t.covers(c.lastOf(t)) {
		after := notification.Head{Stream: t.name, Position: notification.Position{
			Epoch: c.lanes[c.laneOf(t)].epoch, Seq: c.lastOf(t)}}
		page, err := h.store.Since(ctx, []notification.Head{after}, pageRows)
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		frames, err := consecutive(after.Position, page)
		if err != nil {
			return err
		}
		h.metrics.replayed.Add(float64(len(frames)))
		c.skipTo(t, after.Seq+int64(len(frames)))
		if err := c.send(t, frames); err != nil {
			return err
		}
	}
	return nil
}

// consecutive encodes what must follow a position without a gap.
func consecutive(after notification.Position, page []notification.Notification) ([]*frame, error) {
	if len(page) == 0 {
		return nil, errLost
	}
	frames := make([]*frame, len(page))
	for i, n := range page {
		if n.Epoch != after.Epoch || n.Seq != after.Seq+1+int64(i) {
			return nil, errLost
		}
		frames[i] = notificationFrame(n, time.Time{})
	}
	return frames, nil
}

// send writes frames at once, before the client has a writer.
func (c *client) send(t *topic, frames []*frame) error {
	if len(frames) == 0 {
		return nil
	}
	var b []byte
	for _, f := range frames {
		b = c.render(b, entry{f, int8(c.laneOf(t))})
	}
	return c.out.Write(b)
}
