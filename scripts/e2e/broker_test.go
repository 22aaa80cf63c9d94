package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// topology has the plain names: each test owns its virtual host.
var topology event.Topology

// channel returns a channel of the test's own at the stack's broker.
func (c *stack) channel() *amqp.Channel {
	c.t.Helper()
	conn, err := amqp.Dial(c.brokerURL)
	if err != nil {
		c.t.Fatalf("dial broker: %v", err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		c.t.Fatalf("open channel: %v", err)
	}
	return ch
}

// publish sends msg to the services' exchange and waits for the confirm.
func (c *stack) publish(ch *amqp.Channel, key event.Key, msg amqp.Publishing) {
	c.t.Helper()
	if err := ch.Confirm(false); err != nil {
		c.t.Fatalf("confirm mode: %v", err)
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), eventually.Patience)
	defer cancel()
	returned := ch.NotifyReturn(make(chan amqp.Return, 1))
	confirm, err := ch.PublishWithDeferredConfirmWithContext(ctx, topology.Exchange(), string(key), true, false, msg)
	if err != nil {
		c.t.Fatalf("publish: %v", err)
	}
	if acked, err := confirm.WaitContext(ctx); err != nil || !acked {
		c.t.Fatalf("publish: acked %t, error %v", acked, err)
	}
	select { // a return precedes its confirm
	case r := <-returned:
		c.t.Fatalf("publish: %s by %s", r.ReplyText, r.RoutingKey)
	default:
	}
}

// awaitConsumers returns when each main queue is declared and consumed, for
// tests that publish past the relay, which would wait by itself.
func (c *stack) awaitConsumers() {
	c.t.Helper()
	var queues []string
	for _, key := range event.Keys() {
		queues = append(queues, topology.Queue(key))
	}
	c.awaitConsumersOf(queues...)
}

// awaitConsumersOf returns when each of the queues is there and has a consumer.
func (c *stack) awaitConsumersOf(queues ...string) {
	c.t.Helper()
	conn, err := amqp.Dial(c.brokerURL)
	if err != nil {
		c.t.Fatalf("dial broker: %v", err)
	}
	defer func() { _ = conn.Close() }()
	for _, queue := range queues {
		eventually.True(c.t, queue+" is consumed", func() bool {
			ch, err := conn.Channel() // a queue that is not there closes it
			if err != nil {
				return false
			}
			defer func() { _ = ch.Close() }()
			q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
			return err == nil && q.Consumers > 0
		})
	}
}

// message returns what report-service would send about a report of user, who
// is named in the sealed header alone.
func (c *stack) message(key event.Key, report uuid.UUID, user, body string) amqp.Publishing {
	return amqp.Publishing{
		MessageId: uuid.NewString(), Type: string(key), ContentType: "application/json",
		Timestamp: time.Now(), DeliveryMode: amqp.Persistent, AppId: "report-service",
		Headers: amqp.Table{event.RecipientHeader: c.keyring.Seal(report, user)},
		Body:    []byte(body),
	}
}

// voteBody is the body of a vote on report.
func voteBody(report uuid.UUID, version int64) string {
	return fmt.Sprintf(`{"report_id":%q,"report_version":%d,"report_title":"Dark crossing","voter_id":"v","vote_type":"upvote","new_score":1,"timestamp":%d}`,
		report, version, time.Now().Unix())
}

// A spy has a copy of everything that goes through an exchange.
type spy struct {
	mu      sync.Mutex
	seen    []amqp.Delivery
	changed chan struct{}
}

// spyOn listens at an exchange until the test ends.
func (c *stack) spyOn(exchange string) *spy {
	c.t.Helper()
	eventually.True(c.t, "the exchange "+exchange+" is there", func() bool {
		return c.channel().ExchangeDeclarePassive(exchange, amqp.ExchangeFanout, true, false, false, false, nil) == nil // of whatever kind
	})
	ch, s := c.channel(), &spy{changed: make(chan struct{})}
	queue, err := ch.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		c.t.Fatalf("declare the spy's queue: %v", err)
	}
	if err := ch.QueueBind(queue.Name, "#", exchange, false, nil); err != nil {
		c.t.Fatalf("bind the spy's queue: %v", err)
	}
	deliveries, err := ch.Consume(queue.Name, "", true, true, false, false, nil)
	if err != nil {
		c.t.Fatalf("consume the spy's queue: %v", err)
	}
	go func() { // ends with the connection
		for d := range deliveries {
			s.mu.Lock()
			s.seen = append(s.seen, d)
			close(s.changed)
			s.changed = make(chan struct{})
			s.mu.Unlock()
		}
	}()
	return s
}

// all returns what was seen so far, and a channel that closes with the next.
func (s *spy) all() ([]amqp.Delivery, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[:len(s.seen):len(s.seen)], s.changed
}

// await returns the first message with the given id that passes or passed.
func (s *spy) await(t *testing.T, id string) amqp.Delivery {
	t.Helper()
	late := time.After(eventually.Patience)
	for {
		seen, changed := s.all()
		for _, d := range seen {
			if d.MessageId == id {
				return d
			}
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("no message %q among %d", id, len(seen))
		}
	}
}

// vhost returns the name of the stack's virtual host.
func (c *stack) vhost() string {
	name := strings.TrimPrefix(must(url.Parse(c.brokerURL)).Path, "/")
	if name == "" {
		return "/"
	}
	return name
}

// queues lists the stack's queues.
func (c *stack) queues() []rabbithole.QueueInfo {
	c.t.Helper()
	// Statistics lag; without them the counts are those of this moment.
	now := url.Values{"disable_stats": {"true"}, "enable_queue_totals": {"true"}}
	all, err := rabbittest.Management(c.t, c.managementURL).ListQueuesWithParametersIn(c.vhost(), now)
	if err != nil {
		c.t.Fatalf("list queues: %v", err)
	}
	return all
}

// rawManagement returns what the management API answers byte by byte: a client
// with types would leave out what it does not know. A %s in path stands for the
// virtual host.
func (c *stack) rawManagement(method, path, body string) []byte {
	c.t.Helper()
	path = strings.ReplaceAll(path, "%s", url.PathEscape(c.vhost()))
	req := must(http.NewRequestWithContext(c.t.Context(), method, c.managementURL+path, strings.NewReader(body)))
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	answer := must(io.ReadAll(res.Body))
	if res.StatusCode/100 != 2 {
		c.t.Fatalf("%s %s: %s: %s", method, path, res.Status, answer)
	}
	return answer
}
