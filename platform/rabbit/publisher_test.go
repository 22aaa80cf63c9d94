package rabbit_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

const window = 64

func TestPublishWait(t *testing.T) {
	t.Parallel()
	conn := dial(t, rabbittest.Vhost(t))
	declareQueue(t, conn, "q")
	publisher := newPublisher(t, conn)

	for _, tt := range []struct {
		name, key string
		want      error
	}{
		{"routed", "q", nil},
		{"no queue", "nowhere", rabbit.ErrReturned},
	} {
		err := publisher.PublishWait(t.Context(), "", tt.key, message("x"))
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: PublishWait = %v, want %v", tt.name, err, tt.want)
		}
	}
}

// Returns must be pinned on the right messages, whoever publishes at the same
// time, and also where ids are missing.
func TestReturnsAreMatched(t *testing.T) {
	t.Parallel()
	const publishers, each = 8, 200
	conn := dial(t, rabbittest.Vhost(t))
	declareQueue(t, conn, "q")
	publisher := newPublisher(t, conn)

	var group sync.WaitGroup
	for p := range publishers {
		group.Go(func() {
			for i := range each {
				msg := message(fmt.Sprintf("%d/%d", p, i))
				key, want := "q", error(nil)
				if i%3 == 0 {
					key, want = "nowhere", rabbit.ErrReturned
				}
				if i%2 == 0 {
					msg.MessageId = ""
				}
				if err := publisher.PublishWait(t.Context(), "", key, msg); !errors.Is(err, want) {
					t.Errorf("message %d/%d to %q: %v, want %v", p, i, key, err, want)
				}
			}
		})
	}
	group.Wait()
}

// A message to which the broker would answer by closing the connection is refused
// before it gets there, and the publisher goes on.
func TestOversizeIsRefusedBeforeTheSocket(t *testing.T) {
	t.Parallel()
	conn := dial(t, rabbittest.Vhost(t))
	declareQueue(t, conn, "q")
	publisher := newPublisher(t, conn)

	for name, spoil := range map[string]func(*amqp.Publishing){
		"body":        func(m *amqp.Publishing) { m.Body = make([]byte, rabbit.MaxBody+1) },
		"header":      func(m *amqp.Publishing) { m.Headers = amqp.Table{"x": strings.Repeat("x", 200<<10)} },
		"deep header": func(m *amqp.Publishing) { m.Headers = amqp.Table{"x": []any{strings.Repeat("x", 20<<10)}} },
		"header type": func(m *amqp.Publishing) { m.Headers = amqp.Table{"x": struct{}{}} },
		"message id":  func(m *amqp.Publishing) { m.MessageId = strings.Repeat("x", 256) },
	} {
		msg := message("x")
		spoil(&msg)
		if err := publisher.PublishWait(t.Context(), "", "q", msg); !errors.Is(err, rabbit.ErrUnpublishable) {
			t.Errorf("%s: %v, want ErrUnpublishable", name, err)
		}
	}
	if err := publisher.PublishWait(t.Context(), "", strings.Repeat("k", 256), message("x")); !errors.Is(err, rabbit.ErrUnpublishable) {
		t.Errorf("routing key: %v, want ErrUnpublishable", err)
	}
	if err := publisher.PublishWait(t.Context(), "", "q", message("still alive")); err != nil {
		t.Errorf("after the refusals: %v, want success", err)
	}
}

// A queue that is full refuses with a nack.
func TestNack(t *testing.T) {
	t.Parallel()
	conn := dial(t, rabbittest.Vhost(t))
	err := rabbit.DeclareQueue(conn, "full", amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
	if err != nil {
		t.Fatal(err)
	}
	publisher := newPublisher(t, conn)
	if err := publisher.PublishWait(t.Context(), "", "full", message("fits")); err != nil {
		t.Fatalf("first message: %v", err)
	}
	if err := publisher.PublishWait(t.Context(), "", "full", message("too many")); !errors.Is(err, rabbit.ErrNacked) {
		t.Errorf("second message: %v, want ErrNacked", err)
	}
}

// After the broker closed a channel, no publish waits, and nothing is reported
// as done that is not.
func TestChannelErrorSettlesEverything(t *testing.T) {
	t.Parallel()
	conn := dial(t, rabbittest.Vhost(t))
	publisher := newPublisher(t, conn)
	for range 2 { // the second finds the channel closed
		err := publisher.PublishWait(t.Context(), "no-such-exchange", "q", message("x"))
		if err == nil || errors.Is(err, rabbit.ErrReturned) || errors.Is(err, rabbit.ErrNacked) {
			t.Errorf("publish to a missing exchange: %v, want an unknown outcome", err)
		}
	}
	publisher.Close()
}

func message(body string) amqp.Publishing {
	return amqp.Publishing{MessageId: uuid.NewString(), DeliveryMode: amqp.Persistent, Body: []byte(body)}
}

func dial(t *testing.T, url string) *amqp.Connection {
	t.Helper()
	conn, err := rabbit.Dial(t.Context(), rabbit.Config{URL: url, Name: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func declareQueue(t *testing.T, conn *amqp.Connection, name string) {
	t.Helper()
	if err := rabbit.DeclareQueue(conn, name, amqp.Table{"x-queue-type": "quorum"}); err != nil {
		t.Fatal(err)
	}
}

func newPublisher(t *testing.T, conn *amqp.Connection) *rabbit.Publisher {
	t.Helper()
	publisher, err := rabbit.NewPublisher(conn, window)
	if err != nil {
		t.Fatal(err)
	}
	return publisher
}
