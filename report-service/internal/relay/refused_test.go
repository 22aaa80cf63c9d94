package relay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
)

// retryQuickly makes attempts follow each other quickly.
func retryQuickly(c *relay.Config) {
	c.RetryMin, c.RetryMax = 10*time.Millisecond, 20*time.Millisecond
}

// oversizeHeaders cannot be published.
var oversizeHeaders = fmt.Sprintf(`{%q: %q}`, event.RecipientHeader, strings.Repeat("x", rabbit.MaxHeaders))

// A row that can never be published fails alone, after its attempts; the rest flows,
// the later rows of its report included.
func TestPoisonFailsAlone(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*outboxRow){
		"oversize body":   func(r *outboxRow) { r.payload = fmt.Sprintf(`{"x": %q}`, strings.Repeat("x", rabbit.MaxBody)) },
		"oversize header": func(r *outboxRow) { r.headers = oversizeHeaders },
		"unknown key":     func(r *outboxRow) { r.key = "report.unheard.of" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, url := pgtest.Report(t), rabbittest.Vhost(t)
			bindQueue(t, url, event.VoteReceivedKey)
			arrived := receive(t, url, event.VoteReceivedKey)
			rows := newRows(20, 10)
			poison := newRow(rows[0].report, 0)
			spoil(&poison)
			insert(t, pool, append([]outboxRow{poison}, rows...)...)

			start(t, pool, url, retryQuickly)
			arrived.wait(t, rows)
			waitEmpty(t, pool)
			_, doubled, inverted := arrived.figures()
			if doubled != 0 || inverted != 0 {
				t.Errorf("%d doubled, %d inverted, want none", doubled, inverted)
			}
			wantFailed(t, pool, poison.id)
		})
	}
}

func wantFailed(t *testing.T, pool *pgxpool.Pool, id uuid.UUID) {
	t.Helper()
	var attempts int
	var reason string
	err := pool.QueryRow(t.Context(), `
		select retry_count, last_error from outbox_messages
		where id = $1 and status = 'failed' and next_attempt_at is null`, id).Scan(&attempts, &reason)
	if err != nil || attempts != 5 || reason == "" {
		t.Errorf("poison row: %d attempts, reason %q (error %v); want failed after 5 with a reason", attempts, reason, err)
	}
	if failed := countRows(t, pool, "failed"); failed != 1 {
		t.Errorf("%d rows failed, want the poison alone", failed)
	}
}

// While a refused row waits for its next attempt, the later rows of its report
// wait behind it, and other reports do not.
func TestLaterRowsWait(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.VoteReceivedKey)
	arrived := receive(t, url, event.VoteReceivedKey)
	first, other := newRow(uuid.New(), 1), newRow(uuid.New(), 1)
	first.headers = oversizeHeaders // until they are replaced below
	later := newRow(first.report, 2)
	insert(t, pool, first, later, other)
	start(t, pool, url, func(c *relay.Config) { c.RetryMin, c.MaxAttempts = 300*time.Millisecond, 1000 })

	arrived.wait(t, []outboxRow{other})
	eventually.True(t, "some attempts", func() bool {
		var attempts int
		_ = pool.QueryRow(t.Context(), `select retry_count from outbox_messages where id = $1`, first.id).Scan(&attempts)
		return attempts >= 3
	})
	if arrived.missing([]outboxRow{later}) == 0 {
		t.Error("the later row overtook the refused one")
	}
	if _, err := pool.Exec(t.Context(), `update outbox_messages set headers = '{}' where id = $1`, first.id); err != nil {
		t.Fatal(err)
	}
	arrived.wait(t, []outboxRow{first, later})
	if _, _, inverted := arrived.figures(); inverted != 0 {
		t.Errorf("%d inverted, want 0", inverted)
	}
}

// With the exchange deleted and declared again without its bindings, every
// message comes back. The circuit opens, no row fails, and all arrive in the
// end.
func TestExchangeDeleted(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.VoteReceivedKey, event.StatusUpdatedKey)
	arrived := receive(t, url, event.VoteReceivedKey)
	stopWriting := writeSteadily(t, pool)
	r := start(t, pool, url, retryQuickly)
	eventually.True(t, "flow", func() bool { seen, _, _ := arrived.figures(); return seen > 100 })

	onBroker(t, url, func(ch *amqp.Channel) error {
		return ch.ExchangeDelete(event.Topology{}.Exchange(), false, false)
	})
	eventually.True(t, "the circuit of votes to open", func() bool { return r.State().OpenCircuits[string(event.VoteReceivedKey)] != "" })
	if r.Probe(t.Context()) == nil {
		t.Error("the health check reports no fault")
	}
	eventually.True(t, "several tries", func() bool { return countRows(t, pool, "pending") > 500 })
	bindQueue(t, url, event.VoteReceivedKey, event.StatusUpdatedKey)
	rows := stopWriting()
	arrived.wait(t, rows)
	waitEmpty(t, pool)
	_, doubled, inverted := arrived.figures()
	failed := countRows(t, pool, "failed")
	t.Logf("%d rows: 0 lost, %d failed, %d inverted, %d published twice", len(rows), failed, inverted, doubled)
	if s := r.State(); s.Returned == 0 || s.Nacked != 0 {
		t.Errorf("%d returned and %d nacked, want returned ones only", s.Returned, s.Nacked)
	}
	if failed != 0 || inverted != 0 || len(r.State().OpenCircuits) != 0 {
		t.Errorf("%d failed, %d inverted, want none; still open: %v", failed, inverted, r.State().OpenCircuits)
	}
}

