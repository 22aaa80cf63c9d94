package delay_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/delay"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
	"github.com/cityconnect/cityconnect/platform/testing/short"
)

const queue = "queue.vote_received"

func TestNotBefore(t *testing.T) {
	t.Parallel()
	const at = 1_800_000_000_123
	for _, tt := range []struct {
		header any
		want   int64 // Unix milliseconds; 0 is none, -1 refused
	}{
		{nil, 0}, {int64(at), at}, {int32(7), 7}, {fmt.Sprint(int64(at)), at},
		{"tomorrow", -1}, {int64(-1), -1}, {int64(1) << 60, -1}, {3.5, -1}, {true, -1},
	} {
		got, err := delay.NotBefore(amqp.Table{event.NotBeforeHeader: tt.header})
		switch {
		case tt.want == -1:
			if err == nil || failure.Classify(err) != failure.Permanent {
				t.Errorf("%v: %v, want a permanent error", tt.header, err)
			}
		case err != nil || tt.want == 0 && !got.IsZero() || tt.want > 0 && got.UnixMilli() != tt.want:
			t.Errorf("%v: %v (error %v), want %d", tt.header, got, err, tt.want)
		}
	}
}

// after lets the message wait for so long.
func after(m consumertest.Message, d time.Duration) consumertest.Message {
	m.Headers[event.NotBeforeHeader] = time.Now().Add(d).UnixMilli()
	return m
}

func waiting(h *consumertest.Harness) int { return h.Count(`select count(*) from delayed_messages`) }

// Messages that wait for different times do not wait for one another, none has
// its effect before its time, and each has it once.
func TestMixedDelays(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	h.Start(consumertest.WithConfig(func(c *consumer.Config) { c.Workers = 2 }))
	h.WaitSubscribed(2)
	const each = 50
	delays := []time.Duration{3 * 24 * time.Hour, time.Hour, time.Second, 0} // the long ones go first
	due := make(map[string]time.Time)
	for range each {
		for _, d := range delays {
			m := after(h.Vote("alice"), d)
			due[m.ID] = time.UnixMilli(m.Headers[event.NotBeforeHeader].(int64))
			h.Publish(m)
		}
	}
	// A row is deleted after the broker has confirmed its message, which may
	// already have had its effect.
	stillWait := func(n int) {
		h.EventuallyEqual("messages that wait", n, func() int { return waiting(h) })
	}
	pass := func(d time.Duration) {
		if _, err := h.Pool.Exec(t.Context(), `update delayed_messages set due_at = due_at - $1::interval`, d); err != nil {
			t.Fatal(err)
		}
	}
	h.WaitEffects(2 * each) // those without a delay, and those of a second: behind the others
	stillWait(2 * each)
	pass(time.Hour)
	h.WaitEffects(3 * each)
	stillWait(each)
	pass(3 * 24 * time.Hour)
	h.WaitEffects(4 * each)
	h.CheckEffects(4 * each)
	rows, err := h.Pool.Query(t.Context(), `select message_id, at from effects`)
	if err != nil {
		t.Fatal(err)
	}
	var id string
	var at time.Time
	early := 0
	for rows.Next() {
		if err := rows.Scan(&id, &at); err != nil {
			t.Fatal(err)
		}
		if at.Add(250*time.Millisecond).Before(due[id]) && time.Until(due[id]) < 30*time.Minute {
			early++
		}
	}
	if err := rows.Err(); err != nil || early != 0 {
		t.Errorf("%d messages had their effect before their time (error %v), want none", early, err)
	}
	stillWait(0)
}

// The broker is destroyed while messages wait, and starts as an empty one. All
// of them arrive.
func TestBrokerDestroyedWhileMessagesWait(t *testing.T) {
	t.Parallel()
	n := short.Count(1_000, 10_000)
	server := rabbittest.StartServer(t)
	h := consumertest.On(t, server.URL(), pgtest.Notification(t))
	h.Start(consumertest.WithConfig(func(c *consumer.Config) { c.Prefetch, c.BatchSize = 100, 100 }))
	h.WaitSubscribed(1)
	votes := h.Votes(n, "alice")
	for i := range votes {
		votes[i] = after(votes[i], time.Hour)
	}
	h.Publish(votes...)
	h.EventuallyEqual("messages that wait", n, func() int { return waiting(h) })
	h.WaitAcked(n)
	server.Destroy()
	if _, err := h.Pool.Exec(t.Context(), `update delayed_messages set due_at = now()`); err != nil {
		t.Fatal(err)
	}
	server.Start()
	h.WaitEffects(n)
	h.CheckEffects(n)
	h.EventuallyEqual("messages that wait", 0, func() int { return waiting(h) })
	t.Logf("%d messages waited, the broker was destroyed: %d effects", n, h.Effects())
}

