package consumer

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// brittleConn is a connection whose next write ends it, once it is broken.
type brittleConn struct {
	net.Conn
	broken *atomic.Bool
}

func (c brittleConn) Write(b []byte) (int, error) {
	if c.broken.Load() {
		_ = c.Conn.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// A queue is gone only if the broker says so, by 404: neither a connection that ends with
// the question under way nor any other refusal means that the queue was deleted.
func TestQueueIsGoneOnlyByNotFound(t *testing.T) {
	t.Parallel()
	url := rabbittest.Vhost(t)
	other, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ch, err := other.Channel()
	if err != nil {
		t.Fatal(err)
	}
	for name, exclusive := range map[string]bool{"there": false, "locked": true} {
		if _, err := ch.QueueDeclare(name, !exclusive, false, exclusive, false, nil); err != nil {
			t.Fatal(err)
		}
	}

	var broken atomic.Bool
	conn, err := amqp.DialConfig(url, amqp.Config{Dial: func(network, addr string) (net.Conn, error) {
		c, err := net.DialTimeout(network, addr, 10*time.Second)
		return brittleConn{c, &broken}, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w := &queueWatch{conn: conn, absent: make(map[string]time.Time)}
	for _, step := range []struct {
		queue string
		ends  bool // the connection, with the question under way
		there bool
		err   error
	}{
		{queue: "there", there: true},
		{queue: "missing"},
		{queue: "locked", err: errUnanswered},
		{queue: "there", there: true},
		{queue: "there", ends: true, err: errUnanswered},
	} {
		broken.Store(step.ends)
		if _, there, err := w.look(step.queue, false); there != step.there || !errors.Is(err, step.err) {
			t.Errorf("%+v: there %t, error %v", step, there, err)
		}
	}
}
