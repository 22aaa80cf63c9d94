package e2e

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// The broker delivers at least once; the effect is exactly once.
func TestMessageTwiceHasOneEffect(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana, report := c.userOf("ana", "resident"), uuid.New()
	anas := watch(t, ana)

	first := c.message(event.VoteReceivedKey, report, ana.ID, voteBody(report, 1))
	ch := c.channel()
	c.publish(ch, event.VoteReceivedKey, first)
	anas.await(1)
	c.publish(ch, event.VoteReceivedKey, first) // long after its effect

	second := c.message(event.VoteReceivedKey, report, ana.ID, voteBody(report, 2))
	var wg sync.WaitGroup
	for range 8 { // all at once
		ch := c.channel()
		wg.Go(func() { c.publish(ch, event.VoteReceivedKey, second) })
	}
	wg.Wait()
	c.publish(ch, event.VoteReceivedKey, c.message(event.VoteReceivedKey, report, ana.ID, voteBody(report, 3)))
	anas.check([]sight{{voted, report, 1}, {voted, report, 2}, {voted, report, 3}})

	c.awaitQueuesEmpty()
	anas.check([]sight{{voted, report, 1}, {voted, report, 2}, {voted, report, 3}})
	var processed int
	err := c.notificationDB.QueryRow(t.Context(), `select count(*) from processed_messages`).Scan(&processed)
	if err != nil || processed != 3 {
		t.Errorf("%d messages count as processed (error: %v), want 3", processed, err)
	}
}

// awaitQueuesEmpty returns when no message waits in a main queue, neither
// ready nor unacknowledged.
func (c *stack) awaitQueuesEmpty() {
	c.t.Helper()
	eventually.True(c.t, "the queues are empty", func() bool {
		for _, q := range c.queues() {
			if strings.HasPrefix(q.Name, "queue.") && q.Messages > 0 {
				return false
			}
		}
		return true
	})
}
