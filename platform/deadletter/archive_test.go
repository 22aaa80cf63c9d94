package deadletter_test

import (
	"encoding/json"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/group"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
)

const queue = "queue.vote_received"

func letterOf(h *consumertest.Harness, failedAt time.Time) deadletter.Letter {
	m := h.Vote("alice")
	return deadletter.NewLetter(queue, &amqp.Delivery{
		MessageId: m.ID, Type: string(m.Key), Body: m.Body,
		Headers: amqp.Table{
			failure.FinalErrorClassHeader: "permanent", failure.FinalErrorHeader: "SQLSTATE 23514",
			failure.FailedAtHeader: failedAt.Format(time.RFC3339Nano), event.RecipientHeader: m.Headers[event.RecipientHeader],
		},
	}, failedAt)
}

func TestArchivingTwiceIsArchivingOnce(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	l := letterOf(h, time.Now())
	archive := func(l deadletter.Letter) {
		t.Helper()
		if err := h.Letters.Archive(t.Context(), []deadletter.Letter{l, l}); err != nil {
			t.Fatal(err)
		}
	}
	archive(l)
	archive(l)
	if n := h.Count(`select sum(deaths) from dead_letters`); n != 1 {
		t.Errorf("archived four times, the letter died %d times, want once", n)
	}
	later := l
	later.FailedAt = l.FailedAt.Add(time.Second)
	archive(later)
	if n := h.Count(`select count(*) from dead_letter_attempts`); n != 2 {
		t.Errorf("%d attempts, want 2", n)
	}
	if _, err := h.Letters.Discard(t.Context(), "operator", deadletter.Selection{MessageID: l.MessageID}, "test"); err != nil {
		t.Fatal(err)
	}
	archive(later) // delivered again after the archiver died before its ack
	if n := inState(h, deadletter.Open); n != 0 {
		t.Errorf("a discarded letter is open again")
	}
}

func TestLetterOfAHandledMessageIsResolved(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	l := letterOf(h, time.Now())
	if _, err := h.Pool.Exec(t.Context(), `insert into processed_messages (consumer, message_id) values ($1, $2)`, queue, l.MessageID); err != nil {
		t.Fatal(err)
	}
	if err := h.Letters.Archive(t.Context(), []deadletter.Letter{l}); err != nil {
		t.Fatal(err)
	}
	if n := inState(h, deadletter.Resolved); n != 1 {
		t.Errorf("%d letters are resolved, want 1: the message had its effect", n)
	}
}

func TestUpkeepResolvesWhatTwoTransactionsMissed(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	l := letterOf(h, time.Now())
	if err := h.Letters.Archive(t.Context(), []deadletter.Letter{l}); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`insert into processed_messages (consumer, message_id) select queue, message_id from dead_letters`,
		`insert into processed_messages (consumer, message_id, processed_at) values ('q', 'old', now() - interval '31 days')`,
	} {
		if _, err := h.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := group.Upkeep(t.Context(), h.Pool); err != nil {
		t.Fatal(err)
	}
	if n := inState(h, deadletter.Resolved); n != 1 {
		t.Errorf("%d letters are resolved, want 1", n)
	}
	if n := h.Effects(); n != 1 {
		t.Errorf("%d handled messages are remembered, want 1: the old one is forgotten", n)
	}
}

// At a new broker the archiver may be the first. What stands otherwise than it
// should is archived all the same: its letters would expire.
func TestArchiverComesBeforeTheConsumer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		stand amqp.Table // arguments of the queue that stands already
	}{
		{"no queue stands", nil},
		{"the queue differs", amqp.Table{"x-message-ttl": int32(3_600_000)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := consumertest.New(t, pgtest.Notification(t))
			var warnings atomic.Int64
			h.Log = zerolog.New(io.Discard).Hook(zerolog.HookFunc(func(_ *zerolog.Event, level zerolog.Level, _ string) {
				if level >= zerolog.WarnLevel {
					warnings.Add(1)
				}
			}))
			ch, dlq := h.Channel(), h.Topology.DeadLetterQueue(queue)
			if tt.stand != nil {
				if _, err := ch.QueueDeclare(dlq, true, false, false, false, tt.stand); err != nil {
					t.Fatal(err)
				}
			}
			h.StartArchive()
			h.EventuallyEqual("archivers", 1, func() int { q, _ := h.Inspect(dlq); return q.Consumers })
			if err := ch.PublishWithContext(t.Context(), "", dlq, true, false, amqp.Publishing{MessageId: "1", Body: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
			h.EventuallyEqual("open dead letters", 1, func() int { return inState(h, deadletter.Open) })
			if n := warnings.Load(); n != 0 {
				t.Errorf("%d warnings, want none", n)
			}
		})
	}
}

// FuzzNewLetter feeds what anyone may put into a dead-letter queue.
func FuzzNewLetter(f *testing.F) {
	f.Add("id", "type", []byte(`{"reporter_id":"x"}`), "x-death", "value\x00\xff")
	f.Fuzz(func(t *testing.T, id, kind string, body []byte, name, value string) {
		l := deadletter.NewLetter(queue, &amqp.Delivery{
			MessageId: id, Type: kind, Body: body,
			Headers: amqp.Table{name: value, failure.FinalErrorHeader: value, "bytes": []byte(value), failure.CycleHeader: []any{value, amqp.Table{name: value}}},
		}, time.Now())
		if l.MessageID == "" && id == "" || !json.Valid(l.Headers) || strings.ContainsRune(l.Error+l.MessageID+l.Type, 0) {
			t.Errorf("letter %+v", l)
		}
		if !json.Valid(deadletter.MaskBody(body)) || !json.Valid(deadletter.MaskHeaders(l.Headers)) {
			t.Error("masking makes no JSON")
		}
	})
}
