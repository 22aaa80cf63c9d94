package reconciliation

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/platform/testing/testlog"
)

const (
	testGroup = "tests"
	testQueue = "queue.tests"
)

// A harness is a group whose checks are made when the test says so.
type harness struct {
	*Reconciler
	t       *testing.T
	pool    *pgxpool.Pool
	emptyAt time.Time
	last    time.Time // end of the last manifest
	number  int64
	epoch   int64
}

func newHarness(t *testing.T, url string) *harness {
	t.Helper()
	h := &harness{t: t, pool: pgtest.Notification(t), emptyAt: time.Now().Add(time.Hour), last: time.Now().Add(-time.Hour)}
	h.Reconciler = New(Group{
		Name: testGroup, Queues: []Queue{{testQueue, []event.Key{event.VoteReceivedKey}}},
		EmptyAt: func(string) time.Time { return h.emptyAt }, After: 5 * time.Minute,
	}, Dependencies{
		Database: h.pool, Rabbit: rabbit.Config{URL: url, Name: "test", Log: testlog.New(t)},
		Metrics: NewMetrics(prometheus.NewRegistry()), Log: testlog.New(t),
	})
	h.exec(`insert into reconciliation_starts (consumer_group, restores, started_at) values ($1, 0, now() - interval '1 day')`, testGroup)
	return h
}

func (h *harness) exec(sql string, args ...any) {
	h.t.Helper()
	if _, err := h.pool.Exec(h.t.Context(), sql, args...); err != nil {
		h.t.Fatal(err)
	}
}

// next returns the next manifest, of so many votes.
func (h *harness) next(votes int) (m event.Manifest, ids []uuid.UUID) {
	h.t.Helper()
	for range votes {
		ids = append(ids, uuid.Must(uuid.NewV7()))
	}
	h.number++
	m = event.Manifest{Epoch: h.epoch, Number: h.number, From: h.last, Until: h.last.Add(time.Minute), Messages: map[event.Key]event.IDs{
		event.VoteReceivedKey: event.NewIDs(ids), event.ReportCreatedKey: event.NewIDs([]uuid.UUID{uuid.New()}), // not for the group
	}}
	h.last = m.Until
	return m, ids
}

// receive takes in m.
func (h *harness) receive(m event.Manifest) {
	h.t.Helper()
	body, err := json.Marshal(m)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.store.receive(h.t.Context(), m, body, time.Hour); err != nil {
		h.t.Fatal(err)
	}
}

// process notes that messages had their effects.
func (h *harness) process(ids ...uuid.UUID) {
	h.t.Helper()
	h.exec(`insert into processed_messages (consumer, message_id) select $1, id::text from unnest($2::uuid[]) as m (id)`, testQueue, ids)
}

// check makes the check of manifest number as if it was due, n times, and returns the state after
// it and the missing messages.
func (h *harness) check(number int64, n int) (state State, missing []uuid.UUID) {
	h.t.Helper()
	for range n {
		h.exec(`update reconciliation_manifests set check_at = case when epoch = $1 and number = $2 then now() else check_at + interval '1 hour' end
			where check_at is not null`, h.epoch, number)
		if _, err := h.Check(h.t.Context()); err != nil {
			h.t.Fatal(err)
		}
	}
	err := h.pool.QueryRow(h.t.Context(), `select state, missing from reconciliation_manifests where epoch = $1 and number = $2`, h.epoch, number).
		Scan(&state, &missing)
	if err != nil {
		h.t.Fatal(err)
	}
	return state, missing
}

// figures checks the figures, except how late the last manifest is.
func (h *harness) wantFigures(missing, unknown, gap int64) {
	h.t.Helper()
	got, err := h.Figures(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	if got.Missing != missing || got.Unknown != unknown || got.Gap != gap {
		h.t.Errorf("missing, unknown and gap are %d, %d, %d, want %d, %d, %d", got.Missing, got.Unknown, got.Gap, missing, unknown, gap)
	}
}

// A message whose effect is not there is named, and only that one: those with an effect,
// dead letters in every state and parked messages are accounted for.
func TestMissingMessageIsNamed(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "")
	m, ids := h.next(20)
	h.receive(m)
	for i, state := range []string{"open", "replaying", "resolved", "discarded"} {
		h.exec(`insert into dead_letters (queue, message_id, type, body, properties, headers, error_class, error, error_group, first_failed_at, failed_at, state)
			values ($1, $2, 'report.vote.received', '', '{}', '{}', 'transient', 'x', 'x', now(), now(), $3)`, testQueue, ids[i].String(), state)
	}
	h.exec(`insert into delayed_messages (queue, message_id, type, due_at, body, properties, headers)
		values ($1, $2, 'report.vote.received', now() + interval '1 hour', '', '{}', '{}')`, testQueue, ids[4].String())
	h.process(ids[5:]...)
	h.exec(`delete from processed_messages where message_id = $1`, ids[12].String())

	if state, missing := h.check(1, len(h.waits)-1); state != Waiting || !slices.Equal(missing, ids[12:13]) {
		t.Errorf("before the last check it is %s, without %v, want waiting, without %v", state, missing, ids[12])
	}
	h.wantFigures(0, 0, 0)
	if state, missing := h.check(1, 1); state != Missing || !slices.Equal(missing, ids[12:13]) {
		t.Errorf("after the last check it is %s, without %v, want missing, without %v", state, missing, ids[12])
	}
	h.wantFigures(1, 0, 0)
	h.process(ids[12]) // it was published again
	if state, missing := h.check(1, 1); state != Complete || len(missing) != 0 {
		t.Errorf("when it has come it is %s, without %v, want complete", state, missing)
	}
	h.wantFigures(0, 0, 0)
	if left := h.count(`select count(*) from reconciliation_manifests where body is not null or check_at is not null`); left != 0 {
		t.Error("a complete manifest keeps its body, or will be checked again")
	}
}