// A queue that is full refuses with nacks. The circuit of its routing
// key opens, the others stay closed, and no row fails.
func TestFullQueueSparesOthers(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.StatusUpdatedKey)
	var topology event.Topology
	full := topology.Queue(event.VoteReceivedKey)
	onBroker(t, url, func(ch *amqp.Channel) error {
		args := amqp.Table{"x-max-length": 10, "x-overflow": "reject-publish"}
		if _, err := ch.QueueDeclare(full, true, false, false, false, args); err != nil {
			return err
		}
		return ch.QueueBind(full, string(event.VoteReceivedKey), topology.Exchange(), false, nil)
	})
	updates := receive(t, url, event.StatusUpdatedKey)
	votes := newRows(50, 4)
	statuses := newRows(50, 4)
	for i := range statuses {
		statuses[i].key = event.StatusUpdatedKey
	}
	insertMany(t, pool, votes)
	r := start(t, pool, url, retryQuickly)
	eventually.True(t, "the circuit of votes to open", func() bool { return r.State().OpenCircuits[string(event.VoteReceivedKey)] != "" })
	insertMany(t, pool, statuses)
	updates.wait(t, statuses)

	arrived := receive(t, url, event.VoteReceivedKey) // makes room
	arrived.wait(t, votes)
	waitEmpty(t, pool)
	_, doubled, inverted := arrived.figures()
	t.Logf("%d votes to a full queue, %d statuses beside them: 0 failed, %d inverted, %d published twice",
		len(votes), len(statuses), inverted, doubled)
	if s := r.State(); s.Nacked == 0 || s.Returned != 0 {
		t.Errorf("%d returned and %d nacked, want nacked ones only", s.Returned, s.Nacked)
	}
	if failed := countRows(t, pool, "failed"); failed != 0 {
		t.Errorf("%d rows failed, want none", failed)
	}
}

// A queue that nobody has declared, because its consumer was never started,
// holds up its own messages alone: those of the same reports that go elsewhere
// flow on, also behind rows that were refused before the circuit opened. Once
// the queue is there everything arrives, and nothing has failed.
func TestMissingQueueSparesOtherKeysOfItsReports(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.StatusUpdatedKey)
	updates := receive(t, url, event.StatusUpdatedKey)
	var uploads, statuses []outboxRow
	for range 5 {
		upload := newRow(uuid.New(), 1)
		upload.key = event.PhotoUploadedKey
		status := newRow(upload.report, 2)
		status.key = event.StatusUpdatedKey
		uploads, statuses = append(uploads, upload), append(statuses, status)
	}
	insertMany(t, pool, uploads)
	r := start(t, pool, url, retryQuickly)
	eventually.True(t, "the circuit of uploads to open", func() bool { return r.State().OpenCircuits[string(event.PhotoUploadedKey)] != "" })
	insertMany(t, pool, statuses)
	updates.wait(t, statuses)
	if pending := countRows(t, pool, "pending"); pending < len(uploads) {
		t.Errorf("%d rows are pending, want the %d of the missing queue", pending, len(uploads))
	}

	bindQueue(t, url, event.PhotoUploadedKey)
	arrived := receive(t, url, event.PhotoUploadedKey)
	arrived.wait(t, uploads)
	waitEmpty(t, pool)
	if failed := countRows(t, pool, "failed"); failed != 0 {
		t.Errorf("%d rows failed, want none", failed)
	}
}

// A service that is started again and again before the consumer has declared its
// queue, as in a new installation, spends no attempts on what waits for it.
func TestMissingQueueCostsNoAttempts(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	upload := newRow(uuid.New(), 1)
	upload.key = event.PhotoUploadedKey
	insert(t, pool, upload)
	for range relay.Defaults().MaxAttempts { // it is refused each time until the circuit opens
		r := start(t, pool, url, retryQuickly)
		eventually.True(t, "the circuit of uploads to open", func() bool {
			return r.State().OpenCircuits[string(event.PhotoUploadedKey)] != "" || countRows(t, pool, "failed") > 0
		})
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
	if pending, failed := countRows(t, pool, "pending"), countRows(t, pool, "failed"); pending != 1 || failed != 0 {
		t.Fatalf("%d rows are pending and %d failed, want the upload pending", pending, failed)
	}
	bindQueue(t, url, event.PhotoUploadedKey)
	arrived := receive(t, url, event.PhotoUploadedKey)
	start(t, pool, url, retryQuickly)
	arrived.wait(t, []outboxRow{upload})
	waitEmpty(t, pool)
}

// onBroker changes something at the broker while the relay runs.
func onBroker(t testing.TB, url string, do func(*amqp.Channel) error) {
	t.Helper()
	conn, err := rabbit.Dial(t.Context(), rabbit.Config{URL: url, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err == nil {
		err = do(ch)
	}
	if err != nil {
		t.Fatal(err)
	}
}
