package webhook_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/rs/zerolog"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/trace"
)

// Every endpoint gets every event that it asked for, once, and the signature is that
// of its secret.
func TestEveryEndpointIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	everything := w.receiver(ok)
	votes := w.receiver(ok)
	all, some := w.endpoint(everything.URL), w.endpoint(votes.URL, `event_types = '{report.vote.received}'`)
	w.start(w.config())
	const n = 200
	var want, wantVotes []string
	for i := range n {
		e := vote(uuid.New(), 1)
		if i%4 == 0 {
			e = created(uuid.New())
		} else {
			wantVotes = append(wantVotes, e.MessageID)
		}
		want = append(want, e.MessageID)
		w.expand(e)
		w.expand(e) // it is delivered twice by the broker
	}
	everything.waitFor(n)
	votes.waitFor(len(wantVotes))
	w.waitFor(`select count(*) from deliveries where state = 'done'`, n+len(wantVotes))
	everything.sawOnce(want, all.secret)
	votes.sawOnce(wantVotes, some.secret)
	w.waitFor(`select count(*) from delivery_attempts where n = 1 and status = 200`, n+len(wantVotes))
}

// Every attempt goes on in the trace of the request that caused the event, in a span of
// its own. An event without one begins none, which no log would know.
func TestAttemptsAreInTheTraceOfTheRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var requests atomic.Int64
	r := w.receiver(func(rw http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 {
			rw.WriteHeader(http.StatusInternalServerError)
		}
	})
	w.endpoint(r.URL)
	traced, other := vote(uuid.New(), 1), vote(uuid.New(), 1)
	traced.TraceID = "0af7651916cd43dd8448eb211c80319c"
	cfg := w.config()
	cfg.Schedule = ledger.Schedule{time.Millisecond}
	w.start(cfg)
	w.expand(traced)
	r.waitFor(2)
	w.expand(other)
	r.waitFor(3)
	var parents []string
	for _, got := range r.requests() {
		parents = append(parents, got.header.Get(trace.Header))
	}
	if len(parents) != 3 || trace.ID(parents[0]) != traced.TraceID || trace.ID(parents[1]) != traced.TraceID || parents[0] == parents[1] || parents[2] != "" {
		t.Errorf("trace contexts %q, want two of trace %s and none", parents, traced.TraceID)
	}
}

// Endpoints that never answer keep as many places as they may have at once, and
// the others go on.
func TestHangingEndpointsHoldUpNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hanging := make(chan struct{})
	var healthy []*receiver
	var atOnce [3]atomic.Int64
	for i := range atOnce {
		r := w.receiver(func(_ http.ResponseWriter, r *http.Request) {
			if n := atOnce[i].Add(1); n > 2 {
				t.Errorf("%d requests at once to an endpoint that does not answer, want at most the 2 that it may have", n)
			}
			defer atOnce[i].Add(-1)
			select {
			case <-hanging:
			case <-r.Context().Done(): // the worker gave up
			}
		})
		w.endpoint(r.URL)
	}
	t.Cleanup(func() { close(hanging) }) // before the receivers close
	for range 5 {
		r := w.receiver(ok)
		w.endpoint(r.URL)
		healthy = append(healthy, r)
	}
	cfg := w.config()
	cfg.Concurrency, cfg.Timeout = 8, 30*time.Second // longer than the others take, and far below the lease
	w.start(cfg)
	const n = 100
	for range n {
		w.expand(vote(uuid.New(), 1))
	}
	for _, r := range healthy {
		r.waitFor(n)
	}
}

