package consumer_test

import (
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/notification-service/internal/consumer"
	"github.com/cityconnect/cityconnect/notification-service/internal/consumertest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
)

func TestPoolChangesUnderLoadInTwoReplicas(t *testing.T) {
	t.Parallel()
	r := consumertest.New(t)
	first, _ := r.Start()
	r.Start()
	r.WaitSubscribed(2)
	queue := r.Topology.Queue(event.VoteReceivedKey)
	published := 0
	for _, concurrency := range []int{8, 1, 8, 1} {
		const n = 1500
		r.Publish(r.Votes(n, "alice")...)
		published += n
		began := time.Now()
		change := consumer.PoolChange{Concurrency: &concurrency}
		if _, err := first.ChangePool(t.Context(), "operator", queue, change); err != nil {
			t.Fatal(err)
		}
		r.EventuallyEqual("consumers", 2*concurrency, func() int {
			q, _ := r.Inspect(queue)
			return q.Consumers
		})
		t.Logf("%d workers in each of two replicas after %s", concurrency, time.Since(began).Round(time.Millisecond))
	}
	r.WaitEffects(published)
	r.CheckStreams(published)
	if got := r.Count(`select count(*) from operations_audit where action = 'change_pool' and actor = 'operator'`); got != 4 {
		t.Errorf("%d audit lines, want 4", got)
	}
}

func TestPausedPoolTakesNothing(t *testing.T) {
	t.Parallel()
	r := consumertest.New(t)
	c, stop := r.Start()
	r.WaitSubscribed(1)
	queue := r.Topology.Queue(event.VoteReceivedKey)
	pause := func(c *consumer.Consumer, paused bool) {
		t.Helper()
		if _, err := c.ChangePool(t.Context(), "operator", queue, consumer.PoolChange{Paused: &paused}); err != nil {
			t.Fatal(err)
		}
	}
	pause(c, true)
	gone := func() int { q, _ := r.Inspect(queue); return q.Consumers }
	r.EventuallyEqual("consumers", 0, gone)
	stop()
	c, _ = r.Start() // the pause outlives the process
	r.Publish(r.Votes(20, "alice")...)
	r.Publish(r.Status("alice"))
	r.WaitEffects(1)
	if got := c.Pools()[2]; got.Workers != 0 || !got.Paused {
		t.Errorf("the paused pool has %d workers", got.Workers)
	}
	pause(c, false)
	r.WaitEffects(21)
}

func TestPoolOutOfRange(t *testing.T) {
	t.Parallel()
	r := consumertest.New(t)
	c, _ := r.Start()
	if _, err := c.ChangePool(t.Context(), "operator", r.Topology.Queue(event.VoteReceivedKey), consumer.PoolChange{Concurrency: new(65)}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("65 workers: %v, want an error of kind invalid", err)
	}
	if _, err := c.ChangePool(t.Context(), "operator", "other", consumer.PoolChange{}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("unknown queue: %v", err)
	}
}
