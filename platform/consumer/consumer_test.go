package consumer_test

import (
	"fmt"
	"testing"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
)

func TestEveryMessageTwiceToTwoReplicas(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
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
	t.Logf("%d deliveries, %d effects, %d duplicates seen", len(all), h.Effects(), h.Metric("consumer_messages_duplicate_total"))
}

// With a backlog of both, status updates go before votes. How few votes go in between
// depends on how soon the broker sends more: where it pauses for a moment they all
// may, so a round that shows the order is enough. Side by side it is nearly all of
// them in each round.
func TestStatusUpdatesGoFirst(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	_, stop := h.Start()
	h.WaitSubscribed(1)
	stop()
	const n, rounds = 1500, 5 // long enough for both to be at it
	for round := range rounds {
		h.Publish(h.Votes(n, "alice")...)
		updates := make([]consumertest.Message, n)
		for i := range updates {
			updates[i] = h.Status("bob")
		}
		h.Publish(updates...)
		_, stop := h.Start()
		h.WaitEffects(2 * n * (round + 1))
		stop()
		votesBefore := h.Count(fmt.Sprintf(`
			select count(*) from (select * from effects order by at offset %d) as round
			where queue = 'queue.vote_received' and at < (select max(at) from effects where queue = 'queue.status_updates')`,
			2*n*round))
		t.Logf("%d of %d votes were notified before the last of %d status updates", votesBefore, n, n)
		if votesBefore <= n*9/10 {
			return
		}
	}
	t.Errorf("in each of %d rounds nearly all votes went before the last status update, want few", rounds)
}

func TestStopLosesNothing(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
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
	// Messages that the broker sends while it handles our cancellation come back.
	t.Logf("%d messages through %d stops under load, %d delivered again", n, stops, h.Metric("consumer_messages_redelivered_total"))
}
