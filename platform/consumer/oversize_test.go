package consumer_test

import (
	"bytes"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
)

// A message that is too large to be published again is moved by the broker itself,
// whole and once, and holds up no other.
func TestOversizeMessageIsDeadLetteredByTheBroker(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	h.Start()
	h.WaitSubscribed(1)
	large := h.Vote("alice")
	large.Body = bytes.Repeat([]byte("x"), rabbit.MaxBody+1)
	h.Publish(h.Vote("alice"), large, h.Vote("alice"))
	h.WaitEffects(2)
	letter := h.DeadLetters(event.VoteReceivedKey, 1)[0]
	if letter.MessageId != large.ID || !bytes.Equal(letter.Body, large.Body) {
		t.Errorf("dead letter %s of %d bytes, want %s of %d", letter.MessageId, len(letter.Body), large.ID, len(large.Body))
	}
	deaths, _ := letter.Headers[failure.CycleHeader].([]any)
	if len(deaths) != 1 || deaths[0].(amqp.Table)["reason"] != "rejected" {
		t.Errorf("the broker's record is %v, want one rejection", deaths)
	}
	if reason, ours := letter.Headers[failure.FinalErrorHeader]; ours {
		t.Errorf("reason %v, which nobody could have added", reason)
	}
	if got := h.Metric("consumer_messages_nacked_total"); got != 1 {
		t.Errorf("%d rejections, want 1", got)
	}
	h.EventuallyEqual("messages that wait", 0, func() int { return waiting(h) })
	h.CheckEffects(2)
}
