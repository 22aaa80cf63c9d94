package sse_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/consumer"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/ssetest"
)

// expectBounce wants an answer that makes an EventSource come back.
func expectBounce(t *testing.T, s *ssetest.Stream) {
	t.Helper()
	if e, err := s.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("got event %q and error %v, want the end", e.Type, err)
	}
	if s.Status != 200 || s.Retry() == 0 || s.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("status %d, retry %s, content type %q; want 200 and a retry of an event stream",
			s.Status, s.Retry(), s.Header.Get("Content-Type"))
	}
}

func TestFullHubSendsAway(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		cfg := config(w)
		cfg.MaxStreams = 2
		r := newRig(t, cfg)
		first := r.open("/ann", "")
		expect(t, first, "ready")
		expect(t, r.open("/feed", ""), "ready")
		for _, path := range []string{"/bob", "/feed"} {
			expectBounce(t, r.open(path, ""))
		}
		first.Close()
		r.eventually("the place is free again", func() bool { return r.metric("sse_connections") == 1 })
		expect(t, r.open("/bob", ""), "ready")
	})
}

func TestDatabaseAwaySendsAway(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		r := newRig(t, config(w))
		s := r.open("/ann", "")
		expect(t, s, "ready")
		r.pool.Close()
		expectBounce(t, r.open("/ann", ""))
		r.tellOnly("ann", s) // who is there stays
	})
}

// tellOnly announces what the database does not know of and expects it.
func (r *rig) tellOnly(user string, s *ssetest.Stream) {
	r.t.Helper()
	epoch := strings.Split(s.LastID(), ".")[1]
	r.hub.Deliver(notification.Batch{Notifications: []notification.Notification{{
		Stream: notification.UserStream(user), Epoch: epoch, Seq: seqOf(r.t, s.LastID()) + 1,
		ID: uuid.New(), Data: []byte(`{"type":"report.created"}`), CreatedAt: time.Now(),
	}}}, time.Now())
	expect(r.t, s, "notification")
}

// The ninth stream of a user costs the first.
func TestOldestStreamMakesRoom(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		r := newRig(t, config(w))
		streams := make([]*ssetest.Stream, 10)
		for i := range streams {
			streams[i] = r.open("/ann", "")
			expect(t, streams[i], "ready")
		}
		for _, s := range streams[:2] {
			expectEnd(t, s)
			if s.Retry() < 30*time.Second {
				t.Errorf("the oldest is to come back after %s, want 30 s or more", s.Retry())
			}
		}
		r.tell("ann")
		for _, s := range streams[2:] {
			expect(t, s, "notification")
		}
	})
}

// Who does not read is cut off. The others do not notice, and with its cursor
// it misses nothing.
func TestStalledReaderIsCutOff(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		cfg := config(w)
		cfg.WriteTimeout = 200 * time.Millisecond
		r := newRig(t, cfg)
		r.stall("/ann")
		r.eventually("the stalled one is there", func() bool { return r.metric("sse_connections") == 1 })
		healthy := r.open("/ann", "")
		expect(t, healthy, "ready")
		sent := 0
		for r.metric("sse_disconnects_total") == 0 {
			r.hub.Deliver(r.commitLong("ann"), time.Now())
			expect(t, healthy, "notification")
			sent++
		}
		t.Logf("cut off after %d events of 4 KB", sent)
		s := r.open("/ann", strings.Replace(healthy.LastID(), fmt.Sprintf(".%d", sent), ".0", 1))
		expect(t, s, "ready")
		for range sent {
			expect(t, s, "notification")
		}
	})
}

// What waits for a client is bounded, also while its write may still end well.
func TestQueueIsBounded(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		cfg := config(w)
		cfg.WriteTimeout = time.Hour
		r := newRig(t, cfg)
		r.stall("/ann")
		r.eventually("the stalled one is there", func() bool { return r.metric("sse_connections") == 1 })
		for range 300 { // 1.2 MB, many times what may wait for it
			r.hub.Deliver(r.commitLong("ann"), time.Now())
		}
		r.eventually("it is cut off", func() bool { return r.metric("sse_overflows_total") == 1 })
	})
}

// stall connects to a path and reads nothing, with a small window.
func (r *rig) stall(path string) {
	r.t.Helper()
	addr := strings.TrimPrefix(r.url, "http://")
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() }) // it is cut off already
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		r.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, addr); err != nil {
		r.t.Fatal(err)
	}
}

// commitLong writes a notification of some 4 KB.
func (r *rig) commitLong(user string) notification.Batch {
	r.t.Helper()
	m := &event.StatusUpdate{
		Subject:   event.Subject{ReportID: uuid.New(), ReportVersion: 1, ReportTitle: "Pothole", Timestamp: time.Now().Unix()},
		NewStatus: event.Resolved, Note: strings.Repeat("long", 1000),
	}
	return r.apply([]consumer.Message{{ID: uuid.NewString(), Effect: notification.Of(m, user)}})
}

// eventually waits for a condition.
func (r *rig) eventually(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			r.t.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}
