package relay_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// A receiver is what arrived in a queue, by report, in order.
type receiver struct {
	mu      sync.Mutex
	seen    map[uuid.UUID]int // by message id
	last    map[uuid.UUID]int64
	arrived chan struct{} // holds a value after every change

	// Messages that the broker delivers again, because the receiver lost its connection
	// before its acknowledgements arrived, count as neither: they were published once.
	inverted, doubled int
}

// receive reads key's queue until the test ends, over restarts of the broker. It
// does not spare a broker that is away, as the relay does, so as to be there
// when the broker is.
func receive(t testing.TB, url string, key event.Key) *receiver {
	t.Helper()
	c := &receiver{seen: make(map[uuid.UUID]int), last: make(map[uuid.UUID]int64), arrived: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if conn, err := rabbit.Dial(ctx, rabbit.Config{URL: url, Name: "receiver", Heartbeat: time.Second}); err == nil {
				cut := context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(time.Now()) })
				_ = c.consume(conn, event.Topology{}.Queue(key)) // it ends with the broker
				cut()
				_ = conn.CloseDeadline(time.Now().Add(time.Second))
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return c
}

func (c *receiver) consume(conn *amqp.Connection, queue string) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Qos(500, 0, false); err != nil {
		return err
	}
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	for d := range deliveries {
		c.take(d)
		if err := d.Ack(false); err != nil {
			return err
		}
	}
	return nil
}

func (c *receiver) take(d amqp.Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := uuid.MustParse(d.MessageId)
	c.seen[id]++
	switch {
	case d.Redelivered:
	case c.seen[id] > 1:
		c.doubled++
	default:
		var body struct {
			ReportID uuid.UUID `json:"report_id"`
			Version  int64     `json:"report_version"`
		}
		_ = json.Unmarshal(d.Body, &body)
		if body.Version < c.last[body.ReportID] {
			c.inverted++
		}
		c.last[body.ReportID] = max(c.last[body.ReportID], body.Version)
	}
	select {
	case c.arrived <- struct{}{}:
	default:
	}
}

// wait returns once all rows have arrived.
func (c *receiver) wait(t testing.TB, rows []outboxRow) {
	t.Helper()
	deadline := time.After(testTimeout)
	for left := c.behind(rows); len(left) > 0; left = c.behind(left) {
		select {
		case <-c.arrived:
		case <-deadline:
			t.Fatalf("%d of %d rows did not arrive", c.missing(rows), len(rows))
		}
	}
}

// behind returns rows without those in front that have arrived. Looking at all
// of them for each message that comes would keep a processor busy.
func (c *receiver) behind(rows []outboxRow) []outboxRow {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(rows) > 0 && c.seen[rows[0].id] > 0 {
		rows = rows[1:]
	}
	return rows
}

func (c *receiver) missing(rows []outboxRow) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	missing := 0
	for _, r := range rows {
		if c.seen[r.id] == 0 {
			missing++
		}
	}
	return missing
}

func (c *receiver) figures() (seen, doubled, inverted int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen), c.doubled, c.inverted
}
