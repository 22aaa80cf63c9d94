package sse_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/ssetest"
)

// expectRetry checks that an answer makes an EventSource come back.
func expectRetry(t *testing.T, s *ssetest.Stream) {
	t.Helper()
	if e, err := s.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("got event %q and error %v, want the end", e.Type, err)
	}
	if s.Status != 200 || s.Retry() == 0 || s.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("status %d, retry %s, content type %q; want 200 and a retry of an event stream",
			s.Status, s.Retry(), s.Header.Get("Content-Type"))
	}
}

func TestFullHubRefuses(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		cfg := config(w)
		cfg.MaxStreams = 2
		h := newHarness(t, cfg)
		first := h.open("/ann", "")
		expect(t, first, "ready")
		expect(t, h.open("/feed", ""), "ready")
		for _, path := range []string{"/bob", "/feed"} {
			expectRetry(t, h.open(path, ""))
		}
		first.Close()
		eventually.True(h.t, "the place is free again", func() bool { return h.metric("sse_connections") == 1 })
		expect(t, h.open("/bob", ""), "ready")
	})
}

// A user who opens streams and closes them again is asked to come back later, at no cost
// to the database. Other users are not.
func TestUserWhoOpensTooOftenComesBackLater(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		cfg := config(w)
		cfg.MaxPerUser = 2
		h := newHarness(t, cfg)
		for range 8 * cfg.MaxPerUser {
			s := h.open("/ann", "")
			expect(t, s, "ready")
			s.Close()
		}
		h.pool.Close()
		refused := h.open("/ann", "")
		expectRetry(t, refused)
		if refused.Retry() < 5*time.Second {
			t.Errorf("the client is to come back after %s, want 5 s or more", refused.Retry())
		}
		other := h.open("/bob", "")
		if expectRetry(t, other); other.Retry() > 3*time.Second {
			t.Errorf("another user is to come back after %s, want 3 s at most: only the database is away", other.Retry())
		}
	})
}

// The feed needs no token. However many follow it, there is room for those who
// are signed in.
func TestFeedLeavesRoom(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		cfg := config(w)
		cfg.MaxStreams, cfg.MaxFeed = 5, 3
		h := newHarness(t, cfg)
		feeds := make([]*ssetest.Stream, cfg.MaxFeed)
		for i := range feeds {
			feeds[i] = h.open("/feed", "")
			expect(t, feeds[i], "ready")
		}
		expectRetry(t, h.open("/feed", ""))
		expect(t, h.open("/ann", ""), "ready")
		expect(t, h.open("/bob", ""), "ready")

		feeds[0].Close()
		eventually.True(h.t, "one follower has left", func() bool { return h.metric("sse_connections") == 4 })
		expect(t, h.open("/feed", ""), "ready")
	})
}

func TestDatabaseAwayRefuses(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		h := newHarness(t, config(w))
		s := h.open("/ann", "")
		expect(t, s, "ready")
		h.pool.Close()
		refused := h.open("/ann", "")
		expectRetry(t, refused)
		if refused.Retry() > 3*time.Second { // a restart of the database takes no longer
			t.Errorf("the client is to come back after %s, want 3 s at most", refused.Retry())
		}
		h.tellOnly("ann", s) // streams that are open stay
	})
}

// All streams of a replica may break at once. Where there are many, each is sent a
// later time to come back, also those that were opened when there were few.
func TestManyStreamsComeBackSlowly(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		const clients = 30
		cfg := config(w)
		cfg.Heartbeat = 200 * time.Millisecond
		cfg.ReconnectRate = 1 // so that the last of 30 has half a minute
		h := newHarness(t, cfg)
		streams := make([]*ssetest.Stream, clients)
		for i := range streams {
			streams[i] = h.open("/feed", "")
			expect(t, streams[i], "ready")
		}
		if few := streams[0].Retry(); few < 300*time.Millisecond || few > 1500*time.Millisecond {
			t.Errorf("the first of all comes back after %s, want 0.3 s to 1.5 s", few)
		}
		late := 0
		for _, s := range streams {
			watchdog := time.AfterFunc(eventually.Patience, s.Close)
			for first := s.Retry(); s.Retry() == first; {
				if e, err := s.Next(); err != nil || e.Type != "hb" || string(e.Data) != "1" {
					t.Fatalf("got event %q with %q (error %v), want a heartbeat", e.Type, e.Data, err)
				}
			}
			watchdog.Stop()
			if s.Retry() > clients*time.Second {
				t.Errorf("one of %d comes back after %s", clients, s.Retry())
			}
			if s.Retry() > clients*time.Second/2 {
				late++
			}
		}
		if late < clients/6 {
			t.Errorf("%d of %d come back in the second half of %d s", late, clients, clients)
		}
	})
}

// tellOnly delivers what the database does not have and expects it.
func (h *harness) tellOnly(user string, s *ssetest.Stream) {
	h.t.Helper()
	epoch := strings.Split(s.LastID(), ".")[1]
	h.hub.Deliver(notification.Batch{Notifications: []notification.Notification{{
		Stream: notification.UserStream(user), Epoch: epoch, Seq: seqOf(h.t, s.LastID()) + 1,
		ID: uuid.New(), Data: []byte(`{"type":"report.created"}`), CreatedAt: time.Now(),
	}}}, time.Now())
	expect(h.t, s, "notification")
}

