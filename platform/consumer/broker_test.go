package consumer_test

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

func TestBrokerRestartedAndFull(t *testing.T) {
	t.Parallel()
	server := rabbittest.StartServer(t)
	h := consumertest.On(t, server.URL(), pgtest.Notification(t))
	published := 0
	publish := func(messages ...consumertest.Message) {
		h.Publish(messages...)
		published += len(messages)
	}
	for _, end := range []func(){server.Stop, server.Kill} {
		_, stop := h.Start() // a fresh one: outages in a row make it wait for longer each time
		h.WaitSubscribed(1)
		publish(h.Votes(500, "alice")...)
		end()
		server.Start()
		publish(h.Votes(500, "alice")...)
		h.WaitEffects(published)
		stop()
	}
	h.CheckEffects(published)
	t.Logf("restarted and killed under load: %d messages, %d effects", published, h.Effects())
	diskAlarm(t, server, h, published)
}

// diskAlarm lets messages fail while the broker takes no publishes.
func diskAlarm(t *testing.T, server *rabbittest.Server, h *consumertest.Harness, before int) {
	const n, bad = 200, 20
	all := h.Votes(n, "alice")
	failing := make(map[string]bool)
	for _, m := range all[:bad] {
		failing[m.ID] = true
	}
	h.Publish(all...)
	server.SetDiskAlarm(true)
	s := &failingEffect{Effect: consumertest.Effect(h.Pool), fail: func(batch []consumer.Message) error {
		for _, m := range batch {
			if failing[m.ID] {
				return errTransient
			}
		}
		return nil
	}}
	h.Start(consumertest.WithEffect(s), consumertest.WithConfig(func(c *consumer.Config) { c.MaxAttempts, c.Prefetch = 2, 50 }))
	h.WaitEffects(before + n - bad) // acknowledged on a connection that never publishes
	server.SetDiskAlarm(false)
	seen := make(map[string]bool)
	for _, letter := range h.DeadLetters(event.VoteReceivedKey, bad) {
		seen[letter.MessageId] = true
	}
	if len(seen) != bad {
		t.Errorf("%d dead letters, want %d", len(seen), bad)
	}
	h.CheckEffects(before + n - bad)
	t.Logf("disk alarm: %d messages, %d effects under the alarm, %d dead letters after it", n, n-bad, len(seen))
}

// TestConnectionHangs: the broker sends heartbeats on it, and nothing else. The
// consumer gives it up and goes on with another. What the broker had given to the
// one that hangs stays there until its processes end.
func TestConnectionHangs(t *testing.T) {
	t.Parallel()
	server := rabbittest.StartServer(t)
	h := consumertest.On(t, server.URL(), pgtest.Notification(t))
	h.Start()
	h.WaitSubscribed(1)
	server.Hang()
	h.Publish(h.Votes(100, "alice")...)
	h.Eventually("effects", func() string {
		if n := h.Effects(); n < 100-consumer.Defaults().Prefetch {
			return fmt.Sprint(n)
		}
		return ""
	})
}

// TestRetryQueuesKeepTheirTime needs thirty seconds, like the longest delay. It
// stands in this file to be among the first that start.
func TestRetryQueuesKeepTheirTime(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	_, stop := h.Start()
	h.WaitSubscribed(1)
	stop()
	ch := h.Channel()
	back, err := ch.QueueDeclare("back", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume(back.Name, "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	send := func(delay string) {
		err := ch.PublishWithContext(t.Context(), h.Topology.Retry(delay), back.Name, true, false, amqp.Publishing{
			MessageId: delay, Timestamp: time.Now(), Headers: amqp.Table{"sent": time.Now().Format(time.RFC3339Nano)},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	send("30s")
	send("1s")
	rounds := 0
	for d := range deliveries {
		sent, _ := time.Parse(time.RFC3339Nano, d.Headers["sent"].(string))
		want, _ := time.ParseDuration(d.MessageId)
		took := time.Since(sent)
		if took < want {
			t.Errorf("a retry of %s took %s", want, took)
		}
		if d.MessageId == "30s" {
			t.Logf("a retry of 30 s among %d of 1 s took %s", rounds, took)
			if rounds == 0 {
				t.Error("no retry of 1 s came back before the one of 30 s")
			}
			return
		}
		rounds++
		send("1s")
	}
}
