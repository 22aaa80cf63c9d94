package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// A message that can never succeed goes to the dead letters at once, with its reason,
// and its neighbours do not notice.
func TestMalformedMessageIsDeadLettered(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana, report := c.userOf("ana", "resident"), uuid.New()
	anas, dead, ch := watch(t, ana), c.spyOn(topology.DeadLetterExchange()), c.channel()

	for _, tt := range []struct {
		name, body, reason string
		sealedFor          uuid.UUID
	}{
		{"broken JSON", `{"report_id":`, "not valid JSON", report},
		{"schema violation", strings.Replace(voteBody(report, 1), "upvote", "sideways", 1), "vote_type", report},
		{"no object", `null`, "breaks the contract", report},
		{"recipient of another report", voteBody(report, 1), "recipient", uuid.New()},
	} {
		msg := c.message(event.VoteReceivedKey, tt.sealedFor, ana.ID, tt.body)
		c.publish(ch, event.VoteReceivedKey, msg)
		letter := dead.await(t, msg.MessageId)
		if got := fmt.Sprint(letter.Headers["x-final-error"]); !strings.Contains(got, tt.reason) {
			t.Errorf("%s: x-final-error %q does not tell %q", tt.name, got, tt.reason)
		}
		for header, want := range map[string]string{
			"x-original-queue": topology.Queue(event.VoteReceivedKey), "x-final-error-class": "permanent", "x-final-retry-count": "0",
		} {
			if got := fmt.Sprint(letter.Headers[header]); got != want {
				t.Errorf("%s: header %s is %q, want %q", tt.name, header, got, want)
			}
		}
		if string(letter.Body) != tt.body || letter.RoutingKey != topology.DeadLetterKey(topology.Queue(event.VoteReceivedKey)) {
			t.Errorf("%s: the dead letter went by %q with body %s", tt.name, letter.RoutingKey, letter.Body)
		}
		c.awaitDeadLetter(topology.Queue(event.VoteReceivedKey), msg.MessageId)
	}
	c.publish(ch, event.VoteReceivedKey, c.message(event.VoteReceivedKey, report, ana.ID, voteBody(report, 9)))
	anas.check([]sight{{voted, report, 9}})
}

// awaitDeadLetter returns when operators can see the dead letter of that queue: the queue of
// another group may have one of the same message.
func (c *stack) awaitDeadLetter(queue, messageID string) {
	c.t.Helper()
	operator := c.userOf("operator", "operator")
	eventually.True(c.t, "the dead letter is listed", func() bool {
		var page struct {
			Items []struct {
				MessageID string `json:"message_id"`
			}
		}
		if operator.Do(c.t.Context(), http.MethodGet, "/admin/dlq/messages?queue="+queue, nil, &page) != nil {
			return false
		}
		for _, m := range page.Items {
			if m.MessageID == messageID {
				return true
			}
		}
		return false
	})
}