// The ninth stream of a user costs the first.
func TestOldestStreamIsEvicted(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		h := newHarness(t, config(w))
		streams := make([]*ssetest.Stream, 10)
		for i := range streams {
			streams[i] = h.open("/ann", "")
			expect(t, streams[i], "ready")
		}
		for _, s := range streams[:2] {
			expectEnd(t, s)
			if s.Retry() < 30*time.Second {
				t.Errorf("the oldest is to come back after %s, want 30 s or more", s.Retry())
			}
		}
		h.tell("ann")
		for _, s := range streams[2:] {
			expect(t, s, "notification")
		}
	})
}

// A client that does not read is disconnected. The others do not notice, and
// with its cursor it misses nothing.
func TestStalledReaderIsDisconnected(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		cfg := config(w)
		cfg.WriteTimeout = 200 * time.Millisecond
		h := newHarness(t, cfg)
		h.stall("/ann")
		eventually.True(h.t, "the stalled client is connected", func() bool { return h.metric("sse_connections") == 1 })
		healthy := h.open("/ann", "")
		expect(t, healthy, "ready")
		sent := 0
		for h.metric("sse_disconnects_total") == 0 {
			h.hub.Deliver(h.commitLong("ann"), time.Now())
			expect(t, healthy, "notification")
			sent++
		}
		t.Logf("disconnected after %d events of 4 KB", sent)
		s := h.open("/ann", strings.TrimSuffix(healthy.LastID(), strconv.Itoa(sent))+"0")
		expect(t, s, "ready")
		for range sent {
			expect(t, s, "notification")
		}
	})
}

// The queue of a client is bounded, also while its write may still end well.
func TestQueueIsBounded(t *testing.T) {
	each(t, func(t *testing.T, w sse.Writer) {
		cfg := config(w)
		cfg.WriteTimeout = time.Hour
		h := newHarness(t, cfg)
		h.stall("/ann")
		eventually.True(h.t, "the stalled client is connected", func() bool { return h.metric("sse_connections") == 1 })
		for range 300 { // 1.2 MB, many times what may wait for it
			h.hub.Deliver(h.commitLong("ann"), time.Now())
		}
		eventually.True(h.t, "it is disconnected", func() bool { return h.metric("sse_overflows_total") == 1 })
	})
}

// stall connects to a path and reads nothing, with a small window.
func (h *harness) stall(path string) {
	h.t.Helper()
	addr := strings.TrimPrefix(h.url, "http://")
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() }) // it is disconnected already
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		h.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, addr); err != nil {
		h.t.Fatal(err)
	}
}

// commitLong writes a notification of some 4 KB.
func (h *harness) commitLong(user string) notification.Batch {
	h.t.Helper()
	m := &event.StatusUpdate{
		Subject:   event.Subject{ReportID: uuid.New(), ReportVersion: 1, ReportTitle: "Pothole", Timestamp: time.Now().Unix()},
		NewStatus: event.Resolved, Note: strings.Repeat("long", 1000),
	}
	return h.apply([]postgres.Message{{ID: uuid.NewString(), Value: notification.Of(m, user)}})
}

// A STREAM_MAX above the limit of open files is logged before the streams come.
func TestTooFewFiles(t *testing.T) {
	t.Parallel()
	for streams, want := range map[int]bool{10: false, 1 << 40: true} {
		var log bytes.Buffer
		sse.WarnOfFiles(sse.Config{MaxStreams: streams}, zerolog.New(&log))
		if got := strings.Contains(log.String(), "STREAM_MAX"); got != want {
			t.Errorf("%d streams: log %q, want a warning: %t", streams, log.String(), want)
		}
	}
}

// failingStore is a database that cannot be reached.
type failingStore struct {
	sse.Store
	err error
}

func (s failingStore) View(context.Context, notification.Reader) (notification.View, error) {
	return notification.View{}, s.err
}

// The log says that the database is away, and neither where it is nor who the
// service is there.
func TestLogHidesTheDatabase(t *testing.T) {
	t.Parallel()
	_, err := pgconn.Connect(t.Context(), "postgres://canary@127.0.0.1:1/canary")
	if err == nil || !strings.Contains(err.Error(), "canary") {
		t.Fatalf("connecting to no server: error %v, want one that names the user", err)
	}
	var log bytes.Buffer
	hub := sse.New(sse.Defaults(), failingStore{err: err}, zerolog.New(&log), prometheus.NewRegistry())
	hub.ServeNotifications(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/", nil),
		notification.Reader{UserID: "ann"}, time.Now().Add(time.Hour))
	if text := log.String(); !strings.Contains(text, "will retry") || strings.Contains(text, "canary") || strings.Contains(text, "127.0.0.1") {
		t.Errorf("the log has %s, want a failure without address and user", text)
	}
}