// The events of a report arrive in order, also when one fails; those of others
// do not wait. An endpoint that wants no order gets what is due.
func TestOrderOfAReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	report := uuid.New()
	failFirst := func(failures int) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			if version(r) == 1 && failures > 0 {
				failures--
				rw.WriteHeader(http.StatusInternalServerError)
			}
		}
	}
	ordered, any := w.receiver(failFirst(3)), w.receiver(failFirst(1))
	w.endpoint(ordered.URL)
	w.endpoint(any.URL, `order_policy = 'none'`)
	other := vote(uuid.New(), 9)
	w.expand(vote(report, 1), vote(report, 2), vote(report, 3), vote(report, 4), other)
	cfg := w.config()
	cfg.Schedule = ledger.Schedule{time.Second, time.Second, time.Second}
	w.start(cfg)
	w.waitFor(`select count(*) from deliveries where state = 'done'`, 10)
	if got := ordered.versions(report, http.StatusOK); !slices.Equal(got, []int64{1, 2, 3, 4}) {
		t.Errorf("accepted in the order %v, want 1 2 3 4", got)
	}
	if got := any.versions(report, http.StatusOK); len(got) != 4 || got[3] != 1 {
		t.Errorf("without order accepted as %v, want 1 last", got)
	}
}

// Two workers keep the limit of an endpoint together, and neither repeats what
// the other sent.
func TestLimitHoldsOverWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	now, most := 0, 0
	r := w.receiver(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		<-time.After(time.Millisecond) // requests that take some time
		mu.Lock()
		now--
		mu.Unlock()
	})
	e := w.endpoint(r.URL, `in_flight = 3`)
	stop := w.start(w.config())
	w.start(w.config())
	var want []string
	for i := range 400 {
		event := vote(uuid.New(), 1)
		want = append(want, event.MessageID)
		w.expand(event)
		if i == 200 {
			stop() // its lanes are the other's at once
		}
	}
	r.waitFor(len(want))
	w.waitFor(`select count(*) from deliveries where state = 'done'`, len(want))
	r.sawOnce(want, e.secret)
	if most > 3 {
		t.Errorf("%d requests at once, want at most 3", most)
	}
}

// A worker that died keeps its lanes for a minute at the most; then another
// sends what waits there.
func TestTakeoverOfALane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.receiver(ok)
	w.endpoint(r.URL)
	stop := w.start(w.config())
	w.expand(vote(uuid.New(), 1))
	r.waitFor(1)
	dead := uuid.New() // it had the lane before it could give it back
	stop()
	w.exec(`update lanes set owner = $1, lease_until = now() + interval '60 seconds'`, dead)
	w.expand(vote(uuid.New(), 1))
	w.start(w.config())
	other := w.receiver(ok)
	w.endpoint(other.URL)
	w.expand(vote(uuid.New(), 1))
	other.waitFor(1) // the worker has looked for due lanes
	if got := r.count(); got != 1 {
		t.Fatalf("%d requests in a lane that is another's, want 1 from before", got)
	}
	w.exec(`update lanes set lease_until = lease_until - interval '60 seconds' where owner = $1`, dead)
	r.waitFor(3)
	w.waitFor(`select count(*) from lanes where lease_until > now() + interval '60 seconds'`, 0)
}

// Events of a day in which an endpoint is disabled are held, and none of them is lost.
func TestDisabledForADay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, other := w.receiver(ok), w.receiver(ok)
	e := w.endpoint(r.URL)
	w.endpoint(other.URL)
	w.start(w.config())
	var want []string
	tell := func(n int) {
		for range n {
			event := vote(uuid.New(), 1)
			want = append(want, event.MessageID)
			w.expand(event)
		}
	}
	tell(100)
	r.waitFor(100)
	w.exec(`update webhook_endpoints set state = 'disabled', state_reason = 'operator' where id = $1`, e.id)
	tell(500)
	// One that was written by a transaction which saw the endpoint enabled.
	w.exec(`update deliveries set state = 'waiting' where id = (select max(id) from deliveries where target = $1)`, e.id.String())
	other.waitFor(600)
	w.waitFor(`select count(*) from deliveries where state = 'held'`, 500)
	w.exec(`update deliveries set created_at = created_at - interval '1 day', due_at = due_at - interval '1 day', not_after = not_after - interval '1 day'`)
	if more, err := w.store.Deliveries.Upkeep(t.Context(), 720*time.Hour); more || err != nil {
		t.Fatalf("upkeep: more %t, error %v", more, err)
	}
	if got := r.count(); got != 100 {
		t.Fatalf("%d requests to a disabled endpoint, want the 100 from before", got)
	}
	w.exec(`update webhook_endpoints set state = 'enabled', state_reason = '' where id = $1`, e.id)
	if _, err := w.store.Endpoints.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.waitFor(600)
	w.waitFor(`select count(*) from deliveries where state = 'done'`, 1200)
	r.sawOnce(want, e.secret)
}

