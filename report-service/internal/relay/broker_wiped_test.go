package relay_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// A broker loses its disk, and with it a backlog that nobody had consumed. All
// of it is published again. A broker that is new to us, and one that only restarted,
// have lost nothing.
func TestBrokerThatLostItsDisk(t *testing.T) {
	t.Parallel()
	server := rabbittest.StartServer(t)
	pool, url := pgtest.Report(t), server.URL()
	bindQueue(t, url, event.VoteReceivedKey)
	old := newRows(10, 1) // an earlier version has published them, to a broker that it did not know
	insertMany(t, pool, old)
	if _, err := pool.Exec(t.Context(), `update outbox_messages set status = 'published', published_at = now()`); err != nil {
		t.Fatal(err)
	}
	start(t, pool, url)
	start(t, pool, url) // the one that does not put back waits for the other
	known := func() bool {
		var n int
		return pool.QueryRow(t.Context(), `select count(*) from known_brokers`).Scan(&n) == nil && n == 1
	}
	eventually.True(t, "the broker is known", known)
	rows := newRows(100, 20)
	insertMany(t, pool, rows)
	waitEmpty(t, pool)
	if n := countMessages(t, url); n != len(rows) {
		t.Fatalf("the queue has %d messages, want %d: a broker that is new to us has lost nothing", n, len(rows))
	}

	server.Stop()
	server.Start()
	later := newRow(uuid.New(), 1)
	insert(t, pool, later)
	rows = append(rows, later)
	eventually.True(t, "the relay publishes again", func() bool { return countMessages(t, url) >= len(rows) })
	waitEmpty(t, pool)
	if n := countMessages(t, url); n != len(rows) {
		t.Fatalf("after a restart the queue has %d messages, want %d", n, len(rows))
	}

	server.Destroy()
	for _, r := range rows[:100] {
		next := newRow(r.report, 21)
		insert(t, pool, next)
		rows = append(rows, next)
	}
	// The relays wait for this table, until the queue is there again: what is
	// returned for want of a queue may be overtaken.
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context())) // does nothing after the commit
	if _, err := tx.Exec(t.Context(), `lock table known_brokers in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	server.Start()
	bindQueue(t, url, event.VoteReceivedKey)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	arrived := receive(t, url, event.VoteReceivedKey)
	arrived.wait(t, append(old, rows...))
	waitEmpty(t, pool)
	if _, doubled, _ := arrived.figures(); doubled != 0 {
		t.Errorf("%d messages came twice", doubled)
	}
}

// While a long history is republished to a broker that lost its disk, new rows are
// published before most of it. The replica that republishes is replaced in the middle.
func TestPresentGoesBeforeLostHistory(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.VoteReceivedKey)
	rows := newRows(2_000, 10)
	insertMany(t, pool, rows)
	_, err := pool.Exec(t.Context(), `
		update outbox_messages set status = 'published', published_at = now() - interval '1 hour' + seq * interval '1 millisecond'`)
	if err != nil {
		t.Fatal(err)
	}
	// The broker is known, and lacks the exchange.
	if _, err := pool.Exec(t.Context(), `insert into known_brokers (exchange) values ($1)`, event.Topology{}.OutboxExchange()); err != nil {
		t.Fatal(err)
	}
	arrived := receive(t, url, event.VoteReceivedKey)
	first := start(t, pool, url)
	var behind []int
	for n := range 10 {
		eventually.True(t, "republishing goes on", func() bool {
			seen, _, _ := arrived.figures()
			return seen > n*len(rows)/20
		})
		if n == 5 {
			if err := first.stop(); err != nil {
				t.Fatal(err)
			}
			start(t, pool, url)
		}
		present := newRow(uuid.New(), 1)
		before, _, _ := arrived.figures()
		insert(t, pool, present)
		arrived.wait(t, []outboxRow{present})
		after, _, _ := arrived.figures()
		behind = append(behind, after-before)
		rows = append(rows, present)
	}
	half, _, _ := arrived.figures()
	arrived.wait(t, rows)
	waitEmpty(t, pool)
	seen, doubled, _ := arrived.figures()
	t.Logf("%d rows republished; new rows were published behind %v of them, the last one when %d were", len(rows)-10, behind, half)
	if seen != len(rows) {
		t.Errorf("%d messages came, %d twice; want each of %d", seen, doubled, len(rows))
	}
	for _, n := range behind {
		if n > 3000 {
			t.Errorf("a new row was published behind %d republished ones, want a portion or two", n)
		}
	}
	eventually.True(t, "the loss is settled", func() bool {
		var settled bool
		return pool.QueryRow(t.Context(), `select republish_before is null from known_brokers`).Scan(&settled) == nil && settled
	})
}

// Two replicas find a broker that is new to them at the same moment. One that
// is a step behind does not take what the other has noted for a loss.
func TestReplicasMeetANewBroker(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.VoteReceivedKey)
	insertMany(t, pool, newRows(10, 1))
	if _, err := pool.Exec(t.Context(), `update outbox_messages set status = 'published', published_at = now()`); err != nil {
		t.Fatal(err)
	}
	// The acts of the other replica, in one moment of the one that is started here.
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context())) // does nothing after the commit
	if _, err := tx.Exec(t.Context(), `lock table known_brokers in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	start(t, pool, url)
	eventually.True(t, "the replica looks for the broker", func() bool {
		var waits bool
		err := pool.QueryRow(t.Context(), `
			select exists (select from pg_locks where relation = 'known_brokers'::regclass and not granted)`).Scan(&waits)
		return err == nil && waits
	})
	exchange := event.Topology{}.OutboxExchange()
	conn, err := rabbit.Dial(t.Context(), rabbit.Config{URL: url, Name: "other replica"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := rabbit.DeclareExchange(conn, exchange, amqp.ExchangeFanout); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `insert into known_brokers (exchange) values ($1)`, exchange); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	row := newRow(uuid.New(), 1)
	insert(t, pool, row)
	arrived := receive(t, url, event.VoteReceivedKey)
	arrived.wait(t, []outboxRow{row})
	waitEmpty(t, pool)
	if seen, _, _ := arrived.figures(); seen != 1 {
		t.Errorf("%d messages were published, want the new one alone", seen)
	}
}

// countMessages returns how many messages wait in the queue of votes, or -1
// while the broker is away.
func countMessages(t *testing.T, url string) int {
	t.Helper()
	conn, err := rabbit.Dial(t.Context(), rabbit.Config{URL: url, Name: "count", Heartbeat: time.Second})
	if err != nil {
		return -1
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return -1
	}
	q, err := ch.QueueDeclarePassive(event.Topology{}.Queue(event.VoteReceivedKey), true, false, false, false, nil)
	if err != nil {
		return -1
	}
	return q.Messages
}
