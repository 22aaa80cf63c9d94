package sse_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse/transport"
	"github.com/cityconnect/cityconnect/platform/event"
	platformsse "github.com/cityconnect/cityconnect/platform/sse"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/ssetest"
	"github.com/cityconnect/cityconnect/platform/testing/testlog"
)

// writers are both ways of writing, which every promise holds for.
var writers = []sse.Writer{sse.Shared, sse.PerRequest}

// config drains in a short time and compares only when a test asks for it.
func config(w sse.Writer) sse.Config {
	cfg := sse.Defaults()
	cfg.Writer, cfg.DrainWindow, cfg.CompareEvery = w, time.Second, time.Hour
	cfg.WriteTimeout = time.Minute // a busy machine may stand still for seconds
	return cfg
}

// A harness is a database and a hub behind a real server.
type harness struct {
	t     *testing.T
	pool  *pgxpool.Pool
	store *postgres.DB
	hub   *sse.Hub
	reg   *prometheus.Registry
	url   string
	stop  func() // ends the hub and waits for it
}

func newHarness(t *testing.T, cfg sse.Config) *harness {
	t.Helper()
	pool := pgtest.Notification(t)
	store, reg := postgres.New(pool, postgres.Options{}), prometheus.NewRegistry()
	h := &harness{t: t, pool: pool, store: store, hub: sse.New(cfg, store.Streams, testlog.New(t), reg), reg: reg}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := h.hub.Run(ctx); err != nil {
			t.Errorf("hub: %v", err)
		}
	})
	h.stop = sync.OnceFunc(func() { cancel(); running.Wait() })

	server := httptest.NewUnstartedServer(http.HandlerFunc(h.serve))
	server.Listener.Close()
	lc := net.ListenConfig{Control: transport.Control}
	var err error
	if server.Listener, err = lc.Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(h.stop) // before the server, which waits for its requests
	h.url = server.URL
	return h
}

// serve has the reader in the URL, since there is no sign-in here:
// /<user>, /<user>?official=1, /feed.
func (h *harness) serve(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path == "/feed" {
		h.hub.ServeFeed(w, req)
		return
	}
	query := req.URL.Query()
	reader := notification.Reader{UserID: req.URL.Path[1:], Official: query.Has("official")}
	h.hub.ServeNotifications(w, req, reader, time.Now().Add(time.Hour))
}

// open connects to a path and is closed with the test.
func (h *harness) open(path, lastID string) *ssetest.Stream {
	h.t.Helper()
	s, err := ssetest.Open(h.t.Context(), h.url+path, lastID)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(s.Close)
	return s
}

// commit writes a vote for each of the users, in one transaction, and returns
// what would be delivered to the hubs.
func (h *harness) commit(users ...string) notification.Batch {
	h.t.Helper()
	var batch []postgres.Message
	for _, user := range users {
		m := &event.VoteReceived{
			Subject: event.Subject{ReportID: uuid.New(), ReportVersion: 1, ReportTitle: "Pothole", ReporterID: user, Timestamp: time.Now().Unix()},
			VoterID: "voter", VoteType: event.Upvote, NewScore: new(int64(1)),
		}
		batch = append(batch, postgres.Message{ID: uuid.NewString(), Value: notification.Of(m, user)})
	}
	return h.apply(batch)
}

// commitReport writes a notification for the officials.
func (h *harness) commitReport() notification.Batch {
	h.t.Helper()
	m := &event.ReportCreated{
		Subject:    event.Subject{ReportID: uuid.New(), ReportVersion: 1, ReportTitle: "Lamp", Timestamp: time.Now().Unix()},
		CategoryID: 1, CategoryName: "Light", PrivacyLevel: event.Anonymous,
	}
	return h.apply([]postgres.Message{{ID: uuid.NewString(), Value: notification.Of(m, "")}})
}

func (h *harness) apply(batch []postgres.Message) notification.Batch {
	h.t.Helper()
	applied, err := h.store.Effects.Apply(h.t.Context(), "test", batch)
	if err != nil {
		h.t.Fatal(err)
	}
	return applied.Batch
}

// tell commits for the users and delivers it.
func (h *harness) tell(users ...string) notification.Batch {
	h.t.Helper()
	b := h.commit(users...)
	h.hub.Deliver(b, time.Now())
	return b
}

// next returns the next event other than a heartbeat.
func next(t *testing.T, s *ssetest.Stream) platformsse.Event {
	t.Helper()
	watchdog := time.AfterFunc(eventually.Patience, s.Close)
	defer watchdog.Stop()
	for {
		e, err := s.Next()
		if err != nil {
			t.Fatalf("next event: %v", err)
		}
		if e.Type != "hb" {
			return e
		}
	}
}

// expect reads an event of the type and returns it.
func expect(t *testing.T, s *ssetest.Stream, kind string) platformsse.Event {
	t.Helper()
	e := next(t, s)
	if e.Type != kind {
		t.Fatalf("got event %q with %s, want %q", e.Type, e.Data, kind)
	}
	return e
}

// expectSeqs reads notifications and compares their numbers.
func expectSeqs(t *testing.T, s *ssetest.Stream, epoch string, seqs ...int64) {
	t.Helper()
	for _, seq := range seqs {
		want := fmt.Sprintf("v1.%s.%d", epoch, seq)
		if e := expect(t, s, "notification"); e.ID != want {
			t.Fatalf("got id %s, want %s", e.ID, want)
		}
	}
}

// unread returns the count in the data of a ready event.
func unread(t *testing.T, e platformsse.Event) int64 {
	t.Helper()
	var data struct {
		UnreadCount int64 `json:"unread_count"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		t.Fatalf("data of ready: %v", err)
	}
	return data.UnreadCount
}

// expectEnd reads until the server closes the stream.
func expectEnd(t *testing.T, s *ssetest.Stream) {
	t.Helper()
	watchdog := time.AfterFunc(eventually.Patience, func() { t.Error("the stream did not end"); s.Close() })
	defer watchdog.Stop()
	for {
		if _, err := s.Next(); err != nil {
			return
		}
	}
}

// metric returns the sum of a metric over its labels.
func (h *harness) metric(name string) float64 {
	h.t.Helper()
	families, err := h.reg.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}
