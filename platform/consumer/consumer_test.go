package consumer_test

import (
	"testing"

	"github.com/cityconnect/cityconnect/platform/consumer/consumertest"
)

func TestEveryMessageTwiceToTwoReplicas(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t)
	h.Start()
	h.Start()
	h.WaitSubscribed(2)
	const users, each = 5, 100
	var all []consumertest.Message
	for u := range users {
		for _, m := range h.Votes(each, string(rune('a'+u))) {
			all = append(all, m, m) // one after the other: at the same moment, and most often to both
		}
	}
	h.Publish(all...)
	h.WaitAcked(2 * users * each)
	if got := h.Effects(); got != users*each {
		t.Errorf("%d messages have had their effect, want %d", got, users*each)
	}
	h.CheckEffects(users * each)
	t.Logf("%d deliveries, %d effects, %d duplicates seen", len(all), h.Effects(), h.Metric("rabbitmq_messages_duplicate_total"))
}

func TestStatusUpdatesGoFirst(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t)
	_, stop := h.Start()
	h.WaitSubscribed(1)
	stop()
	const n = 1500 // long enough for both to be at it
	h.Publish(h.Votes(n, "alice")...)
	updates := make([]consumertest.Message, n)
	for i := range updates {
		updates[i] = h.Status("bob")
	}
	h.Publish(updates...)
	h.Start()
	h.WaitEffects(2 * n)
	votesBefore := h.Count(`
		select count(*) from effects where queue = 'queue.vote_received' and at <
		  (select max(at) from effects where queue = 'queue.status_updates')`)
	t.Logf("%d of %d votes were told before the last of %d status updates", votesBefore, n, n)
	// How few depends on how soon the broker sends more; side by side it is all.
	if votesBefore > n*9/10 {
		t.Errorf("%d of %d votes went before the last status update, want few", votesBefore, n)
	}
}

func TestStopLosesNothing(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t)
	_, stop := h.Start()
	h.WaitSubscribed(1)
	const n = 2000
	h.Publish(h.Votes(n, "alice")...)
	stops := 1
	stop()
	for h.Effects() < n {
		_, stop := h.Start()
		before := h.Effects()
		h.Eventually("progress", func() string {
			if h.Effects() == before && before < n {
				return "none"
			}
			return ""
		})
		stop()
		stops++
	}
	h.CheckEffects(n)
	// What the broker sends while it handles our cancellation comes back.
	t.Logf("%d messages through %d stops under load, %d delivered again", n, stops, h.Metric("rabbitmq_messages_redelivered_total"))
}
