package rabbit_test

import (
	"errors"
	"strings"
	"testing"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

func TestDeclareTwice(t *testing.T) {
	t.Parallel()
	conn := dial(t, rabbittest.Vhost(t))
	for range 2 {
		if err := rabbit.DeclareExchange(conn, "x", "topic"); err != nil {
			t.Errorf("DeclareExchange: %v", err)
		}
		if err := rabbit.DeclareQueue(conn, "q", amqp.Table{"x-queue-type": "quorum"}); err != nil {
			t.Errorf("DeclareQueue: %v", err)
		}
		if err := rabbit.BindQueue(conn, "q", "#", "x"); err != nil {
			t.Errorf("BindQueue: %v", err)
		}
	}
	d := rabbit.NewDeclarer(conn)
	defer d.Close()
	for range 2 {
		if err := d.Unbind("q", "#", "x"); err != nil {
			t.Errorf("Unbind: %v", err)
		}
	}
	if err := newPublisher(t, conn).PublishWait(t.Context(), "x", "key", message("for nobody")); !errors.Is(err, rabbit.ErrReturned) {
		t.Errorf("after Unbind: %v, want that nobody takes the message", err)
	}
}

func TestHasQueue(t *testing.T) {
	t.Parallel()
	conn := dial(t, rabbittest.Vhost(t))
	d := rabbit.NewDeclarer(conn)
	defer d.Close()
	if exists, err := d.HasQueue("q"); exists || err != nil {
		t.Errorf("before it was declared: %t (error %v), want false", exists, err)
	}
	declareQueue(t, conn, "q")
	if exists, err := d.HasQueue("q"); !exists || err != nil {
		t.Errorf("after it was declared: %t (error %v), want true", exists, err)
	}
}

// Where the operator made everything and gave no right to configure it, declaring
// finds it. Anything that is missing is an error.
func TestDeclareWhatTheOperatorMade(t *testing.T) {
	t.Parallel()
	vhost := rabbittest.Vhost(t)
	made := dial(t, vhost)
	declareQueue(t, made, "q")
	if err := rabbit.DeclareExchange(made, "x", "topic"); err != nil {
		t.Fatal(err)
	}
	d := rabbit.NewDeclarer(dial(t, rabbittest.User(t, vhost, rabbithole.Permissions{Configure: "^$", Write: ".*", Read: ".*"})))
	defer d.Close()
	for name, err := range map[string]error{
		"queue":          d.Queue("q", amqp.Table{"x-queue-type": "quorum"}),
		"exchange":       d.Exchange("x", "topic"),
		"after refusals": d.Bind("q", "#", "x"),
	} {
		if err != nil {
			t.Errorf("%s: %v, want none", name, err)
		}
	}
	if err := d.Queue("missing", nil); err == nil || !strings.Contains(err.Error(), "ACCESS_REFUSED") {
		t.Errorf("a queue that is not there: %v, want that the broker refuses to make it", err)
	}
}

// A mismatch is explained, and what exists is left as it is.
func TestDeclareMismatch(t *testing.T) {
	t.Parallel()
	conn := dial(t, rabbittest.Vhost(t))
	declareQueue(t, conn, "q")
	if err := newPublisher(t, conn).PublishWait(t.Context(), "", "q", message("precious")); err != nil {
		t.Fatal(err)
	}
	if err := rabbit.DeclareExchange(conn, "x", "fanout"); err != nil {
		t.Fatal(err)
	}

	for name, err := range map[string]error{
		"q": rabbit.DeclareQueue(conn, "q", amqp.Table{"x-queue-type": "classic"}),
		"x": rabbit.DeclareExchange(conn, "x", "topic"),
	} {
		mismatch, ok := errors.AsType[*rabbit.MismatchError](err)
		if !ok || mismatch.Name != name || !strings.Contains(err.Error(), "TOPOLOGY_PREFIX") {
			t.Errorf("declare %s: %v, want a MismatchError that says what to do", name, err)
		}
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	q, err := ch.QueueDeclarePassive("q", true, false, false, false, nil)
	if err != nil || q.Messages != 1 {
		t.Errorf("after the mismatch the queue holds %d messages (error %v), want 1", q.Messages, err)
	}
}
