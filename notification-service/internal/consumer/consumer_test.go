package consumer_test

import (
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/consumertest"
)

func TestEveryMessageTwiceToTwoReplicas(t *testing.T) {
	t.Parallel()
	r := consumertest.New(t)
	r.Start()
	r.Start()
	r.WaitSubscribed(2)
	const users, each = 5, 100
	var all []consumertest.Message
	for u := range users {
		for _, m := range r.Votes(each, string(rune('a'+u))) {
			all = append(all, m, m) // one after the other: at the same moment, and most often to both
		}
	}
	r.Publish(all...)
	r.WaitAcked(2 * users * each)
	if got := r.Effects(); got != users*each {
		t.Errorf("%d messages have had their effect, want %d", got, users*each)
	}
	r.CheckStreams(users * each)
	t.Logf("%d deliveries, %d effects, %d duplicates seen", len(all), r.Effects(), r.Metric("rabbitmq_messages_duplicate_total"))
}

func TestStatusUpdatesGoFirst(t *testing.T) {
	t.Parallel()
	r := consumertest.New(t)
	_, stop := r.Start()
	r.WaitSubscribed(1)
	stop()
	const n = 1500 // long enough for both to be at it
	r.Publish(r.Votes(n, "alice")...)
	updates := make([]consumertest.Message, n)
	for i := range updates {
		updates[i] = r.Status("bob")
	}
	r.Publish(updates...)
	r.Start()
	r.WaitEffects(2 * n)
	votesBefore := r.Count(`
		select count(*) from notifications where type = 'report.vote.received' and created_at <
		  (select max(created_at) from notifications where type = 'report.status.updated')`)
	t.Logf("%d of %d votes were told before the last of %d status updates", votesBefore, n, n)
	// How few depends on how soon the broker sends more; side by side it is all.
	if votesBefore > n*9/10 {
		t.Errorf("%d of %d votes went before the last status update, want few", votesBefore, n)
	}
}

func TestStopLosesNothing(t *testing.T) {
	t.Parallel()
	r := consumertest.New(t)
	_, stop := r.Start()
	r.WaitSubscribed(1)
	const n = 2000
	r.Publish(r.Votes(n, "alice")...)
	stops := 1
	stop()
	for r.Effects() < n {
		_, stop := r.Start()
		before := r.Effects()
		r.Eventually("progress", func() string {
			if r.Effects() == before && before < n {
				return "none"
			}
			return ""
		})
		stop()
		stops++
	}
	r.CheckStreams(n)
	// What the broker sends while it handles our cancellation comes back.
	t.Logf("%d messages through %d stops under load, %d delivered again", n, stops, r.Metric("rabbitmq_messages_redelivered_total"))
}
