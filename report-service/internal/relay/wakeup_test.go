package relay_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// neverPolling makes a relay read the outbox when it is woken, and otherwise not
// within the time of a test. A renewal of the lease would trigger a read, too.
func neverPolling(c *relay.Config) {
	c.PollMin, c.PollMax = time.Hour, time.Hour
	c.Lease = 6 * time.Hour
}

// A row that is committed through a replica that does not own its shard is published
// by the owner at once, although neither of them polls; also after one of them had
// to connect again.
func TestWakeAcrossReplicas(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.VoteReceivedKey)
	arrived := receive(t, url, event.VoteReceivedKey)
	proxy, throughProxy := proxied(t, url)
	one, other := startPair(t, pool, throughProxy, url)

	check := func() {
		one.awaitWakeups(t, other)
		other.awaitWakeups(t, one)
		for version := range int64(10) {
			for _, way := range []struct{ from, to quietReplica }{{one, other}, {other, one}} {
				row := newRow(way.to.report, version+1)
				insert(t, pool, row)
				way.from.Wake(shards.Set(0).Add(shards.Of(row.report)))
				arrived.wait(t, []outboxRow{row})
			}
		}
	}
	check()
	proxy.Stop()
	eventually.True(t, "the cut noticed", func() bool { return !one.State().Connected })
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "connected again", func() bool { return one.State().Connected })
	check()
}

// An operator who retries does not have to wait for the next poll.
func TestRetryWakes(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.VoteReceivedKey)
	arrived := receive(t, url, event.VoteReceivedKey)
	r := start(t, pool, url, neverPolling)
	store := outbox.NewStore(pool, r.Wake)
	for range 3 { // the first might be found by the read at the start
		rows := newRows(2, 1)
		for i := range rows {
			insertFailed(t, pool, rows[i])
		}
		if err := store.Retry(t.Context(), "otto", rows[0].id); err != nil {
			t.Fatal(err)
		}
		arrived.wait(t, rows[:1])
		if n, err := store.RetryAll(t.Context(), "otto", string(rows[1].key)); err != nil || n != 1 {
			t.Fatalf("RetryAll = %d, %v; want 1", n, err)
		}
		arrived.wait(t, rows)
	}
}

func insertFailed(t *testing.T, pool *pgxpool.Pool, row outboxRow) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `
		insert into outbox_messages (id, routing_key, payload, report_id, report_version, shard, headers, status, retry_count, last_error)
		values ($1, $2, $3, $4, $5, $6, $7, 'failed', 5, 'no queue')`, row.args()...)
	if err != nil {
		t.Fatal(err)
	}
}

// A relay that cannot exchange wake-ups publishes as before.
func TestRelayWithoutWakeups(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.VoteReceivedKey)
	onBroker(t, url, func(ch *amqp.Channel) error {
		return ch.ExchangeDeclare(event.Topology{}.WakeExchange(), "direct", true, false, false, false, nil)
	})
	arrived := receive(t, url, event.VoteReceivedKey)
	rows := newRows(20, 5)
	insertMany(t, pool, rows)
	r := start(t, pool, url)
	arrived.wait(t, rows)
	waitEmpty(t, pool)
	if s := r.State(); s.Connects != 1 {
		t.Errorf("%d connections, want the first one only", s.Connects)
	}
}

// A quietReplica never polls; report is in one of its shards.
type quietReplica struct {
	replica

	report uuid.UUID
}

// startPair runs two quiet replicas that own half of the shards each. A member
// that does nothing keeps the second half free, until the second relay is there
// to take it: the first would not come back for hours to hand it over.
func startPair(t *testing.T, pool *pgxpool.Pool, urls ...string) (one, other quietReplica) {
	t.Helper()
	placeholder := uuid.New()
	_, err := pool.Exec(t.Context(), `insert into relay_members (member, seen_until) values ($1, now() + interval '1 day')`, placeholder)
	if err != nil {
		t.Fatal(err)
	}
	one = startQuiet(t, pool, urls[0])
	if _, err := pool.Exec(t.Context(), `delete from relay_members where member = $1`, placeholder); err != nil {
		t.Fatal(err)
	}
	return one, startQuiet(t, pool, urls[1])
}

func startQuiet(t *testing.T, pool *pgxpool.Pool, url string) quietReplica {
	t.Helper()
	s := quietReplica{replica: start(t, pool, url, neverPolling)}
	eventually.True(t, "half of the shards", func() bool { return shares(t, pool)[s.State().ID] == 8 })
	s.report = s.ownReport(t, pool)
	return s
}

// ownReport returns a new report in a shard of s.
func (s quietReplica) ownReport(t *testing.T, pool *pgxpool.Pool) uuid.UUID {
	t.Helper()
	for {
		var owner uuid.UUID
		report := uuid.New()
		err := pool.QueryRow(t.Context(), `select owner from relay_shards where shard = $1`, shards.Of(report)).Scan(&owner)
		if err != nil {
			t.Fatal(err)
		}
		if owner == s.State().ID {
			return report
		}
	}
}

// awaitWakeups returns once other receives wake-ups of s: earlier ones are lost.
func (s quietReplica) awaitWakeups(t *testing.T, other quietReplica) {
	t.Helper()
	before := other.wakeups(t)
	eventually.True(t, "wake-ups to arrive", func() bool {
		s.Wake(shards.Set(0).Add(shards.Of(other.report)))
		return other.wakeups(t) > before
	})
}

// wakeups is how many of them s received from other replicas.
func (s quietReplica) wakeups(t *testing.T) float64 {
	t.Helper()
	families, err := s.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "relay_wakeups_received_total" {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatal("no such metric")
	return 0
}