// Deliveries held for too long, or too many of them, are dropped, and counted where
// the operators see it.
func TestHeldIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.endpoint("https://receiver.test/", `state = 'disabled'`)
	for range 10 {
		w.expand(vote(uuid.New(), 1))
	}
	w.exec(`update deliveries set created_at = now() - interval '7 days 1 second' where id in (select id from deliveries order by id limit 3)`)
	w.exec(`insert into deliveries (channel, lane, target, message_id, kind, body, state)
		select 'webhook', $1, $1, 'more ' || n, 'k', '', 'held' from generate_series(1, 100000) n`, e.id.String())
	for more := true; more; {
		var err error
		if more, err = w.store.Deliveries.Upkeep(t.Context(), 720*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	w.waitFor(`select count(*) from deliveries where state = 'held'`, webhook.MaxHeld)
	w.waitFor(`select held_dropped from webhook_endpoints`, 10)
	w.waitFor(`select count(*) from deliveries where state = 'cancelled' and done_at is not null`, 10)
}

// An endpoint that says it is gone is disabled at once, one that failed for five
// days by its next failure. Both are written in the audit log and counted, and
// what waits is held.
func TestEndpointIsDisabled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason string
		status int
	}{{"gone", http.StatusGone}, {"failing", http.StatusInternalServerError}} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.receiver(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(tt.status) })
			e := w.endpoint(r.URL, `in_flight = 1`)
			w.exec(`insert into lanes (channel, lane, failures, failing_since) values ('webhook', $1, 1, now() - interval '121 hours')`, e.id.String())
			for range 10 {
				w.expand(vote(uuid.New(), 1))
			}
			w.start(w.config())
			w.waitFor(`select count(*) from webhook_endpoints where state = 'disabled' and state_reason = '`+tt.reason+`'`, 1)
			w.waitFor(`select count(*) from operations_audit where action = 'webhook_disable' and detail->>'endpoint' = '`+e.id.String()+`'`, 1)
			w.waitFor(`select count(*) from deliveries where state = 'waiting'`, 0)
			w.waitFor(`select count(*) from deliveries where state in ('held', 'dead')`, 10)
			if got := r.count(); got != 1 {
				t.Errorf("%d requests, want the one that disabled it", got)
			}
			w.waitForMetric(`webhook_endpoints_disabled_total{reason="` + tt.reason + `"} 1`)
			w.expand(vote(uuid.New(), 1))
			w.waitFor(`select count(*) from deliveries where state in ('held', 'dead')`, 11)
		})
	}
}

// A delivery to an endpoint that was deleted in the meantime is cancelled.
func TestDeletedEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.receiver(ok)
	w.endpoint(r.URL)
	w.expand(vote(uuid.New(), 1))
	w.exec(`delete from webhook_endpoints`)
	w.start(w.config())
	w.waitFor(`select count(*) from deliveries where state = 'cancelled'`, 1)
	if r.count() != 0 {
		t.Error("a deleted endpoint got an event")
	}
}

