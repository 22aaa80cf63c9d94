package consumer_test

import (
	"testing"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/notification-service/internal/consumer"
	"github.com/cityconnect/cityconnect/notification-service/internal/rigtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit/rabbittest"
)

func TestBrokerRestartedAndFull(t *testing.T) {
	t.Parallel()
	server := rabbittest.StartServer(t)
	r := rigtest.On(t, server.URL(), pgtest.Notification(t))
	published := 0
	publish := func(messages ...rigtest.Message) {
		r.Publish(messages...)
		published += len(messages)
	}
	_, stop := r.Start()
	r.WaitSubscribed(1)
	for _, end := range []func(){server.Stop, server.Kill} {
		publish(r.Votes(500, "alice")...)
		end()
		server.Start()
		publish(r.Votes(500, "alice")...)
		r.WaitEffects(published)
	}
	r.CheckStreams(published)
	t.Logf("restarted and killed under load: %d messages, %d effects", published, r.Effects())
	stop()
	diskAlarm(t, server, r, published)
}

// diskAlarm lets messages fail while the broker takes no publishes.
func diskAlarm(t *testing.T, server *rabbittest.Server, r *rigtest.Rig, before int) {
	const n, bad = 200, 20
	all := r.Votes(n, "alice")
	failing := make(map[string]bool)
	for _, m := range all[:bad] {
		failing[m.ID] = true
	}
	r.Publish(all...)
	server.SetDiskAlarm(true)
	s := &sick{Store: r.Store, fail: func(batch []consumer.Message) error {
		for _, m := range batch {
			if failing[m.ID] {
				return errTransient
			}
		}
		return nil
	}}
	r.Start(rigtest.WithStore(s), rigtest.WithTuning(func(c *consumer.Tuning) { c.MaxAttempts, c.Prefetch = 2, 50 }))
	r.WaitEffects(before + n - bad) // acknowledged on a connection that never publishes
	server.SetDiskAlarm(false)
	seen := make(map[string]bool)
	for _, letter := range r.DeadLetters(event.VoteReceivedKey, bad) {
		seen[letter.MessageId] = true
	}
	if len(seen) != bad {
		t.Errorf("%d dead letters, want %d", len(seen), bad)
	}
	r.CheckStreams(before + n - bad)
	t.Logf("disk alarm: %d messages, %d effects under the alarm, %d dead letters after it", n, n-bad, len(seen))
}
