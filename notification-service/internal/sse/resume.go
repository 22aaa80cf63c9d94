package sse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
)

// A resumePoint is where a client of a reader's streams goes on.
type resumePoint struct {
	view    notification.View
	cursor  notification.Cursor
	result  string // exact, reset or none: a metric's label
	problem string // with the client's own cursor, "" if there is none
}

// resolveCursor returns the resumePoint of a client with the given cursor. A
// client without a cursor begins now.
func resolveCursor(view notification.View, lastEventID string) resumePoint {
	now := resumePoint{view: view, cursor: view.Cursor(), result: "none"}
	if lastEventID == "" {
		return now
	}
	now.result = "reset"
	cursor, err := notification.ParseCursor(lastEventID)
	if err != nil || len(cursor) != len(now.cursor) {
		now.problem = "unknown_cursor"
		return now
	}
	for i, p := range cursor {
		switch head := now.cursor[i]; {
		case p.Epoch != head.Epoch || p.Seq > head.Seq:
			now.problem = "unknown_cursor"
			return now
		case head.Seq-p.Seq > maxBehind:
			now.problem = "too_far_behind"
			return now
		}
	}
	return resumePoint{view: view, cursor: cursor, result: "exact"}
}

// firstFrames returns the first bytes of a stream. A reset comes before ready,
// so that a client knows why the id is not its own before it takes it over.
//
// The id of ready is where the stream goes on. Its data has the present and the
// unread count there, so that events up to it are counted already.
func (p resumePoint) firstFrames(retry durationRange) []byte {
	b := appendRetry(nil, retry.random())
	if p.problem != "" {
		b = appendReset(b, p.problem, p.cursor)
	}
	b = appendEvent(b, eventReady, fmt.Appendf(nil, `{"unread_count":%d,"last_event_id":%q}`,
		p.view.Unread, p.view.Cursor().String()))
	return append(appendID(b, p.cursor), '\n')
}

// resume reads from the database where c begins, and sets its position there.
func (h *Hub) resume(ctx context.Context, c *client, reader notification.Reader, lastEventID string) (resumePoint, error) {
	view, err := h.store.View(ctx, reader)
	if err != nil {
		return resumePoint{}, err
	}
	subscriptions := c.subscriptions()
	for i, head := range view.Heads {
		t := subscriptions[i].topic
		state := t.learn(head.Position)
		h.resync(t, state)
		if state == otherEpoch {
			return resumePoint{}, errLost // the next client opens a topic of this epoch
		}
	}
	point := resolveCursor(view, lastEventID)
	c.startAt(point.cursor)
	return point, nil
}

// errLost says that notifications after a cursor are not in the database.
var errLost = errors.New("notifications after the cursor are gone")

// join sends c what it missed, from the database until the rest is in the
// topics' rings, and makes it a subscriber. Both topics are replayed before the
// first is joined, so that little gathers in the queue in the process.
func (h *Hub) join(ctx context.Context, c *client) error {
	for _, s := range c.subscriptions() {
		if err := h.replay(ctx, s); err != nil {
			return err
		}
	}
	for _, s := range c.subscriptions() {
		missed, joined := s.topic.join(s)
		for !joined { // while the topic moves on
			if err := h.replay(ctx, s); err != nil {
				return err
			}
			missed, joined = s.topic.join(s)
		}
		if err := c.write(s, missed); err != nil {
			return err
		}
	}
	return nil
}

// replay sends from the database until the topic's ring has the rest.
func (h *Hub) replay(ctx context.Context, s *subscription) error {
	for !s.topic.covers(s.queuedSeq()) {
		after := notification.Head{Stream: s.topic.name, Position: notification.Position{Epoch: s.epoch, Seq: s.queuedSeq()}}
		page, err := h.store.Since(ctx, []notification.Head{after}, pageRows)
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		if len(page) == 0 {
			return errLost
		}
		frames := make([]*frame, len(page))
		for i, n := range page {
			if n.Epoch != after.Epoch || n.Seq != after.Seq+1+int64(i) {
				return errLost
			}
			frames[i] = notificationFrame(n, time.Time{})
		}
		h.metrics.replayed.Add(float64(len(frames)))
		s.skipTo(after.Seq + int64(len(frames)))
		if err := s.client.write(s, frames); err != nil {
			return err
		}
	}
	return nil
}

// reset tells c that notifications which it should have got are gone, and moves it
// to the present. This comes after ready, because only the replay shows it.
func (h *Hub) reset(ctx context.Context, c *client) error {
	subscriptions := c.subscriptions()
	names := make([]notification.Stream, len(subscriptions))
	for i, s := range subscriptions {
		names[i] = s.topic.name
	}
	heads, err := h.store.Heads(ctx, names)
	if err != nil {
		return err
	}
	now := make(notification.Cursor, len(names))
	for i, s := range subscriptions {
		j := slices.IndexFunc(heads, func(head notification.Head) bool { return head.Stream == s.topic.name })
		if j < 0 || heads[j].Epoch != s.epoch {
			return errLost
		}
		now[i] = heads[j].Position
	}
	c.startAt(now)
	h.metrics.resumes.WithLabelValues("reset").Inc()
	return c.conn.Write(appendReset(nil, "too_old", now))
}

func appendReset(b []byte, why string, now notification.Cursor) []byte {
	b = appendEvent(b, eventReset, fmt.Appendf(nil, `{"reason":%q}`, why))
	return append(appendID(b, now), '\n')
}
