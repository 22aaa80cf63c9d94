package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/processtest"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// atOnce are pauses before another attempt. A busy machine may keep a request, or
// the same one twice, waiting for too long; the next ones by default come half an
// hour later.
var atOnce = strings.Repeat("1s,", 99) + "1s"

func TestMain(m *testing.M) { processtest.Main(m, main) }

// A hundred kills lose no event. What was sent and not written down is sent once
// more, with the same id and the same bytes.
func TestKills(t *testing.T) {
	t.Parallel()
	kills := 100
	if testing.Short() {
		kills = 5
	}
	s := newSystem(t)
	s.env = []string{"WEBHOOK_RETRY_DELAYS=" + atOnce}
	const perRound, endpoints = 20, 4
	for range endpoints {
		s.endpoint()
	}
	w := s.start()
	s.connect()
	for range kills {
		before := s.receiver.requests()
		for range perRound {
			s.publish()
		}
		target := before + 1 + rand.IntN(3*perRound)
		eventually.True(t, "some events have arrived", func() bool { return s.receiver.requests() >= target })
		w.Kill()
		s.leaseForGood()
		w.Start()
	}
	eventually.NothingMissing(t, "all events have arrived", func() string {
		lost, _, _ := s.receiver.count(s.published)
		if lost == 0 {
			return ""
		}
		s.replay()
		return fmt.Sprintf("%d have not", lost)
	})
	// A killed worker's last deliveries are sent again, although all have arrived.
	eventually.True(t, "all deliveries are done", func() bool {
		var waiting int
		err := s.pool.QueryRow(t.Context(), `select count(*) from deliveries where state <> 'done'`).Scan(&waiting)
		return err == nil && waiting == 0
	})
	if code := w.Stop(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	lost, doubled, changed := s.receiver.count(s.published)
	t.Logf("kills=%d events=%d endpoints=%d requests=%d lost=%d doubled=%d changed=%d",
		kills, len(s.published), len(s.receiver.bodies), s.receiver.requests(), lost, doubled, changed)
	// In flight or not yet written down. How much that is depends on how long the
	// machine takes to write it down; it is never more than there was to do.
	if limit := kills * perRound * endpoints; lost > 0 || changed > 0 || doubled > limit {
		t.Errorf("lost %d, doubled %d, doubles that differ %d; want 0, at most %d, 0", lost, doubled, changed, limit)
	}
}

// A killed worker's lanes, of webhooks and mails, are another's within seconds, whether that
// runs already or is the successor, and although their leases last.
func TestKilledWorkersLanesAreTakenOver(t *testing.T) {
	t.Parallel()
	kills := 20
	if testing.Short() {
		kills = 4
	}
	s, box := newSystem(t), newMailbox(t)
	s.env = []string{"WEBHOOK_RETRY_DELAYS=" + atOnce}
	store, keys := s.mailTo(box)
	s.endpoint()
	w, standby := s.start(), s.start()
	standby.Kill()
	s.connect()
	took := make(map[string][]time.Duration)
	proofs := 0
	send := func() {
		s.publish()
		enterCaller(t, store, keys, proofs)
		proofs++
	}
	await := func(since time.Time) (webhooks, mails time.Duration) {
		eventually.True(t, "webhook and mail have arrived", func() bool {
			if lost, _, _ := s.receiver.count(s.published); webhooks == 0 && lost == 0 {
				webhooks = time.Since(since)
			}
			if mails == 0 && box.count() >= proofs {
				mails = time.Since(since)
			}
			return webhooks > 0 && mails > 0
		})
		return webhooks, mails
	}
	for i := range kills {
		runs := i%2 == 1 // another one already, or the successor is to have the lanes
		if runs {
			standby.Start()
		}
		send()
		await(time.Now())
		killed := time.Now()
		w.Kill()
		s.leaseForGood()
		send()
		if runs {
			w, standby = standby, w
		} else {
			w.Start()
		}
		webhooks, mails := await(killed)
		took["webhooks"], took["mails"] = append(took["webhooks"], webhooks), append(took["mails"], mails)
	}
	for _, what := range []string{"webhooks", "mails"} {
		slices.Sort(took[what])
		t.Logf("kills=%d %s median=%s worst=%s", kills, what, took[what][kills/2], took[what][kills-1])
	}
}

// A living worker whose session is cut keeps its lanes or loses them, and either way nothing is
// sent twice.
func TestCutSessionSendsNothingTwice(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	for range 4 {
		s.endpoint()
	}
	workers := []*processtest.Process{s.start(), s.start()}
	s.connect()
	for range 10 {
		before := s.receiver.requests()
		for range 20 {
			s.publish()
		}
		eventually.True(t, "some events have arrived", func() bool { return s.receiver.requests() > before })
		_, err := s.pool.Exec(t.Context(), `
			select pg_terminate_backend(l.pid) from pg_locks l join pg_database d on d.oid = l.database
			where l.locktype = 'advisory' and d.datname = current_database() and l.mode = 'ExclusiveLock'`)
		if err != nil {
			t.Fatal(err)
		}
	}
	s.receiver.waitForAll(s.published)
	for _, w := range workers {
		w.Stop()
	}
	if lost, doubled, _ := s.receiver.count(s.published); lost > 0 || doubled > 0 {
		t.Errorf("lost %d, doubled %d, want none", lost, doubled)
	}
}

// A worker that is stopped finishes what is in flight, so that nothing is sent
// twice, and gives its lanes back.
func TestStops(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	for range 4 {
		s.endpoint()
	}
	w := s.start()
	s.connect()
	for range 10 {
		before := s.receiver.requests()
		for range 20 {
			s.publish()
		}
		eventually.True(t, "some events have arrived", func() bool { return s.receiver.requests() > before })
		if code := w.Stop(); code != 0 {
			t.Fatalf("exit code %d, want 0", code)
		}
		var leased int
		if err := s.pool.QueryRow(t.Context(), `select count(*) from lanes where owner is not null`).Scan(&leased); err != nil || leased > 0 {
			t.Fatalf("%d lanes are leased by a worker that stopped (error %v)", leased, err)
		}
		w.Start()
	}
	s.receiver.waitForAll(s.published)
	w.Stop()
	if lost, doubled, _ := s.receiver.count(s.published); lost > 0 || doubled > 0 {
		t.Errorf("lost %d, doubled %d, want none", lost, doubled)
	}
}

// A system is a broker and a database with a receiver of webhooks.
type system struct {
	t         *testing.T
	pool      *pgxpool.Pool
	rabbit    string
	key       string
	keys      *event.Keyring
	receiver  *receiver
	publisher *rabbit.Publisher
	published []string
	env       []string // of the worker, beside what all have
}

func newSystem(t *testing.T) *system {
	t.Helper()
	s := &system{t: t, pool: pgtest.Notification(t), rabbit: rabbittest.Vhost(t), key: event.NewKey("k1"), receiver: newReceiver(t)}
	var err error
	if s.keys, err = event.ParseKeyring(s.key); err != nil {
		t.Fatal(err)
	}
	return s
}

// endpoint registers another address of the receiver.
func (s *system) endpoint() {
	s.t.Helper()
	id := uuid.New()
	_, err := s.pool.Exec(s.t.Context(), `insert into webhook_endpoints (id, url, secret) values ($1, $2, $3)`,
		id, s.receiver.URL+"/"+id.String(), webhook.SealSecret(s.keys, id, webhook.NewSecret()))
	if err != nil {
		s.t.Fatal(err)
	}
}

// connect opens the connection that publishes, once the queue is there.
func (s *system) connect() {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	eventually.True(s.t, "the queue is there", func() bool {
		conn, err := rabbit.Dial(ctx, rabbit.Config{URL: s.rabbit, Name: "test"})
		if err != nil {
			return false
		}
		if s.publisher, err = rabbit.NewPublisher(conn, 256); err == nil {
			err = s.send(newVote(s.keys))
		}
		if err != nil {
			_ = conn.Close() // it is of no use
			return false
		}
		s.t.Cleanup(func() { _ = conn.Close() }) // the broker may be gone
		return true
	})
}

// leaseForGood makes the leases of all lanes last: what died must be noticed otherwise.
func (s *system) leaseForGood() {
	s.t.Helper()
	if _, err := s.pool.Exec(s.t.Context(), `update lanes set lease_until = 'infinity' where owner is not null`); err != nil {
		s.t.Fatal(err)
	}
}

// replay sends dead letters again, as an operator does. A message that workers had
// in hand each time that they were killed is one.
func (s *system) replay() {
	s.t.Helper()
	all := deadletter.ReplayRequest{Selection: deadletter.Selection{Queue: webhook.Queue}}
	_, err := deadletter.NewStore(s.pool).CreateReplay(s.t.Context(), "operator", all)
	if err != nil && !errors.Is(err, deadletter.ErrNothing) && !errors.Is(err, deadletter.ErrTaking) {
		s.t.Fatal(err)
	}
}

// publish sends a vote as report-service does, and returns once the broker has it.
func (s *system) publish() {
	s.t.Helper()
	if err := s.send(newVote(s.keys)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *system) send(p amqp.Publishing) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), eventually.Patience)
	defer cancel()
	if err := s.publisher.PublishWait(ctx, event.Topology{}.Exchange(), p.Type, p); err != nil {
		return err
	}
	s.published = append(s.published, p.MessageId)
	return nil
}

