package relay_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// A message carries the properties of the contract.
func TestMessageProperties(t *testing.T) {
	t.Parallel()
	pool, url := pgtest.Report(t), rabbittest.Vhost(t)
	bindQueue(t, url, event.StatusUpdatedKey)
	row := newRow(uuid.New(), 1)
	row.key = event.StatusUpdatedKey
	row.headers = `{"traceparent": "00-1-2-01", "x-recipient": "v1.k1.sealed"}`
	insert(t, pool, row)
	start(t, pool, url)

	d := receiveOne(t, url, event.Topology{}.Queue(event.StatusUpdatedKey))
	if d.MessageId != row.id.String() || d.Type != string(row.key) || d.ContentType != "application/json" ||
		d.DeliveryMode != amqp.Persistent || d.AppId != "report-service" || time.Since(d.Timestamp) > time.Hour {
		t.Errorf("properties %q %q %q %d %q %v, want those of the contract",
			d.MessageId, d.Type, d.ContentType, d.DeliveryMode, d.AppId, d.Timestamp)
	}
	if d.Headers["traceparent"] != "00-1-2-01" || d.Headers["x-recipient"] != "v1.k1.sealed" || len(d.Headers) != 2 {
		t.Errorf("headers %v, want the row's", d.Headers)
	}
	if string(d.Body) != row.payload {
		t.Errorf("body %s, want %s", d.Body, row.payload)
	}
}

func receiveOne(t *testing.T, url, queue string) amqp.Delivery {
	t.Helper()
	return next(t, consume(t, url, queue))
}

// consume returns what comes to a queue until the test ends.
func consume(t *testing.T, url, queue string) <-chan amqp.Delivery {
	t.Helper()
	conn, err := rabbit.Dial(t.Context(), rabbit.Config{URL: url, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume(queue, "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return deliveries
}

// next returns the next delivery.
func next(t *testing.T, deliveries <-chan amqp.Delivery) amqp.Delivery {
	t.Helper()
	select {
	case d := <-deliveries:
		return d
	case <-time.After(testTimeout):
		t.Fatal("no message came")
		panic("unreachable")
	}
}