// A delivery whose schedule is over is dead, and so is one that waited for too
// long; its attempts tell what happened.
func TestScheduleEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.receiver(func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(rw, "out of order")
	})
	w.endpoint(r.URL)
	w.expand(vote(uuid.New(), 1))
	cfg := w.config()
	cfg.Schedule = ledger.Schedule{time.Millisecond, time.Millisecond}
	w.start(cfg)
	w.waitFor(`select count(*) from deliveries where state = 'dead' and attempts = 3 and retries = 3 and last_status = 500 and last_class = '5xx' and done_at is not null`, 1)
	w.waitFor(`select count(*) from delivery_attempts where response = 'out of order' and status = 500`, 3)
	w.exec(`insert into deliveries (channel, lane, target, message_id, kind, body, not_after)
		select channel, lane, target, 'late', kind, body, now() - interval '1 second' from deliveries`)
	w.exec(`update lanes set open_until = null, failures = 0`)
	w.waitFor(`select count(*) from deliveries where message_id = 'late' and state = 'dead' and attempts = 0`, 1)
	if got := r.count(); got != 3 {
		t.Errorf("%d requests, want 3", got)
	}
}

// Connections to the database that break cost no delivery and repeat none.
func TestDatabaseBreaks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.receiver(ok)
	e := w.endpoint(r.URL, `in_flight = 16`)
	w.start(w.config())
	var want []string
	for i := range 30 {
		var events []webhook.Event
		for range 20 {
			event := vote(uuid.New(), 1)
			want = append(want, event.MessageID)
			events = append(events, event)
		}
		w.expand(events...)
		r.waitFor(i * 20)
		w.exec(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and application_name = 'worker'`)
	}
	r.waitFor(len(want))
	w.waitFor(`select count(*) from deliveries where state = 'done'`, len(want))
	r.sawOnce(want, e.secret)
	w.waitFor(`select count(*) from delivery_attempts`, len(want))
}

// During a rotation both secrets verify every request; the old one does not any
// more once its time is over.
func TestRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.receiver(ok)
	e := w.endpoint(r.URL)
	w.start(w.config())
	var before, during, turning, after []string
	tell := func(ids *[]string) {
		for range 20 {
			event := vote(uuid.New(), 1)
			*ids = append(*ids, event.MessageID)
			w.expand(event)
		}
		w.waitFor(`select count(*) from deliveries where state <> 'done'`, 0)
	}
	tell(&before)
	fresh := webhook.NewSecret()
	w.exec(`update webhook_endpoints set previous_secret = secret, previous_secret_until = now() + interval '1 day', secret = $2 where id = $1`,
		e.id, webhook.SealSecret(w.keys, e.id, fresh))
	tell(&turning) // by a pass, perhaps, that had read the secrets before; the next one has not
	tell(&during)
	w.exec(`update webhook_endpoints set previous_secret_until = now()`)
	tell(&turning)
	tell(&after)
	r.sawOnce(slices.Concat(before, during, turning, after), "")
	for _, tt := range []struct {
		what   string
		ids    []string
		secret string
		want   int
	}{
		{"before, the old one", before, e.secret, 20}, {"before, the new one", before, fresh, 0},
		{"during, the old one", during, e.secret, 20}, {"during, the new one", during, fresh, 20},
		{"after, the old one", after, e.secret, 0}, {"after, the new one", after, fresh, 20},
	} {
		if got := r.verified(tt.ids, tt.secret); got != tt.want {
			t.Errorf("%s: verifies %d of 20, want %d", tt.what, got, tt.want)
		}
	}
	r.verifiedByNode(map[string][]string{e.secret: slices.Concat(before, during), fresh: slices.Concat(during, after)})
}

// No byte of a person is in a request, a row, a log line or a metric.
func TestNobodyIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good, bad := w.receiver(ok), w.receiver(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadRequest) })
	w.endpoint(good.URL)
	w.endpoint(bad.URL)
	w.start(w.config())
	const canary = "canary"
	subject := func() event.Subject {
		return event.Subject{ReportID: uuid.New(), ReportVersion: 1, ReportTitle: "Pothole", ReporterID: canary, Timestamp: 1_700_000_000}
	}
	score := int64(3)
	for _, m := range []event.Message{
		&event.ReportCreated{Subject: subject(), CategoryID: 1, CategoryName: "Roads", ReporterName: canary, PrivacyLevel: event.Public},
		&event.StatusUpdate{Subject: subject(), NewStatus: event.Resolved},
		&event.VoteReceived{Subject: subject(), VoterID: canary, VoteType: event.Upvote, NewScore: &score},
	} {
		e, err := webhook.EventOf(uuid.NewString(), m)
		if err != nil {
			t.Fatal(err)
		}
		w.expand(e)
	}
	w.waitFor(`select count(*) from deliveries where state in ('done', 'dead')`, 6)
	seen := w.log.String() + w.metricsText()
	for _, r := range []*receiver{good, bad} {
		for _, request := range r.requests() {
			seen += string(request.body) + fmt.Sprint(request.header, request.url)
		}
	}
	for _, table := range []string{"deliveries", "delivery_attempts", "lanes", "webhook_endpoints", "processed_messages", "operations_audit"} {
		var rows string
		sql := `select coalesce(string_agg(t::text, ' '), '') from ` + table + ` t`
		if table == "deliveries" {
			sql = `select string_agg(t::text || convert_from(body, 'UTF8'), ' ') from deliveries t`
		}
		if err := w.pool.QueryRow(t.Context(), sql).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		seen += rows
	}
	if !strings.Contains(seen, "Pothole") {
		t.Error("the title is nowhere: this test looks at nothing")
	}
	if strings.Contains(seen, canary) {
		t.Errorf("a person is named: %s", seen)
	}
}

// Filters pick by type, category and area. What a message does not say is in no
// filter.
func TestFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := func(e webhook.Event, category int32, latitude, longitude float64) webhook.Event {
		e.CategoryID, e.Position = category, &webhook.Position{Latitude: latitude, Longitude: longitude}
		return e
	}
	unknown := vote(uuid.New(), 1)
	inside, outside := at(created(uuid.New()), 2, -6.9, 107.6), at(vote(uuid.New(), 1), 3, -6.9, 108.6)
	w.endpoint("https://all.test/")
	w.endpoint("https://types.test/", `event_types = '{report.created,report.status.updated}'`)
	w.endpoint("https://categories.test/", `category_ids = '{3,4}'`)
	w.endpoint("https://area.test/", `area = '{107.5,-7,107.7,-6.8}'`)
	w.endpoint("https://both.test/", `area = '{107.5,-7,107.7,-6.8}', category_ids = '{3}'`)
	w.expand(unknown, inside, outside)
	got := make(map[string][]string)
	rows, err := w.pool.Query(t.Context(), `select url, message_id from deliveries join webhook_endpoints e on target = e.id::text order by deliveries.id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var url, id string
		if err := rows.Scan(&url, &id); err != nil {
			t.Fatal(err)
		}
		got[url] = append(got[url], id)
	}
	want := map[string][]string{
		"https://all.test/":        {unknown.MessageID, inside.MessageID, outside.MessageID},
		"https://types.test/":      {inside.MessageID},
		"https://categories.test/": {outside.MessageID},
		"https://area.test/":       {inside.MessageID},
	}
	if !maps.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("written: %v, want %v", got, want)
	}
}