func newVote(keys *event.Keyring) amqp.Publishing {
	report := uuid.New()
	body, err := json.Marshal(&event.VoteReceived{
		Subject: event.Subject{ReportID: report, ReportVersion: 1, ReportTitle: "Pothole", Timestamp: time.Now().Unix()},
		VoterID: "voter", VoteType: event.Upvote, NewScore: new(int64(1)),
	})
	if err != nil {
		panic(err)
	}
	return amqp.Publishing{
		MessageId: uuid.NewString(), Type: string(event.VoteReceivedKey), ContentType: "application/json",
		DeliveryMode: amqp.Persistent, Body: body,
		Headers: amqp.Table{event.RecipientHeader: keys.Seal(report, "reporter")},
	}
}

// start runs a worker and waits until it is ready.
func (s *system) start() *processtest.Process {
	s.t.Helper()
	return processtest.Start(s.t, processtest.Config{Address: "OPERATIONS_ADDR", Env: append([]string{
		"DATABASE_URL=" + s.pool.Config().ConnString(), "RABBITMQ_URL=" + s.rabbit, "RECIPIENT_KEY=" + s.key,
		"WEBHOOK_ALLOW_HTTP=true", "WEBHOOK_ALLOW_NETWORKS=127.0.0.1/32", "LOG_LEVEL=warn",
	}, s.env...)})
}

