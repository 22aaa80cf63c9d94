package monitor_test

import (
	"testing"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"

	"github.com/cityconnect/cityconnect/platform/monitor"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// The broker is read with the consumers of its queues, of which one is missing; and
// a broker that nobody can sign in to, or that is not there, has none.
func TestBroker(t *testing.T) {
	t.Parallel()
	url := rabbittest.Vhost(t)
	ch := rabbittest.Queues(t, url, "queue.work")
	b := monitor.NewBroker(rabbit.Config{URL: url, Name: "monitor"}, "queue.missing", "queue.work")
	t.Cleanup(b.Close)
	consumers := func(want int) func() bool {
		return func() bool {
			if r := b.Read(t.Context()); r.State != monitor.Good {
				t.Fatalf("the broker is %+v", r)
			}
			n, err := b.Consumers("queue.work")
			return err == nil && n == want
		}
	}
	eventually.True(t, "nobody consumes", consumers(0))
	if _, err := ch.Consume("queue.work", "", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "somebody consumes", consumers(1))
	if n, err := b.Consumers("queue.missing"); n != 0 || err != nil {
		t.Errorf("a missing queue has %d consumers (error %v), want none", n, err)
	}
	if _, err := ch.QueueDeclare("queue.missing", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.Consume("queue.missing", "", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a queue that was missing is seen", func() bool {
		_ = b.Read(t.Context())
		n, err := b.Consumers("queue.missing")
		return err == nil && n == 1
	})
	_ = ch.Close()
	eventually.True(t, "nobody consumes any longer", consumers(0))

	away := monitor.NewBroker(rabbit.Config{URL: "amqp://127.0.0.1:1/"}, "queue.work")
	if r := away.Read(t.Context()); r.State != monitor.Bad || r.Cause != monitor.Refused {
		t.Errorf("where no broker is it is %+v, want refused", r)
	}
	if _, err := away.Consumers("queue.work"); err == nil {
		t.Error("consumers of a broker that does not answer are known")
	}
}

// An account without any right has a broker that is good. Whether it sees the consumers
// of a queue depends on the broker's version; it does not prove that there are none.
func TestBrokerWithoutRights(t *testing.T) {
	t.Parallel()
	url := rabbittest.Vhost(t)
	ch := rabbittest.Queues(t, url, "queue.work")
	if _, err := ch.Consume("queue.work", "", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	b := monitor.NewBroker(rabbit.Config{URL: rabbittest.User(t, url, rabbithole.Permissions{Configure: "^$", Write: "^$", Read: "^$"}), Name: "monitor"}, "queue.work")
	t.Cleanup(b.Close)
	for range 3 {
		if r := b.Read(t.Context()); r.State != monitor.Good {
			t.Fatalf("the broker is %+v, want good", r)
		}
		if n, err := b.Consumers("queue.work"); err == nil && n != 1 {
			t.Errorf("%d consumers, want 1 or an error", n)
		}
	}
}
