package sse_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/consumer"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse"
	"github.com/cityconnect/cityconnect/notification-service/internal/sse/transport"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/ssetest"
)

// patience ends a test that could not have worked. Nothing is measured by it.
const patience = time.Minute

// writers are both ways of writing, which every promise holds for.
var writers = []sse.Writer{sse.Shared, sse.PerRequest}

// config has short times, so that tests wait little.
func config(w sse.Writer) sse.Config {
	return sse.Config{
		Heartbeat: 20 * time.Second, Lifetime: 30 * time.Minute, DrainWindow: time.Second,
		WriteTimeout: 5 * time.Second, CompareEvery: time.Hour, MaxStreams: 1000, MaxPerUser: 8, Writer: w,
	}
}

// A rig is a database and a hub behind a real server.
type rig struct {
	t     *testing.T
	pool  *pgxpool.Pool
	store *postgres.Store
	hub   *sse.Hub
	reg   *prometheus.Registry
	url   string
	stop  func() // ends the hub and waits for it
}

func newRig(t *testing.T, cfg sse.Config) *rig {
	t.Helper()
	pool := pgtest.Notification(t)
	return newRigOn(t, cfg, pool)
}

// newRigOn is a further replica on the same database.
func newRigOn(t *testing.T, cfg sse.Config, pool *pgxpool.Pool) *rig {
	t.Helper()
	log := zerolog.Nop()
	if os.Getenv("TEST_LOG") != "" {
		log = zerolog.New(zerolog.NewTestWriter(t))
	}
	store, reg := postgres.NewStore(pool), prometheus.NewRegistry()
	r := &rig{t: t, pool: pool, store: store, hub: sse.New(cfg, store, log, reg), reg: reg}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.hub.Run(ctx); err != nil {
			t.Errorf("hub: %v", err)
		}
	})
	r.stop = sync.OnceFunc(func() { cancel(); running.Wait() })

	server := httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	server.Listener.Close()
	lc := net.ListenConfig{Control: transport.Control}
	var err error
	if server.Listener, err = lc.Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(r.stop) // before the server, which waits for its requests
	r.url = server.URL
	return r
}

// serve has the reader in the URL, since there is no sign-in here:
// /<user>, /<user>?official=1, /<user>?expires=<duration>, /feed.
func (r *rig) serve(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path == "/feed" {
		r.hub.ServeFeed(w, req)
		return
	}
	query := req.URL.Query()
	reader := notification.Reader{UserID: req.URL.Path[1:], Official: query.Has("official")}
	expires := time.Now().Add(time.Hour)
	if d, err := time.ParseDuration(query.Get("expires")); err == nil {
		expires = time.Now().Add(d)
	}
	r.hub.ServeNotifications(w, req, reader, expires)
}

// open connects to a path and is closed with the test.
func (r *rig) open(path, lastID string) *ssetest.Stream {
	r.t.Helper()
	s, err := ssetest.Open(r.t.Context(), r.url+path, lastID)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(s.Close)
	return s
}

// commit writes a vote for each of the users, in one transaction, and returns
// what the live streams would be told.
func (r *rig) commit(users ...string) notification.Batch {
	r.t.Helper()
	var batch []consumer.Message
	for _, user := range users {
		m := &event.VoteReceived{
			Subject: event.Subject{ReportID: uuid.New(), ReportVersion: 1, ReportTitle: "Pothole", ReporterID: user, Timestamp: time.Now().Unix()},
			VoterID: "voter", VoteType: event.Upvote, NewScore: new(int64(1)),
		}
		batch = append(batch, consumer.Message{ID: uuid.NewString(), Effect: notification.Of(m, user)})
	}
	return r.apply(batch)
}

// commitReport writes a new report, which the officials hear of.
func (r *rig) commitReport() notification.Batch {
	r.t.Helper()
	m := &event.ReportCreated{
		Subject:    event.Subject{ReportID: uuid.New(), ReportVersion: 1, ReportTitle: "Lamp", Timestamp: time.Now().Unix()},
		CategoryID: 1, CategoryName: "Light", PrivacyLevel: event.Anonymous,
	}
	return r.apply([]consumer.Message{{ID: uuid.NewString(), Effect: notification.Of(m, "")}})
}

func (r *rig) apply(batch []consumer.Message) notification.Batch {
	r.t.Helper()
	applied, err := r.store.Apply(r.t.Context(), "test", batch)
	if err != nil {
		r.t.Fatal(err)
	}
	return applied.Batch
}

// tell commits for the users and delivers it.
func (r *rig) tell(users ...string) notification.Batch {
	r.t.Helper()
	b := r.commit(users...)
	r.hub.Deliver(b, time.Now())
	return b
}

// next returns the next event that is no heartbeat.
func next(t *testing.T, s *ssetest.Stream) ssetest.Event {
	t.Helper()
	watchdog := time.AfterFunc(patience, s.Close)
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
func expect(t *testing.T, s *ssetest.Stream, kind string) ssetest.Event {
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
func unread(t *testing.T, e ssetest.Event) int64 {
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
	watchdog := time.AfterFunc(patience, func() { t.Error("the stream did not end"); s.Close() })
	defer watchdog.Stop()
	for {
		if _, err := s.Next(); err != nil {
			return
		}
	}
}

// metric returns the sum of a metric over its labels.
func (r *rig) metric(name string) float64 {
	r.t.Helper()
	families, err := r.reg.Gather()
	if err != nil {
		r.t.Fatal(err)
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