// A receiver has all endpoints, one path each.
type receiver struct {
	*httptest.Server
	t       *testing.T
	mu      sync.Mutex
	n       int
	bodies  map[string]map[string][]string // by path and webhook-id
	arrived chan struct{}                  // holds a value after a request
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{t: t, bodies: make(map[string]map[string][]string), arrived: make(chan struct{}, 1)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the worker was killed
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.n++
		id := req.Header.Get("Webhook-Id")
		if r.bodies[req.URL.Path] == nil {
			r.bodies[req.URL.Path] = make(map[string][]string)
		}
		r.bodies[req.URL.Path][id] = append(r.bodies[req.URL.Path][id], string(body))
		select {
		case r.arrived <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

// count returns how many events did not reach an endpoint, how many came again,
// and how many of those in other bytes.
func (r *receiver) count(ids []string) (lost, doubled, changed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, seen := range r.bodies {
		for _, id := range ids {
			bodies := seen[id]
			if len(bodies) == 0 {
				lost++
				continue
			}
			doubled += len(bodies) - 1
			if len(slices.Compact(slices.Clone(bodies))) > 1 {
				changed++
			}
		}
	}
	return lost, doubled, changed
}

// waitForAll waits until no event is lost, for as long as events arrive.
func (r *receiver) waitForAll(ids []string) {
	r.t.Helper()
	for {
		lost, _, _ := r.count(ids)
		if lost == 0 {
			return
		}
		select {
		case <-r.arrived:
		case <-time.After(eventually.Patience):
			r.t.Fatalf("%d events have not arrived", lost)
		}
	}
}
