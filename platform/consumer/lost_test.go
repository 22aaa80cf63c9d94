package consumer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
)

// A queue that is deleted with a backlog is declared again within a second. What
// it held is remembered as lost, until somebody has it published again from early
// enough.
func TestDeletedQueueIsRemembered(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	h := consumertest.New(t, pool)
	_, stop := h.Start()
	h.WaitSubscribed(1)
	h.Publish(h.Vote("ann"))
	h.WaitEffects(1)
	queue := h.Topology.Queue(event.VoteReceivedKey)
	if _, err := h.Channel().QueueDelete(queue, false, false, false); err != nil {
		t.Fatal(err)
	}
	lost := func() []consumer.LostQueue {
		t.Helper()
		all, err := consumer.LostQueues(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	h.EventuallyEqual("queues that were lost", 1, func() int { return len(lost()) })
	h.Eventually("the queue is there again", func() string {
		if _, err := h.Inspect(queue); err != nil {
			return err.Error()
		}
		return ""
	})
	stop()
	l := lost()[0]
	if age := time.Since(l.Since); l.Queue != queue || age < 0 || age > 73*time.Hour {
		t.Errorf("lost %+v", l)
	}
	left, err := consumer.Republished(t.Context(), pool, "ann", l.Since.Add(time.Second))
	if err != nil || len(left) != 1 || len(lost()) != 1 {
		t.Errorf("published again from too late: left %v (error %v)", left, err)
	}
	left, err = consumer.Republished(t.Context(), pool, "ann", l.Since)
	if err != nil || len(left) != 0 || len(lost()) != 0 {
		t.Errorf("published again: left %v, remembered %v (error %v)", left, lost(), err)
	}
}

// Nobody declares it again before its loss is noted, whatever is repaired first: a
// message that finds no queue, or another queue's subscription.
func TestLossIsNotedBeforeARepair(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	h := consumertest.New(t, pool)
	_, stop := h.Start()
	defer stop()
	h.WaitSubscribed(1)
	queue, other := h.Topology.Queue(event.VoteReceivedKey), h.Topology.Queue(event.StatusUpdatedKey)
	_, err := pool.Exec(t.Context(), `insert into worker_pools (queue, concurrency, prefetch, paused) values ($1, 1, 10, true)`, queue)
	if err != nil {
		t.Fatal(err)
	}
	h.Eventually("nobody reads the queue", func() string {
		if q, err := h.Inspect(queue); err != nil || q.Consumers > 0 {
			return fmt.Sprintf("%+v (error %v)", q, err)
		}
		return ""
	})
	for _, name := range []string{queue, other} {
		if _, err := h.Channel().QueueDelete(name, false, false, false); err != nil {
			t.Fatal(err)
		}
	}
	h.Eventually("the queue is there again", func() string {
		if _, err := h.Inspect(queue); err != nil {
			return err.Error()
		}
		return ""
	})
	h.EventuallyEqual("queues that were lost", 2, func() int {
		lost, err := consumer.LostQueues(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		return len(lost)
	})
}

// So is one that was deleted while its workers were paused, and no subscription
// declares it: what is published again finds it.
func TestDeletedQueueIsThereWhilePaused(t *testing.T) {
	t.Parallel()
	pool := pgtest.Notification(t)
	h := consumertest.New(t, pool)
	h.Start()
	h.WaitSubscribed(1)
	queue := h.Topology.Queue(event.VoteReceivedKey)
	_, err := pool.Exec(t.Context(), `insert into worker_pools (queue, concurrency, prefetch, paused) values ($1, 1, 10, true)`, queue)
	if err != nil {
		t.Fatal(err)
	}
	h.Eventually("nobody reads the queue", func() string {
		if q, err := h.Inspect(queue); err != nil || q.Consumers > 0 {
			return fmt.Sprintf("%+v (error %v)", q, err)
		}
		return ""
	})
	if _, err := h.Channel().QueueDelete(queue, false, false, false); err != nil {
		t.Fatal(err)
	}
	h.EventuallyEqual("queues that were lost", 1, func() int {
		lost, err := consumer.LostQueues(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		return len(lost)
	})
	// It is declared before it is bound: what is published between the two is not in it.
	h.Eventually("the queue is there again, and has what is published", func() string {
		h.Publish(h.Vote("ann"))
		if q, err := h.Inspect(queue); err != nil || q.Messages == 0 || q.Consumers != 0 {
			return fmt.Sprintf("%+v (error %v)", q, err)
		}
		return ""
	})
}
