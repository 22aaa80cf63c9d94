package consumer_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
)

// A failingEffect fails for some messages before it reaches the harness's.
type failingEffect struct {
	consumer.Effect
	fail func(batch []consumer.Message) error

	mu    sync.Mutex
	tries map[string]int // how often a message was tried
}

func (s *failingEffect) Apply(ctx context.Context, queue string, batch []consumer.Message) (int, error) {
	s.mu.Lock()
	if s.tries == nil {
		s.tries = make(map[string]int)
	}
	for _, m := range batch {
		s.tries[m.ID]++
	}
	s.mu.Unlock()
	if err := s.fail(batch); err != nil {
		return 0, err
	}
	return s.Effect.Apply(ctx, queue, batch)
}

func has(batch []consumer.Message, id string) bool {
	for _, m := range batch {
		if m.ID == id {
			return true
		}
	}
	return false
}

var errTransient = &pgconn.PgError{Code: "55P03", Message: "secret-canary", Detail: "secret-canary"}

func TestUnreadableMessagesAreDeadLettersAtOnce(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	h.Start()
	h.WaitSubscribed(1)
	bad := func(change func(m *consumertest.Message)) consumertest.Message {
		m := h.Vote("alice")
		change(&m)
		return m
	}
	cases := map[string]consumertest.Message{
		"body is not valid JSON at byte 34": bad(func(m *consumertest.Message) { m.Body = []byte(`{"report_title": "secret-canary", `) }),
		"body breaks the contract: vote_type: must be one of upvote, downvote": bad(func(m *consumertest.Message) {
			m.Body = []byte(strings.Replace(string(m.Body), "upvote", "secret-canary", 1))
		}),
		"body breaks the contract: report_version: must be of another type": bad(func(m *consumertest.Message) {
			m.Body = []byte(strings.Replace(string(m.Body), `"report_version":2`, `"report_version":"secret-canary"`, 1))
		}),
		"body breaks the contract":                   bad(func(m *consumertest.Message) { m.Body = []byte(`["secret-canary"]`) }),
		"message_id is missing":                      bad(func(m *consumertest.Message) { m.ID = "" }),
		"message type does not belong in this queue": bad(func(m *consumertest.Message) { m.Type = "secret-canary" }),
		"body is too large": bad(func(m *consumertest.Message) {
			m.Body = []byte(`{"secret-canary":"` + strings.Repeat("x", 300<<10) + `"}`)
		}),
	}
	wide := h.Vote("alice") // not refused for large headers alone
	wide.Headers["x-note"] = strings.Repeat("x", 100<<10)
	both := bad(func(m *consumertest.Message) { m.Body = nil })
	both.Headers["x-note"] = strings.Repeat("x", 100<<10)
	for _, m := range cases {
		h.Publish(m)
	}
	h.Publish(wide, both, h.Vote("alice"))
	h.WaitEffects(2)
	want := len(cases) + 1
	for _, letter := range h.DeadLetters(event.VoteReceivedKey, want) {
		checkLetter(t, letter, cases, both.ID)
	}
	t.Logf("%d unreadable messages, %d dead letters, 2 good messages beside them", want, want)
}

func checkLetter(t *testing.T, letter amqp.Delivery, cases map[string]consumertest.Message, wide string) {
	t.Helper()
	text, _ := letter.Headers[failure.FinalErrorHeader].(string)
	m, known := cases[text]
	if letter.MessageId == wide {
		return // for the same reason as another; that it arrived at all is the point
	}
	if !known {
		t.Errorf("unexpected reason %q", text)
	}
	if strings.Contains(text, "secret-canary") {
		t.Errorf("the reason quotes the message: %q", text)
	}
	if known && (letter.MessageId != m.ID || string(letter.Body) != string(m.Body)) {
		t.Errorf("the dead letter for %q is not the message", text)
	}
	for name, want := range map[string]any{
		failure.OriginalQueueHeader: "queue.vote_received", failure.FinalErrorClassHeader: "permanent",
		failure.FinalRetryCountHeader: int32(0), failure.OriginalRoutingKeyHeader: string(event.VoteReceivedKey),
		failure.OriginalExchangeHeader: "cityconnect.notifications",
	} {
		if got := letter.Headers[name]; got != want {
			t.Errorf("%q: header %s is %v, want %v", text, name, got, want)
		}
	}
}

