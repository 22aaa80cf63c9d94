package relay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/testlog"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// testTimeout bounds a wait for what must happen; it is never measured.
const testTimeout = 4 * time.Minute

// testKeys open what the relays of all tests seal.
var testKeys = func() *event.Keyring {
	keys, err := event.ParseKeyring(event.NewKey("k1"))
	if err != nil {
		panic(err)
	}
	return keys
}()

// outboxRow is what a test writes.
type outboxRow struct {
	id      uuid.UUID
	report  uuid.UUID
	version int64
	key     event.Key
	payload string
	headers string
}

// newRows makes n rows each of so many reports, interleaved as commits would be.
func newRows(reports, each int) []outboxRow {
	ids := make([]uuid.UUID, reports)
	for i := range ids {
		ids[i] = uuid.New()
	}
	var rows []outboxRow
	for version := range each {
		for _, id := range ids {
			rows = append(rows, newRow(id, int64(version+1)))
		}
	}
	return rows
}

func newRow(report uuid.UUID, version int64) outboxRow {
	return outboxRow{
		id: uuid.Must(uuid.NewV7()), report: report, version: version, key: event.VoteReceivedKey,
		payload: fmt.Sprintf(`{"report_id": %q, "report_version": %d}`, report, version), headers: `{}`,
	}
}

const insertSQL = `
	insert into outbox_messages (id, routing_key, payload, report_id, report_version, shard, headers)
	values ($1, $2, $3, $4, $5, $6, $7)`

func (r outboxRow) args() []any {
	return []any{r.id, string(r.key), r.payload, r.report, r.version, shards.Of(r.report), r.headers}
}

// insert writes rows one after the other, each in its own transaction.
func insert(t testing.TB, pool *pgxpool.Pool, rows ...outboxRow) {
	t.Helper()
	for _, r := range rows {
		if _, err := pool.Exec(t.Context(), insertSQL, r.args()...); err != nil {
			t.Fatalf("insert outbox row: %v", err)
		}
	}
}

// insertMany writes rows in a few statements.
func insertMany(t testing.TB, pool *pgxpool.Pool, rows []outboxRow) {
	t.Helper()
	for len(rows) > 0 {
		n := min(len(rows), 1000)
		var ids, reports []uuid.UUID
		var keys, payloads []string
		var versions []int64
		var numbers []int16
		for _, r := range rows[:n] {
			ids, reports, keys = append(ids, r.id), append(reports, r.report), append(keys, string(r.key))
			payloads, versions, numbers = append(payloads, r.payload), append(versions, r.version), append(numbers, shards.Of(r.report))
		}
		_, err := pool.Exec(context.WithoutCancel(t.Context()), `
			insert into outbox_messages (id, routing_key, payload, report_id, report_version, shard)
			select * from unnest($1::uuid[], $2::text[], $3::jsonb[], $4::uuid[], $5::bigint[], $6::smallint[])`,
			ids, keys, payloads, reports, versions, numbers)
		if err != nil {
			t.Fatalf("insert outbox rows: %v", err)
		}
		rows = rows[n:]
	}
}

// bindQueue makes the queues that take messages of keys, and binds them.
func bindQueue(t testing.TB, url string, keys ...event.Key) {
	t.Helper()
	eventually.True(t, "bound queues", func() bool {
		err := bindQueues(t.Context(), url, keys)
		if err != nil {
			t.Logf("bind queues, again: %v", err) // a busy broker answers too late
		}
		return err == nil
	})
}

// bindQueues waits for each answer as long as the broker takes. A declaration
// that is given up goes on in the broker, which deletes a quorum queue that has
// no leader after 5 s: even if a later declaration was answered that the queue
// exists.
func bindQueues(ctx context.Context, url string, keys []event.Key) error {
	conn, err := rabbit.Dial(ctx, rabbit.Config{URL: url, Name: "test"})
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	var topology event.Topology
	if err := ch.ExchangeDeclare(topology.Exchange(), "topic", true, false, false, false, nil); err != nil {
		return err
	}
	for _, key := range keys {
		queue := topology.Queue(key)
		if _, err := ch.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
			return err
		}
		if err := ch.QueueBind(queue, string(key), topology.Exchange(), false, nil); err != nil {
			return err
		}
	}
	return nil
}

// A replica is a relay that runs in the test's process.
type replica struct {
	*relay.Relay
	metrics *prometheus.Registry
	stop    func() error // waits until it has drained
}

// patiently takes no stall of the machine for a fault, after which a relay publishes
// again what was not confirmed.
func patiently(c *relay.Config) { c.Lease, c.ConfirmTimeout = testTimeout, testTimeout }

// start runs a relay until the test ends, or until stop.
func start(t testing.TB, pool *pgxpool.Pool, url string, tune ...func(*relay.Config)) replica {
	t.Helper()
	cfg := relay.Defaults()
	for _, f := range tune {
		f(&cfg)
	}
	metrics := prometheus.NewRegistry()
	r := relay.New(cfg, relay.Dependencies{Pool: pool, Keys: testKeys, RabbitURL: url, Log: testlog.New(t), Metrics: metrics})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	var result error
	go func() {
		defer close(ended)
		result = r.Run(ctx)
	}()
	stop := func() error {
		cancel()
		select {
		case <-ended:
			return result
		case <-time.After(testTimeout):
			return errors.New("the relay does not stop")
		}
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return replica{r, metrics, stop}
}

// waitEmpty returns once no row is pending.
func waitEmpty(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	eventually.True(t, "an outbox without pending rows", func() bool { return countRows(t, pool, "pending") == 0 })
}

// countRows returns how many rows have a status, or -1 while the database is away.
func countRows(t testing.TB, pool *pgxpool.Pool, status string) int {
	t.Helper()
	var n int
	ctx := context.WithoutCancel(t.Context())
	if err := pool.QueryRow(ctx, `select count(*) from outbox_messages where status = $1`, status).Scan(&n); err != nil {
		return -1
	}
	return n
}
