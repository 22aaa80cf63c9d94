package forwarder_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/forwarder"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/rabbittest"
)

// A harness is a forwarder behind a proxy, and a channel past the proxy.
type harness struct {
	*forwarder.Forwarder
	t       *testing.T
	proxy   *proxy
	direct  *amqp.Channel
	metrics *prometheus.Registry
	lost    chan [2]string // what found no queue
}

// newHarness runs a forwarder until t ends.
func newHarness(t *testing.T) *harness {
	t.Helper()
	url := rabbittest.Vhost(t)
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	h := &harness{t: t, proxy: newProxy(t, url), metrics: prometheus.NewRegistry(), lost: make(chan [2]string, 100)}
	if h.direct, err = conn.Channel(); err != nil {
		t.Fatal(err)
	}
	h.Forwarder = forwarder.New(rabbit.Config{URL: h.proxy.url, Name: t.Name(), Log: zerolog.Nop()}, h.metrics,
		func(exchange, key string) { h.lost <- [2]string{exchange, key} })
	return h
}

// run runs the forwarder until t ends.
func (h *harness) run() *harness {
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := h.Run(ctx); err != nil {
			h.t.Errorf("Run: %v", err)
		}
	})
	h.t.Cleanup(func() { cancel(); running.Wait() })
	return h
}

func (h *harness) declare(name string, args amqp.Table) {
	h.t.Helper()
	if _, err := h.direct.QueueDeclare(name, true, false, false, false, args); err != nil {
		h.t.Fatal(err)
	}
}

// send forwards a message in the background. The channel gets the result.
func (h *harness) send(key string) (id string, result <-chan error) {
	msg, done := message(), make(chan error, 1)
	go func() { done <- h.Forward(h.t.Context(), "", key, msg) }()
	return msg.MessageId, done
}

func (h *harness) mustForward(key string) {
	h.t.Helper()
	if err := h.Forward(h.t.Context(), "", key, message()); err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) waitDepth(queue string, want int) {
	h.t.Helper()
	h.wait("messages in "+queue, want, func() int {
		q, err := h.direct.QueueDeclarePassive(queue, true, false, false, false, nil)
		if err != nil {
			h.t.Fatal(err)
		}
		return q.Messages
	})
}

