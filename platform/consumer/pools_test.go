package consumer_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
)

func TestPoolChangesUnderLoadInTwoReplicas(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	first, _ := h.Start()
	h.Start()
	h.WaitSubscribed(2)
	queue := h.Topology.Queue(event.VoteReceivedKey)
	published := 0
	for _, concurrency := range []int{8, 1, 8, 1} {
		const n = 1500
		h.Publish(h.Votes(n, "alice")...)
		published += n
		began := time.Now()
		change := consumer.PoolChange{Concurrency: &concurrency}
		if _, err := first.ChangePool(t.Context(), "operator", queue, change); err != nil {
			t.Fatal(err)
		}
		h.EventuallyEqual("consumers", 2*concurrency, func() int {
			q, _ := h.Inspect(queue)
			return q.Consumers
		})
		t.Logf("%d workers in each of two replicas after %s", concurrency, time.Since(began).Round(time.Millisecond))
	}
	h.WaitEffects(published)
	h.CheckEffects(published)
	if got := h.Count(`select count(*) from operations_audit where action = 'change_pool' and actor = 'operator'`); got != 4 {
		t.Errorf("%d audit lines, want 4", got)
	}
}

func TestPausedPoolTakesNothing(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	c, stop := h.Start()
	h.WaitSubscribed(1)
	queue := h.Topology.Queue(event.VoteReceivedKey)
	pause := func(c *consumer.Consumer, paused bool) {
		t.Helper()
		if _, err := c.ChangePool(t.Context(), "operator", queue, consumer.PoolChange{Paused: &paused}); err != nil {
			t.Fatal(err)
		}
	}
	pause(c, true)
	gone := func() int { q, _ := h.Inspect(queue); return q.Consumers }
	h.EventuallyEqual("consumers", 0, gone)
	stop()
	c, _ = h.Start() // the pause outlives the process
	h.Publish(h.Votes(20, "alice")...)
	h.Publish(h.Status("alice"))
	h.WaitEffects(1)
	if got := c.Pools()[2]; got.Workers != 0 || !got.Paused {
		t.Errorf("the paused pool has %d workers", got.Workers)
	}
	pause(c, false)
	h.WaitEffects(21)
}

// Messages that wait where no worker reads are counted: in the retry queues, and as
// dead letters that nobody archives.
func TestWaitingQueues(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	c, _ := h.Start()
	h.WaitSubscribed(1)
	unreadable := h.Vote("alice")
	unreadable.ID = ""
	h.Publish(unreadable)
	queue, ch := h.Topology.Queue(event.VoteReceivedKey), h.Channel()
	for range 3 {
		if err := ch.PublishWithContext(t.Context(), h.Topology.Retry("30s"), queue, false, false, amqp.Publishing{}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int64{h.Topology.Retry("30s"): 3, h.Topology.DeadLetterQueue(queue): 1}
	h.Eventually("what waits", func() string {
		got := make(map[string]int64)
		for _, q := range c.Waiting() {
			if q.Depth > 0 {
				got[q.Name] = q.Depth
			}
		}
		if !maps.Equal(got, want) {
			return fmt.Sprint(got)
		}
		return ""
	})
	h.EventuallyEqual("messages in the retry queues, as exported", 3, func() int { return h.Metric("consumer_retry_queue_waiting") })
}

func TestPoolOutOfRange(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	c, _ := h.Start()
	if _, err := c.ChangePool(t.Context(), "operator", h.Topology.Queue(event.VoteReceivedKey), consumer.PoolChange{Concurrency: new(65)}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("65 workers: %v, want an error of kind invalid", err)
	}
	if _, err := c.ChangePool(t.Context(), "operator", "other", consumer.PoolChange{}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("unknown queue: %v", err)
	}
}