func (h *harness) count(sql string, args ...any) (n int) {
	h.t.Helper()
	if err := h.pool.QueryRow(h.t.Context(), sql, args...).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// Messages that may still wait in the queue are not missing, nor those that nobody could
// handle because everything stood still.
func TestWhatMayStillComeIsNotMissing(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "")
	m, ids := h.next(3)
	h.receive(m)
	h.emptyAt = time.Now().Add(-2 * emptyFor)
	if state, _ := h.check(1, 2*len(h.waits)); state != Waiting {
		t.Errorf("while its queue is not empty it is %s, want waiting", state)
	}
	h.emptyAt = time.Now().Add(time.Hour)
	h.exec(`insert into message_starts (queue, message_id, starts) values ($1, $2, 0)`, testQueue, ids[1].String())
	if state, _ := h.check(1, 2*len(h.waits)); state != Waiting {
		t.Errorf("while its consumer puts one off it is %s, want waiting", state)
	}
	h.exec(`update message_starts set started_at = now() - $1::interval`, putOffFor)
	h.exec(`update reconciliation_manifests set check_at = now() - 2 * $1::interval`, late)
	if _, err := h.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.wantFigures(0, 0, 0)
	if state, missing := h.check(1, 1); state != Missing || len(missing) != 3 {
		t.Errorf("at last it is %s, without %d messages, want missing, without 3", state, len(missing))
	}
}

// A manifest that does not come is a gap, after a while; one that comes twice counts once.
func TestLostManifestIsAGap(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "")
	first, _ := h.next(0)
	h.next(0)
	h.next(0)
	fourth, _ := h.next(0)
	for range 2 {
		h.receive(fourth)
		h.receive(first)
	}
	h.wantFigures(0, 0, 0)
	h.exec(`update reconciliation_manifests set received_at = received_at - $1::interval - interval '1 second'`, gapGrace)
	h.wantFigures(0, 0, 2)
}

// After a restore of the group's database, messages that were handled since the backup
// and manifests that were received since are unknown; what comes then is checked.
func TestRestoreOfTheGroupIsUnknown(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "")
	before, _ := h.next(2)
	h.receive(before)
	h.next(2) // received after the backup
	h.exec(`insert into database_origin (origin, restores) values ('test', 1) on conflict (one) do update set restores = 1`)
	if err := h.store.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.last = time.Now().Add(time.Second)
	after, ids := h.next(2)
	h.receive(after)
	h.process(ids[0])
	h.exec(`update reconciliation_manifests set received_at = received_at - $1::interval - interval '1 second'`, gapGrace)
	if state, missing := h.check(1, len(h.waits)); state != Unknown || len(missing) != 2 {
		t.Errorf("from before the restore it is %s, without %d messages, want unknown, without 2", state, len(missing))
	}
	h.wantFigures(0, 2, 0)
	if state, missing := h.check(3, len(h.waits)); state != Missing || !slices.Equal(missing, ids[1:]) {
		t.Errorf("from after the restore it is %s, without %v, want missing, without %v", state, missing, ids[1:])
	}
}

// After a restore of the publisher's database, its numbers start over.
func TestRestoreOfThePublisherIsNoGap(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "")
	for range 3 {
		m, _ := h.next(0)
		h.receive(m)
	}
	h.epoch, h.number, h.last = 1, 0, h.last.Add(-2*time.Minute)
	for range 2 {
		m, ids := h.next(1)
		h.receive(m)
		h.process(ids...)
	}
	h.exec(`update reconciliation_manifests set received_at = received_at - $1::interval - interval '1 second'`, gapGrace)
	if state, _ := h.check(1, 1); state != Complete {
		t.Errorf("the first manifest after the restore is %s, want complete", state)
	}
	h.wantFigures(0, 0, 0)
}