// A queue that was deleted keeps its own messages waiting and no
// others.
func TestGoneQueueHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	h.Start()
	h.WaitSubscribed(1)
	const gone = 40
	store := delay.NewStore(h.Pool)
	lost := make([]delay.Message, gone)
	for i := range lost {
		lost[i] = delay.Message{
			ID: uuid.NewString(), Type: string(event.VoteReceivedKey), DueAt: time.Now().Add(time.Minute), Body: []byte("{}"), Headers: []byte("{}"),
		}
	}
	if _, err := store.Park(t.Context(), "queue.gone", lost, false, false); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Pool.Exec(t.Context(), `update delayed_messages set due_at = now() - interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	h.Publish(after(h.Vote("alice"), time.Second))
	h.WaitEffects(1)
	if n := waiting(h); n < gone {
		t.Errorf("%d messages of the gone queue wait, want all %d", n, gone)
	}
}

// Parked messages are judged by the database's clock, whatever this process's says,
// and a message that is known already is not parked again.
func TestPark(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	store := delay.NewStore(pool)
	message := func(id string, ahead time.Duration) delay.Message {
		return delay.Message{ID: id, Type: string(event.VoteReceivedKey), DueAt: time.Now().Add(ahead), Body: []byte("{}"), Headers: []byte("{}")}
	}
	if _, err := pool.Exec(t.Context(), `insert into processed_messages (consumer, message_id) values ($1, 'handled'), ('another queue', 'later')`, queue); err != nil {
		t.Fatal(err)
	}
	park := func(full bool, want delay.Outcome, m delay.Message) {
		t.Helper()
		got, err := store.Park(t.Context(), queue, []delay.Message{m}, full, false)
		if err != nil || got[m.ID] != want {
			t.Errorf("%s: %q (error %v), want %q", m.ID, got[m.ID], err, want)
		}
	}
	park(false, delay.Due, message("past", -time.Hour))
	park(true, delay.Due, message("past", -time.Hour))
	park(false, delay.Parked, message("later", time.Hour))
	park(true, delay.Parked, message("later", 2*time.Hour)) // waits already
	park(true, delay.Full, message("more", time.Hour))
	park(false, delay.Far, message("far", 367*24*time.Hour))
	park(false, delay.Parked, message("handled", time.Hour)) // nothing is left to do
	entries, err := store.Entries(t.Context(), delay.Selection{}, nil, 10)
	if err != nil || len(entries) != 1 || entries[0].MessageID != "later" || time.Until(entries[0].DueAt) > time.Hour {
		t.Errorf("entries %+v (error %v), want the first of later", entries, err)
	}
	if _, err := pool.Exec(t.Context(), `insert into processed_messages (consumer, message_id) values ($1, 'later')`, queue); err != nil {
		t.Fatal(err)
	}
	if err := store.Cancel(t.Context(), "operator", queue, "later", "test"); err == nil || !strings.Contains(err.Error(), "had its effect") {
		t.Errorf("cancelling what had its effect: %v, want ErrHandled", err)
	}
	if err := store.Cancel(t.Context(), "operator", queue, "unknown", "test"); err == nil {
		t.Error("cancelling what does not wait: no error, want ErrNotFound")
	}
}

// A reparker parks each message again while its publish is confirmed, as a consumer does
// that gets it before the releaser has deleted it.
type reparker struct {
	store     *delay.Store
	published chan struct{}
}

func (r reparker) Publish(ctx context.Context, _, key string, msg amqp.Publishing) error {
	m := delay.Message{ID: msg.MessageId, Type: msg.Type, Body: msg.Body, Headers: []byte(`{"x-waited": 1}`)}
	err := park(&m, func(m delay.Message) (map[string]delay.Outcome, error) {
		return r.store.Park(ctx, key, []delay.Message{m}, false, true)
	})
	r.published <- struct{}{}
	return err
}

// park parks m for a second, and again if the machine has taken so long that its time has
// come before.
func park(m *delay.Message, once func(delay.Message) (map[string]delay.Outcome, error)) error {
	for {
		m.DueAt = time.Now().Add(time.Second)
		outcomes, err := once(*m)
		if err != nil || outcomes[m.ID] == delay.Parked {
			return err
		}
	}
}

// A message that is parked again before the releaser has deleted it is not lost: it is
// published once more.
func TestParkAgain(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	store := delay.NewStore(pool)
	published := make(chan struct{})
	releaser := delay.NewReleaser(delay.Config{Max: 10, ReleaseRate: 100}, store, reparker{store, published}, nil, prometheus.NewRegistry(), zerolog.Nop())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- releaser.Run(ctx) }()
	m := delay.Message{ID: "m", Type: string(event.VoteReceivedKey), Body: []byte("{}"), Headers: []byte("{}")}
	err := park(&m, func(m delay.Message) (map[string]delay.Outcome, error) {
		return releaser.Park(ctx, queue, []delay.Message{m}, false)
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		<-published
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	entries, err := store.Entries(t.Context(), delay.Selection{}, nil, 10)
	if err != nil || len(entries) != 1 || string(entries[0].Headers) != `{"x-waited": 1}` {
		t.Errorf("waiting are %+v (error %v), want the message with its new headers", entries, err)
	}
}

// A message that can never be parked becomes a dead letter, and harms no neighbour.
func TestUnparkableMessagesAreDeadLetters(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	none := delay.NewReleaser(delay.Config{Max: 1, ReleaseRate: 1}, delay.NewStore(h.Pool), nil, nil, prometheus.NewRegistry(), zerolog.Nop())
	h.Start(consumertest.WithParker(none))
	h.WaitSubscribed(1)
	odd := h.Vote("alice")
	odd.Headers[event.NotBeforeHeader] = "tomorrow"
	h.Publish(after(h.Vote("alice"), time.Hour))
	h.EventuallyEqual("messages that wait", 1, func() int { return waiting(h) })
	h.Publish(odd, after(h.Vote("alice"), 400*24*time.Hour), after(h.Vote("alice"), time.Hour), after(h.Vote("alice"), 0))
	h.WaitEffects(1)
	reasons := make(map[string]int)
	for _, letter := range h.DeadLetters(event.VoteReceivedKey, 3) {
		if letter.Headers[failure.FinalErrorClassHeader] != "permanent" {
			t.Errorf("class %v, want permanent", letter.Headers[failure.FinalErrorClassHeader])
		}
		reasons[fmt.Sprint(letter.Headers[failure.FinalErrorHeader])]++
	}
	if len(reasons) != 3 {
		t.Errorf("reasons %v, want three", reasons)
	}
}
