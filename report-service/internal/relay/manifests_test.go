package relay_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/platform/testing/testlog"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
)

// Manifests in tests cover a moment, and are made soon.
const (
	testManifests = 500 * time.Millisecond
	testSettled   = 200 * time.Millisecond
)

// startWithManifests runs a relay that publishes manifests of short times until the test
// ends, or until stop.
func startWithManifests(t *testing.T, pool *pgxpool.Pool, url string) (stop func()) {
	t.Helper()
	r := relay.New(relay.Defaults(), relay.Dependencies{Pool: pool, Keys: testKeys, RabbitURL: url, Log: testlog.New(t), Metrics: prometheus.NewRegistry()})
	r.ManifestsEvery(testManifests, testSettled)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// manifests are those that arrived in a group's queue.
type manifests struct {
	mu  sync.Mutex
	all []event.Manifest
	err error
}

// receiveManifests binds a queue for manifests, and reads it until the test ends.
func receiveManifests(t *testing.T, url string) *manifests {
	t.Helper()
	conn, err := rabbit.Dial(t.Context(), rabbit.Config{URL: url, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	var names event.Topology
	queue := names.ManifestQueue("tests")
	err = errors.Join(
		rabbit.DeclareExchange(conn, names.Exchange(), amqp.ExchangeTopic),
		rabbit.DeclareQueue(conn, queue, amqp.Table{"x-queue-type": "quorum"}),
		rabbit.BindQueue(conn, queue, string(event.ManifestKey), names.Exchange()))
	if err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume(queue, "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := new(manifests)
	go func() { // it ends with the connection
		for d := range deliveries {
			one, err := event.DecodeManifest(d.Body)
			m.mu.Lock()
			m.all, m.err = append(m.all, one), errors.Join(m.err, err)
			m.mu.Unlock()
		}
	}()
	return m
}

// named returns how often each message is named, not counting a manifest that came twice.
// It fails if the manifests have a gap, overlap, or are not the same when they come twice.
func (m *manifests) named(t *testing.T) map[uuid.UUID]int {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		t.Fatal(m.err)
	}
	byNumber := make(map[int64]event.Manifest)
	named := make(map[uuid.UUID]int)
	for _, one := range m.all {
		if before, twice := byNumber[one.Number]; twice {
			if !before.From.Equal(one.From) || !before.Until.Equal(one.Until) || !bytes.Equal(before.Messages[event.VoteReceivedKey], one.Messages[event.VoteReceivedKey]) {
				t.Errorf("manifest %d came twice, and differs", one.Number)
			}
			continue
		}
		byNumber[one.Number] = one
		for _, ids := range one.Messages {
			for _, id := range ids.All() {
				named[id]++
			}
		}
	}
	for n := range int64(len(byNumber)) {
		one, there := byNumber[n+1]
		if !there {
			t.Errorf("of %d manifests, number %d is missing", len(byNumber), n+1)
		} else if before := byNumber[n]; n > 0 && !before.Until.Equal(one.From) {
			t.Errorf("manifest %d begins at %v, want %v, where the one before ended", n+1, one.From, before.Until)
		}
	}
	return named
}

// waitFirst returns once there is a manifest: none names what was published before the first.
func (m *manifests) waitFirst(t *testing.T) {
	t.Helper()
	eventually.True(t, "the first manifest", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.all) > 0
	})
}

// waitNamed returns once every one of rows is named.
func (m *manifests) waitNamed(t *testing.T, rows []outboxRow) {
	t.Helper()
	eventually.True(t, "manifests that name every message", func() bool {
		named := m.named(t)
		return !slices.ContainsFunc(rows, func(r outboxRow) bool { return named[r.id] == 0 })
	})
}

// Each published message is named once, in manifests without a gap, also when replicas die
// while they publish, record, and send manifests.
func TestManifestsNameWhatWasPublished(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.VoteReceivedKey)
	received := receiveManifests(t, url)
	var rows []outboxRow
	sent := func() (n int) {
		if err := pool.QueryRow(t.Context(), `select count(*) from outbox_manifests where sent_at is not null`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	stop := startWithManifests(t, pool, url)
	received.waitFirst(t)
	stop()
	for range 4 {
		c := startChild(t, pool.Config().ConnString(), url, 3*time.Second)
		more := newRows(50, 10)
		insertMany(t, pool, more)
		rows = append(rows, more...)
		before := sent()
		eventually.True(t, "another manifest", func() bool { return sent() > before })
		c.kill()
	}
	startWithManifests(t, pool, url)
	waitEmpty(t, pool)
	received.waitNamed(t, rows)
	for id, times := range received.named(t) {
		if times != 1 {
			t.Errorf("message %s is named %d times, want once", id, times)
		}
	}
	t.Logf("%d messages in %d manifests of 6 replicas, 4 of them killed", len(rows), sent())
}

// A record that commits late is named: no manifest ends after its begin before that.
func TestManifestsWaitForLateRecords(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	received := receiveManifests(t, url)
	late := newRow(uuid.New(), 1)
	insert(t, pool, late)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context())) // does nothing after the commit
	var began time.Time
	err = tx.QueryRow(t.Context(), `update outbox_messages set status = 'published', published_at = now() where id = $1 returning published_at`, late.id).Scan(&began)
	if err != nil {
		t.Fatal(err)
	}
	startWithManifests(t, pool, url)
	time.Sleep(4 * (testManifests + testSettled)) //nolint:forbidigo // in which manifests are not to be made
	var until *time.Time
	if err := pool.QueryRow(t.Context(), `select max(ends_at) from outbox_manifests`).Scan(&until); err != nil {
		t.Fatal(err)
	}
	if until != nil && until.After(began) {
		t.Errorf("a manifest ends at %v, which is after the begin of an open transaction, %v", *until, began)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	received.waitNamed(t, []outboxRow{late})
}

// A time with more messages than one manifest may name has several.
func TestManifestsAreBounded(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	received := receiveManifests(t, url)
	rows := newRows(3*event.MaxManifestIDs/2, 1)
	insertMany(t, pool, rows)
	// As batches would do it: a hundred have the same time.
	_, err := pool.Exec(t.Context(), `
		update outbox_messages m set status = 'published', published_at = now() + s.n / 100 * interval '1 microsecond'
		from (select id, row_number() over (order by id) as n from outbox_messages) s where s.id = m.id`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = pool.Exec(t.Context(), `
		insert into outbox_manifests (epoch, number, starts_at, ends_at, body)
		select 0, 1, m.at - interval '2 seconds', m.at - interval '1 second', convert_to(format(
		  '{"epoch": 0, "number": 1, "from": %s, "until": %s, "messages": {}}', to_json(m.at - interval '2 seconds'), to_json(m.at - interval '1 second')), 'UTF8')
		from (select min(published_at) as at from outbox_messages) m`)
	if err != nil {
		t.Fatal(err)
	}
	startWithManifests(t, pool, url)
	received.waitNamed(t, rows)
}

// A broker that has lost its disk gets the manifests again that it had.
func TestManifestsAreSentAgainToABrokerThatLostItsDisk(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	received := receiveManifests(t, url)
	stop := startWithManifests(t, pool, url)
	received.waitFirst(t)
	row := newRow(uuid.New(), 1)
	bindQueue(t, url, event.VoteReceivedKey)
	insert(t, pool, row)
	received.waitNamed(t, []outboxRow{row})
	stop()
	var names event.Topology
	conn, err := rabbit.Dial(t.Context(), rabbit.Config{URL: url, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.ExchangeDelete(names.OutboxExchange(), false, false); err != nil { // as with a new disk
		t.Fatal(err)
	}
	received.forget()
	startWithManifests(t, pool, url) // it finds a broker without the exchange
	eventually.True(t, "the first manifest again, and one that says what was lost", func() bool {
		received.mu.Lock()
		defer received.mu.Unlock()
		return slices.ContainsFunc(received.all, func(m event.Manifest) bool { return m.Number == 1 }) &&
			slices.ContainsFunc(received.all, func(m event.Manifest) bool { return !m.LostBefore.IsZero() })
	})
}

func (m *manifests) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = nil
}

// A manifest that was made while the server's clock was an hour ahead holds up none of those
// after it: what was published since is in one of them.
func TestManifestOfTheFutureEndsNow(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.VoteReceivedKey)
	received := receiveManifests(t, url)
	stop := startWithManifests(t, pool, url)
	received.waitFirst(t)
	stop()
	if _, err := pool.Exec(t.Context(), `
		insert into outbox_manifests (epoch, number, starts_at, ends_at, body, sent_at)
		select epoch, number + 1, ends_at, now() + interval '1 hour', body, now() from outbox_manifests order by number desc limit 1`); err != nil {
		t.Fatal(err)
	}
	startWithManifests(t, pool, url)
	rows := newRows(5, 5)
	insertMany(t, pool, rows)
	eventually.True(t, "manifests that name every message", func() bool {
		received.mu.Lock()
		defer received.mu.Unlock()
		named := make(map[uuid.UUID]bool)
		for _, m := range received.all {
			for _, id := range m.Messages[event.VoteReceivedKey].All() {
				named[id] = true
			}
		}
		return !slices.ContainsFunc(rows, func(r outboxRow) bool { return !named[r.id] })
	})
}