func TestTransientFailureIsRetriedAndGivenUp(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	said := new(lines)
	h.Log = zerolog.New(said)
	neighbours := h.Votes(9, "alice")
	hopeless, brief := h.Vote("alice"), h.Vote("alice")
	var failed atomic.Bool // brief, by itself
	s := &failingEffect{Effect: consumertest.Effect(h.Pool), fail: func(batch []consumer.Message) error {
		alone := len(batch) == 1 && has(batch, brief.ID)
		if has(batch, hopeless.ID) || has(batch, brief.ID) && !failed.Load() {
			failed.CompareAndSwap(false, alone)
			return errTransient
		}
		return nil
	}}
	h.Start(consumertest.WithEffect(s), consumertest.WithConfig(func(c *consumer.Config) { c.MaxAttempts = 2 }))
	h.WaitSubscribed(1)
	h.Publish(append(neighbours, hopeless, brief)...)
	h.WaitEffects(10)
	letter := h.DeadLetters(event.VoteReceivedKey, 1)[0]
	for name, want := range map[string]any{
		failure.FinalErrorHeader: "SQLSTATE 55P03", failure.FinalErrorClassHeader: "transient",
		failure.FinalRetryCountHeader: int32(1), failure.RetriesHeader: int32(1),
		failure.RetryReasonHeader:      "transient: SQLSTATE 55P03",
		failure.OriginalExchangeHeader: h.Topology.Exchange(), failure.OriginalRoutingKeyHeader: string(event.VoteReceivedKey),
		failure.CycleHeader: nil,
	} {
		if got := letter.Headers[name]; got != want {
			t.Errorf("header %s is %v, want %v", name, got, want)
		}
	}
	if letter.MessageId != hopeless.ID {
		t.Errorf("message %s is the dead letter, want %s", letter.MessageId, hopeless.ID)
	}
	if !said.contain(`"code":"RABBITMQ_MESSAGE_MAX_RETRIES_EXCEEDED"`) {
		t.Error("the log does not say that no attempt was left")
	}
	h.CheckEffects(10)
}

func TestQuickTriesSpareTheRoundTrip(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	m := h.Vote("alice")
	s := &failingEffect{Effect: consumertest.Effect(h.Pool)}
	s.fail = func([]consumer.Message) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.tries[m.ID] < 3 {
			return &pgconn.PgError{Code: "40001"}
		}
		return nil
	}
	h.Start(consumertest.WithEffect(s))
	h.WaitSubscribed(1)
	h.Publish(m)
	h.WaitEffects(1)
	if retried := h.Metric("consumer_messages_retried_total"); retried != 0 {
		t.Errorf("%d retries through the broker, want none: the failure cleared by itself", retried)
	}
}

func TestPanicHarmsNoNeighbour(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	bad := h.Vote("alice")
	s := &failingEffect{Effect: consumertest.Effect(h.Pool), fail: func(batch []consumer.Message) error {
		if has(batch, bad.ID) {
			panic(errors.New("secret-canary " + bad.ID))
		}
		return nil
	}}
	h.Start(consumertest.WithEffect(s), consumertest.WithConfig(func(c *consumer.Config) { c.MaxAttempts = 2 }))
	h.WaitSubscribed(1)
	h.Publish(append(h.Votes(9, "alice"), bad)...)
	h.WaitEffects(9)
	letter := h.DeadLetters(event.VoteReceivedKey, 1)[0]
	if got := letter.Headers[failure.FinalErrorClassHeader]; got != "panic" {
		t.Errorf("class %v, want panic", got)
	}
	text, _ := letter.Headers[failure.FinalErrorHeader].(string)
	if strings.Contains(text, "secret-canary") || !strings.Contains(text, "consumer_test") {
		t.Errorf("the reason is %q, want the place of the panic and none of its text", text)
	}
	t.Logf("9 neighbours, %d effects, 1 dead letter: %s", h.Effects(), text)
}

func TestForeignHeadersDoNoHarm(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	h.Start()
	h.WaitSubscribed(1)
	m := h.Vote("alice")
	m.Headers[failure.RetriesHeader] = "many" // anyone can write headers
	other := h.Vote("alice")
	other.Headers[failure.RetriesHeader] = int64(-5)
	third := h.Vote("alice")
	third.ID = uuid.NewString() + strings.Repeat("x", 200)
	h.Publish(m, other, third)
	h.WaitEffects(3)
}