func ok(http.ResponseWriter, *http.Request) {}

// A world is a database with endpoints, and the receivers behind them.
type world struct {
	t       *testing.T
	pool    *pgxpool.Pool // of the test
	store   *postgres.DB
	keys    *event.Keyring
	log     syncBuffer
	metrics *prometheus.Registry
	roots   *x509.CertPool

	mu   sync.Mutex
	wake []func([]string)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	pool := pgtest.Notification(t)
	keys, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, pool: pool, store: postgres.New(pool, postgres.Options{}), keys: keys, metrics: prometheus.NewRegistry(), roots: x509.NewCertPool()}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log:\n%s", w.log.String())
		}
	})
	return w
}

// config is that of a worker with little patience.
func (w *world) config() ledger.Config {
	return ledger.Config{Concurrency: 32, Timeout: 5 * time.Second, Schedule: ledger.Schedule{5 * time.Minute}, DisableAfter: 120 * time.Hour}
}

// start starts a worker. Its connections are called worker.
func (w *world) start(cfg ledger.Config) (stop func()) {
	w.t.Helper()
	config := w.pool.Config()
	config.ConnConfig.RuntimeParams["application_name"] = "worker"
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(w.t.Context()), config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(pool.Close)
	store := postgres.New(pool, postgres.Options{})
	log := zerolog.New(&w.log)
	rules := webhook.Rules{AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	registry := prometheus.NewRegistry()
	w.mu.Lock()
	if w.wake == nil {
		registry = w.metrics
	}
	sender := webhook.NewSender(store.Endpoints, w.keys, webhook.NewClient(rules, nil, w.roots), registry, log)
	d := ledger.New(cfg, sender, store.Ledger, registry, log)
	w.wake = append(w.wake, d.Wake)
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := d.Run(ctx); err != nil {
			w.t.Errorf("Run: %v", err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	w.t.Cleanup(stop)
	return stop
}

// expand does what the consumer does with events.
func (w *world) expand(events ...webhook.Event) {
	w.t.Helper()
	_, lanes, err := w.store.Endpoints.Expand(w.t.Context(), webhook.Queue, events)
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wake := range w.wake {
		wake(lanes)
	}
}

type endpoint struct {
	id     uuid.UUID
	secret string
}

// endpoint registers an address. Each of sets is an assignment of SQL.
func (w *world) endpoint(address string, sets ...string) endpoint {
	w.t.Helper()
	e := endpoint{uuid.New(), webhook.NewSecret()}
	w.exec(`insert into webhook_endpoints (id, url, secret) values ($1, $2, $3)`, e.id, address, webhook.SealSecret(w.keys, e.id, e.secret))
	for _, set := range sets {
		w.exec(`update webhook_endpoints set `+set+` where id = $1`, e.id)
	}
	return e
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

// waitFor waits until the query of one number returns want.
func (w *world) waitFor(sql string, want int) {
	w.t.Helper()
	eventually.NothingMissing(w.t, sql, func() string {
		var got int
		if err := w.pool.QueryRow(w.t.Context(), sql).Scan(&got); err != nil {
			w.t.Fatalf("%s: %v", sql, err)
		}
		if got != want {
			return fmt.Sprintf("%d, want %d", got, want)
		}
		return ""
	})
}

func (w *world) waitForMetric(line string) {
	w.t.Helper()
	eventually.True(w.t, "metric "+line, func() bool { return strings.Contains(w.metricsText(), line) })
}

func (w *world) metricsText() string {
	w.t.Helper()
	families, err := w.metrics.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			w.t.Fatal(err)
		}
	}
	return text.String()
}

// A receiver is an endpoint's other side. It keeps every request.
type receiver struct {
	*httptest.Server
	t      *testing.T
	mu     sync.Mutex
	got    []request
	signal chan struct{} // closed and replaced with each request
}

type request struct {
	url    string
	header http.Header
	body   []byte
	status int
}

func (w *world) receiver(answer http.HandlerFunc) *receiver {
	w.t.Helper()
	r := &receiver{t: w.t, signal: make(chan struct{})}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the worker was cut off
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		r.mu.Lock()
		i := len(r.got)
		r.got = append(r.got, request{req.URL.String(), req.Header.Clone(), body, 0})
		r.mu.Unlock()
		status := &statusWriter{ResponseWriter: rw, status: http.StatusOK}
		answer(status, req)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got[i].status = status.status
		close(r.signal)
		r.signal = make(chan struct{})
	}))
	w.t.Cleanup(r.Close)
	w.roots.AddCert(r.Certificate())
	return r
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// waitFor waits until n requests were answered.
func (r *receiver) waitFor(n int) {
	r.t.Helper()
	deadline := time.After(eventually.Patience)
	for {
		r.mu.Lock()
		answered, signal := 0, r.signal
		for _, g := range r.got {
			if g.status != 0 {
				answered++
			}
		}
		r.mu.Unlock()
		if answered >= n {
			return
		}
		select {
		case <-signal:
		case <-deadline:
			r.t.Fatalf("%d requests answered, want %d", answered, n)
		}
	}
}