// failures returns how many publishes had to be tried again.
func (h *harness) failures() int {
	families, err := h.metrics.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "forwarder_publish_failures_total" {
			return int(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	return 0
}

func (h *harness) wait(what string, want int, got func() int) {
	h.t.Helper()
	eventually.True(h.t, fmt.Sprintf("%s: %d", what, want), func() bool { return got() >= want })
	if n := got(); n != want {
		h.t.Fatalf("%s: %d, want %d", what, n, want)
	}
}

// unconfirmed fails the test if Forward has returned already.
func (h *harness) unconfirmed(result <-chan error) {
	h.t.Helper()
	select {
	case err := <-result:
		h.t.Fatalf("Forward returned %v before the broker had confirmed", err)
	default:
	}
}

// confirmed waits for the result.
func (h *harness) confirmed(result <-chan error) {
	h.t.Helper()
	select {
	case err := <-result:
		if err != nil {
			h.t.Fatalf("Forward: %v", err)
		}
	case <-time.After(eventually.Patience):
		h.t.Fatal("Forward does not return")
	}
}

func message() amqp.Publishing {
	return amqp.Publishing{MessageId: uuid.NewString(), DeliveryMode: amqp.Persistent, Body: []byte("{}")}
}

func TestForwardAwaitsTheConfirm(t *testing.T) {
	t.Parallel()
	h := newHarness(t).run()
	h.declare("q", amqp.Table{"x-queue-type": "quorum"})
	h.mustForward("q")
	release := h.proxy.hold(t)
	_, result := h.send("q")
	h.waitDepth("q", 2) // the broker has it, and its word is held back
	h.unconfirmed(result)
	release()
	h.confirmed(result)
	h.waitDepth("q", 2)
}

// A message that the broker had and could not confirm is there twice, under one id.
func TestConnectionCutBeforeTheConfirm(t *testing.T) {
	t.Parallel()
	h := newHarness(t).run()
	h.declare("q", nil)
	h.mustForward("q")
	if _, err := h.direct.QueuePurge("q", false); err != nil {
		t.Fatal(err)
	}
	release := h.proxy.hold(t)
	id, result := h.send("q")
	h.waitDepth("q", 1)
	h.proxy.cut()
	release()
	h.confirmed(result)
	h.waitDepth("q", 2)
	for range 2 {
		if d, ok, err := h.direct.Get("q", true); err != nil || !ok || d.MessageId != id {
			t.Errorf("message %q (there: %t, error: %v), want %q", d.MessageId, ok, err, id)
		}
	}
}

// A broker that says nothing more is given up, connection and all.
func TestSilentBroker(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.SetConfirmTimeout(50 * time.Millisecond)
	h.run()
	h.declare("q", nil)
	h.mustForward("q")
	release := h.proxy.hold(t)
	_, result := h.send("q")
	h.wait("failures noticed", 1, func() int { return min(h.failures(), 1) })
	h.unconfirmed(result)
	release()
	h.confirmed(result)
}

func TestReturnedMessageIsTriedUntilAQueueTakesIt(t *testing.T) {
	t.Parallel()
	h := newHarness(t).run()
	_, result := h.send("late")
	select {
	case got := <-h.lost:
		if got != [2]string{"", "late"} {
			t.Errorf("told that %v takes nothing, want the default exchange and late", got)
		}
	case <-time.After(eventually.Patience):
		t.Fatal("no error says that no queue takes the message")
	}
	h.unconfirmed(result)
	h.declare("late", nil)
	h.confirmed(result)
	h.waitDepth("late", 1)
}

func TestRefusedMessageIsTriedUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	h := newHarness(t).run()
	h.declare("full", amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
	h.mustForward("full")
	id, result := h.send("full")
	h.wait("refusals", 1, func() int { return min(h.failures(), 1) })
	h.unconfirmed(result)
	if _, err := h.direct.QueuePurge("full", false); err != nil {
		t.Fatal(err)
	}
	h.confirmed(result)
	if d, ok, err := h.direct.Get("full", true); err != nil || !ok || d.MessageId != id {
		t.Errorf("message %q (there: %t, error: %v), want %q", d.MessageId, ok, err, id)
	}
	if len(h.lost) != 0 {
		t.Error("a refusal is taken for a missing binding")
	}
}

func TestTooLargeIsGivenUpAtOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t).run()
	h.declare("q", nil)
	large := message()
	large.Body = make([]byte, rabbit.MaxBody+1)
	if err := h.Forward(t.Context(), "", "q", large); !errors.Is(err, forwarder.ErrTooLarge) {
		t.Errorf("Forward: %v, want ErrTooLarge", err)
	}
	h.mustForward("q")
	if n := h.failures(); n != 0 {
		t.Errorf("%d publishes to be tried again, want none", n)
	}
}

func TestForwardEndsWithItsContext(t *testing.T) {
	t.Parallel()
	h := newHarness(t) // not running: there is no connection
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Forward(ctx, "", "q", message()) }()
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Forward: %v, want the end of its context", err)
		}
	case <-time.After(eventually.Patience):
		t.Fatal("Forward outlives its context")
	}
}

func TestManyAtOnceBeyondTheWindow(t *testing.T) {
	t.Parallel()
	h := newHarness(t).run()
	h.declare("q", nil)
	const n = 1000
	var senders sync.WaitGroup
	for range n {
		senders.Go(func() {
			if err := h.Forward(t.Context(), "", "q", message()); err != nil {
				t.Errorf("Forward: %v", err)
			}
		})
	}
	senders.Wait()
	h.waitDepth("q", n)
}
