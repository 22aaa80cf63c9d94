package failure_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
)

func sql(code string) error {
	return fmt.Errorf("apply batch: %w", &pgconn.PgError{Code: code, Message: "canary", Detail: "canary", ConstraintName: "c"})
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		err  error
		want failure.Class
	}{
		{"data", sql("22P02"), failure.Permanent},
		{"constraint", sql("23505"), failure.Permanent},
		{"serialization", sql("40001"), failure.Transient},
		{"lock timeout", sql("55P03"), failure.Transient},
		{"statement cancelled", sql("57014"), failure.Away},
		{"shutting down", sql("57P01"), failure.Away},
		{"missing table", sql("42P01"), failure.Away},
		{"missing column", sql("42703"), failure.Away},
		{"odd code", sql("4"), failure.Away},
		{"reset", fmt.Errorf("read: %w", &net.OpError{Op: "read", Err: errors.New("canary")}), failure.Away},
		{"deadline", fmt.Errorf("apply: %w", context.DeadlineExceeded), failure.Transient},
		{"unknown", fmt.Errorf("canary: %w", errors.New("canary")), failure.Transient},
		{"ours", &failure.Error{Class: failure.Poison, Text: "x", Err: errors.New("canary")}, failure.Poison},
	} {
		if got := failure.Classify(tt.err); got != tt.want {
			t.Errorf("%s: class %s, want %s", tt.name, got, tt.want)
		}
		if text := failure.Describe(tt.err); text == "" || strings.Contains(text, "canary") {
			t.Errorf("%s: described as %q, want a text that quotes nothing", tt.name, text)
		}
	}
}

// FuzzUndecodable looks for a body that shows in the reason for its refusal.
func FuzzUndecodable(f *testing.F) {
	f.Add(`{"report_id":"`, `"}`)
	f.Add(`{"vote_type":"`, `"`)
	f.Add(`{"report_version":`, `}`)
	f.Fuzz(func(t *testing.T, before, after string) {
		const canary = "zq7canary"
		_, err := event.Decode(event.VoteReceivedKey, []byte(before+canary+after))
		if err == nil {
			return
		}
		if text := failure.Undecodable(err).Text; strings.Contains(text, canary) {
			t.Errorf("the reason %q quotes the body", text)
		}
	})
}

func TestRetryThenDeadLetterThenReplay(t *testing.T) {
	t.Parallel()
	d := &amqp.Delivery{
		MessageId: "m", Type: "report.created", Exchange: "x", RoutingKey: "k", Expiration: "5", Body: []byte("{}"),
		Headers: amqp.Table{
			event.TraceHeader: "00-1", event.RecipientHeader: "sealed",
			"x-death": []any{}, "x-first-death-queue": "q", "x-last-death-reason": "r", "x-delivery-count": int64(3),
		},
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	first := failure.Retry(d, failure.Record{Queue: "q", Class: failure.Transient, Text: "slow", At: at})
	if first.Expiration != "" || first.DeliveryMode != amqp.Persistent || first.MessageId != "m" {
		t.Errorf("retry is published as %+v", first)
	}
	back := &amqp.Delivery{MessageId: "m", Headers: first.Headers, Exchange: "", RoutingKey: "q", Body: first.Body}
	letter := failure.DeadLetter(back, failure.Record{Queue: "q", Class: failure.Permanent, Text: "broken", At: at.Add(time.Second)})
	want := amqp.Table{
		event.TraceHeader: "00-1", event.RecipientHeader: "sealed",
		"x-retries": int32(1), "x-retry-reason": "transient: slow", "x-original-exchange": "x", "x-original-routing-key": "k",
		"x-first-failed-at": "2026-01-02T03:04:05Z", "x-original-queue": "q", "x-final-error": "broken",
		"x-final-error-class": "permanent", "x-final-retry-count": int32(1), "x-failed-at": "2026-01-02T03:04:06Z",
	}
	same(t, "dead letter", letter.Headers, want)
	same(t, "essential headers", failure.Essential(letter.Headers), want)
	same(t, "replay", failure.Replay(letter.Headers), amqp.Table{
		event.TraceHeader: "00-1", event.RecipientHeader: "sealed", "x-original-exchange": "x", "x-original-routing-key": "k",
	})
}

func same(t *testing.T, what string, got, want amqp.Table) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: %s is %v, want %v", what, name, got[name], want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: headers %v, want %v", what, got, want)
	}
}

func TestRetriesOfForeignHeaders(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		value any
		want  int
	}{{nil, 0}, {int32(2), 2}, {int64(3), 3}, {"4", 4}, {int32(-1), 0}, {int64(-1), 0}, {int64(1) << 40, 1 << 20}, {"x", 0}, {2.5, 0}} {
		if got := failure.Retries(amqp.Table{failure.RetriesHeader: tt.value}); got != tt.want {
			t.Errorf("retries of %v are %d, want %d", tt.value, got, tt.want)
		}
	}
}