func (r *receiver) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func (r *receiver) count() int { return len(r.requests()) }

// sawOnce checks that each event came once, and verifies under the secret unless
// that is empty.
func (r *receiver) sawOnce(ids []string, secret string) {
	r.t.Helper()
	times := make(map[string]int)
	for _, got := range r.requests() {
		times[got.header.Get("Webhook-Id")]++
		if got.header.Get("Content-Type") != "application/json" || got.header.Get("User-Agent") != "CityConnect-Webhooks/1" {
			r.t.Errorf("headers are %v", got.header)
		}
	}
	lost, doubled := 0, 0
	for _, id := range ids {
		switch {
		case times[id] == 0:
			lost++
		case times[id] > 1:
			doubled++
		}
		delete(times, id)
	}
	if lost > 0 || doubled > 0 || len(times) > 0 {
		r.t.Errorf("of %d events %d are lost, %d doubled, and there are %d others", len(ids), lost, doubled, len(times))
	}
	if secret != "" {
		if got := r.verified(ids, secret); got != len(ids) {
			r.t.Errorf("%d of %d requests verify", got, len(ids))
		}
	}
}

// verified counts the requests of the events that the secret verifies.
func (r *receiver) verified(ids []string, secret string) (n int) {
	r.t.Helper()
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, got := range r.requests() {
		if slices.Contains(ids, got.header.Get("Webhook-Id")) && verifier.Verify(got.body, got.header) == nil {
			n++
		}
	}
	return n
}

