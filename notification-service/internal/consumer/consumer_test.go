package consumer_test

import (
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/outcome"
	"github.com/cityconnect/cityconnect/platform/event"
)

func TestMessagesHaveTheirEffectOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	r.waitSubscribed(1)
	const users, each = 5, 40
	var all []message
	for u := range users {
		all = append(all, r.votes(each, string(rune('a'+u)))...)
	}
	r.publish(all...)
	r.publish(all...) // each once more
	r.waitEffects(len(all))
	r.waitAcked(2 * len(all))
	if got := r.count(`select count(*) from notifications`); got != len(all) {
		t.Errorf("%d notifications, want %d", got, len(all))
	}
	if got := r.count(`select count(*) from streams s where last_seq = $1
		and last_seq = (select count(*) from notifications n where n.stream_id = s.id)
		and last_seq = (select max(seq) from notifications n where n.stream_id = s.id)`, each); got != users {
		t.Errorf("%d streams are numbered without a gap, want %d", got, users)
	}
}

func TestUndecodableIsADeadLetterAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	r.waitSubscribed(1)
	bad := r.vote("alice")
	bad.body = []byte(`{"report_title": "secret-canary", `)
	good := r.vote("alice")
	r.publish(bad, good)
	r.waitEffects(1)
	letter := r.deadLetters(event.VoteReceivedKey, 1)[0]
	for name, want := range map[string]any{
		outcome.OriginalQueueHeader: "queue.vote_received", outcome.FinalErrorClassHeader: "permanent",
		outcome.FinalErrorHeader:      "body is not valid JSON at byte 34",
		outcome.FinalRetryCountHeader: int32(0), outcome.OriginalRoutingKeyHeader: string(event.VoteReceivedKey),
		outcome.OriginalExchangeHeader: r.topology.Exchange(),
	} {
		if got := letter.Headers[name]; got != want {
			t.Errorf("header %s is %v, want %v", name, got, want)
		}
	}
	if letter.MessageId != bad.id || string(letter.Body) != string(bad.body) {
		t.Errorf("the dead letter is not the message: id %q, body %q", letter.MessageId, letter.Body)
	}
}