// While the publisher publishes again what its broker has lost, that is unknown, and
// missing if it has not come at the end.
func TestBrokerThatLostItsDiskIsUnknown(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "")
	m, _ := h.next(2)
	h.receive(m)
	h.next(0) // lost
	again, _ := h.next(0)
	again.LostBefore = h.last
	h.receive(again)
	h.exec(`update reconciliation_manifests set received_at = received_at - $1::interval - interval '1 second'`, gapGrace)
	if state, _ := h.check(1, len(h.waits)); state != Unknown {
		t.Errorf("while it is published again it is %s, want unknown", state)
	}
	h.wantFigures(0, 2, 0)
	done, _ := h.next(0)
	h.receive(done)
	if state, _ := h.check(1, 1); state != Missing {
		t.Errorf("after everything was published again it is %s, want missing", state)
	}
}

// A group counts on nothing that was published before it was there, or before anybody
// wanted its messages.
func TestGroupThatCameLaterHasItsOwnBeginning(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "")
	h.exec(`update reconciliation_starts set started_at = now()`)
	early, _ := h.next(3)
	h.receive(early)
	if state, _ := h.check(1, 1); state != Complete {
		t.Errorf("from before the group it is %s, want complete", state)
	}
	h.exec(`update reconciliation_starts set started_at = now() - interval '1 minute'`)
	h.last = time.Now().Add(-10 * time.Minute)
	later, _ := h.next(3)
	h.receive(later)
	h.group.Since = func(context.Context) (time.Time, error) { return time.Now().Add(time.Minute), nil }
	if state, _ := h.check(2, 1); state != Complete {
		t.Errorf("from before anybody wanted it, it is %s, want complete", state)
	}
}

// Messages lost in the first minutes of a group are missing, too: the times of the ids say that
// the messages were for it.
func TestMessagesOfTheFirstMinutesAreMissed(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "")
	h.exec(`update reconciliation_starts set started_at = now() - interval '30 seconds'`)
	h.last = time.Now().Add(-time.Minute)
	m, ids := h.next(3)
	h.receive(m)
	h.process(ids[0])
	if state, missing := h.check(1, 4); state != Missing || len(missing) != 2 {
		t.Errorf("%s, %d missing; want two", state, len(missing))
	}
}

// A manifest of the future, from a publisher whose clock was ahead, hides no lateness: the
// next one says how late it is.
func TestManifestOfTheFutureHidesNoLateness(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "")
	h.exec(`update reconciliation_starts set started_at = now() - interval '2 hours'`)
	for _, last := range []time.Duration{time.Hour, -10 * time.Minute} {
		h.last = time.Now().Add(last)
		m, _ := h.next(0)
		h.receive(m)
	}
	if f, err := h.Figures(t.Context()); err != nil || f.Late < 8*time.Minute || f.Late > time.Hour {
		t.Errorf("late by %v, error %v; want that of the last manifest", f.Late, err)
	}
}

// Manifests come through a queue of the group, and are checked as they are due. One that
// cannot be read holds up no other.
func TestManifestsComeThroughTheBroker(t *testing.T) {
	t.Parallel()
	url := rabbittest.Vhost(t)
	h := newHarness(t, url)
	h.waits = []time.Duration{time.Millisecond, time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	}()
	conn, err := rabbit.Dial(t.Context(), rabbit.Config{URL: url, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var names event.Topology
	if err := rabbit.DeclareExchange(conn, names.Exchange(), amqp.ExchangeTopic); err != nil {
		t.Fatal(err)
	}
	publisher, err := rabbit.NewPublisher(conn, 1)
	if err != nil {
		t.Fatal(err)
	}
	publish := func(body []byte) {
		eventually.True(t, "a queue that takes manifests", func() bool {
			return publisher.PublishWait(t.Context(), names.Exchange(), string(event.ManifestKey), amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body}) == nil
		})
	}
	whole, ids := h.next(2)
	h.process(ids...)
	lost, _ := h.next(2)
	publish([]byte(`{"number": "one"}`))
	for _, m := range []event.Manifest{whole, lost, whole} {
		body, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		publish(body)
	}
	state := func(number int) (state State) {
		_ = h.pool.QueryRow(t.Context(), `select state from reconciliation_manifests where number = $1`, number).Scan(&state)
		return state
	}
	eventually.True(t, "the manifests to be checked", func() bool { return state(1) == Complete && state(2) == Missing })
	eventually.True(t, "the missing messages in the metric", func() bool {
		return testutil.ToFloat64(h.deps.Metrics.missing.WithLabelValues(testGroup)) == 2
	})
}