// versions returns the versions of the report in the requests that were answered
// with status, in their order.
func (r *receiver) versions(report uuid.UUID, status int) (versions []int64) {
	for _, got := range r.requests() {
		var p struct {
			Data webhook.Report `json:"data"`
		}
		if json.Unmarshal(got.body, &p) == nil && p.Data.ReportID == report && got.status == status {
			versions = append(versions, p.Data.ReportVersion)
		}
	}
	return versions
}

// version returns the report's version in a request, whose body can be read again.
func version(r *http.Request) int64 {
	var p struct {
		Data webhook.Report `json:"data"`
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil || json.Unmarshal(body, &p) != nil {
		return 0
	}
	return p.Data.ReportVersion
}

func vote(report uuid.UUID, version int64) webhook.Event {
	score := int64(1)
	return mustEvent(&event.VoteReceived{
		Subject: event.Subject{ReportID: report, ReportVersion: version, ReportTitle: "Pothole", ReporterID: "ann", Timestamp: 1_700_000_000},
		VoterID: "bob", VoteType: event.Upvote, NewScore: &score,
	})
}

func created(report uuid.UUID) webhook.Event {
	return mustEvent(&event.ReportCreated{
		Subject:    event.Subject{ReportID: report, ReportVersion: 1, ReportTitle: "Pothole", Timestamp: 1_700_000_000},
		CategoryID: 1, CategoryName: "Roads", PrivacyLevel: event.Anonymous,
	})
}

func mustEvent(m event.Message) webhook.Event {
	e, err := webhook.EventOf(uuid.NewString(), m)
	if err != nil {
		panic(err)
	}
	return e
}

// A syncBuffer is a log that can be read while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
