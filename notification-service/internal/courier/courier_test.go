package courier_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/courier"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/rabbit/rabbittest"
)

// patience bounds a wait for what must happen; it is never measured.
const patience = 2 * time.Minute

// A post is a courier on a line to a broker, and a look past it.
type post struct {
	*courier.Courier
	t       *testing.T
	line    *line
	direct  *amqp.Channel
	metrics *prometheus.Registry
	lost    chan [2]string // what found no queue
}

// newPost runs a courier until t ends.
func newPost(t *testing.T) *post {
	t.Helper()
	url := rabbittest.Vhost(t)
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	p := &post{t: t, line: newLine(t, url), metrics: prometheus.NewRegistry(), lost: make(chan [2]string, 100)}
	if p.direct, err = conn.Channel(); err != nil {
		t.Fatal(err)
	}
	p.Courier = courier.New(rabbit.Config{URL: p.line.url, Name: t.Name(), Log: zerolog.Nop()}, p.metrics,
		func(exchange, key string) { p.lost <- [2]string{exchange, key} })
	return p
}

// run runs the courier until t ends.
func (p *post) run() *post {
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.Run(ctx); err != nil {
			p.t.Errorf("Run: %v", err)
		}
	})
	p.t.Cleanup(func() { cancel(); running.Wait() })
	return p
}

func (p *post) declare(name string, args amqp.Table) {
	p.t.Helper()
	if _, err := p.direct.QueueDeclare(name, true, false, false, false, args); err != nil {
		p.t.Fatal(err)
	}
}

// send delivers a message in the background. The channel gets the result.
func (p *post) send(key string) (id string, result <-chan error) {
	msg, done := message(), make(chan error, 1)
	go func() { done <- p.Deliver(p.t.Context(), "", key, msg) }()
	return msg.MessageId, done
}

func (p *post) mustDeliver(key string) {
	p.t.Helper()
	if err := p.Deliver(p.t.Context(), "", key, message()); err != nil {
		p.t.Fatal(err)
	}
}

func (p *post) waitDepth(queue string, want int) {
	p.t.Helper()
	p.wait("messages in "+queue, want, func() int {
		q, err := p.direct.QueueDeclarePassive(queue, true, false, false, false, nil)
		if err != nil {
			p.t.Fatal(err)
		}
		return q.Messages
	})
}

// failures returns how many publishes had to be tried again.
func (p *post) failures() int {
	families, err := p.metrics.Gather()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "rabbitmq_publish_failures_total" {
			return int(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	return 0
}

func (p *post) wait(what string, want int, got func() int) {
	p.t.Helper()
	deadline := time.After(patience)
	for got() < want {
		select {
		case <-deadline:
			p.t.Fatalf("%s: %d, want %d", what, got(), want)
		case <-time.After(5 * time.Millisecond):
		}
	}
	if n := got(); n != want {
		p.t.Fatalf("%s: %d, want %d", what, n, want)
	}
}

// undelivered fails the test if the delivery has a result already.
func (p *post) undelivered(result <-chan error) {
	p.t.Helper()
	select {
	case err := <-result:
		p.t.Fatalf("Deliver returned %v before the broker had confirmed", err)
	default:
	}
}

// delivered waits for the delivery.
func (p *post) delivered(result <-chan error) {
	p.t.Helper()
	select {
	case err := <-result:
		if err != nil {
			p.t.Fatalf("Deliver: %v", err)
		}
	case <-time.After(patience):
		p.t.Fatal("Deliver does not return")
	}
}

func message() amqp.Publishing {
	return amqp.Publishing{MessageId: uuid.NewString(), DeliveryMode: amqp.Persistent, Body: []byte("{}")}
}

func TestDeliverAwaitsTheConfirm(t *testing.T) {
	t.Parallel()
	p := newPost(t).run()
	p.declare("q", amqp.Table{"x-queue-type": "quorum"})
	p.mustDeliver("q")
	release := p.line.hold(t)
	_, result := p.send("q")
	p.waitDepth("q", 2) // the broker has it, and its word is held back
	p.undelivered(result)
	release()
	p.delivered(result)
	p.waitDepth("q", 2)
}

// What the broker had and could not confirm is there twice, under one id.
func TestConnectionCutBeforeTheConfirm(t *testing.T) {
	t.Parallel()
	p := newPost(t).run()
	p.declare("q", nil)
	p.mustDeliver("q")
	if _, err := p.direct.QueuePurge("q", false); err != nil {
		t.Fatal(err)
	}
	release := p.line.hold(t)
	id, result := p.send("q")
	p.waitDepth("q", 1)
	p.line.cut()
	release()
	p.delivered(result)
	p.waitDepth("q", 2)
	for range 2 {
		if d, ok, err := p.direct.Get("q", true); err != nil || !ok || d.MessageId != id {
			t.Errorf("message %q (there: %t, error: %v), want %q", d.MessageId, ok, err, id)
		}
	}
}

// A broker that says nothing more is given up, connection and all.
func TestSilentBroker(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	p.SetPatience(50 * time.Millisecond)
	p.run()
	p.declare("q", nil)
	p.mustDeliver("q")
	release := p.line.hold(t)
	_, result := p.send("q")
	p.wait("failures noticed", 1, func() int { return min(p.failures(), 1) })
	p.undelivered(result)
	release()
	p.delivered(result)
}

func TestReturnedMessageIsTriedUntilAQueueTakesIt(t *testing.T) {
	t.Parallel()
	p := newPost(t).run()
	_, result := p.send("late")
	select {
	case got := <-p.lost:
		if got != [2]string{"", "late"} {
			t.Errorf("told that %v takes nothing, want the default exchange and late", got)
		}
	case <-time.After(patience):
		t.Fatal("nobody was told that no queue takes the message")
	}
	p.undelivered(result)
	p.declare("late", nil)
	p.delivered(result)
	p.waitDepth("late", 1)
}

func TestRefusedMessageIsTriedUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	p := newPost(t).run()
	p.declare("full", amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
	p.mustDeliver("full")
	id, result := p.send("full")
	p.wait("refusals", 1, func() int { return min(p.failures(), 1) })
	p.undelivered(result)
	if _, err := p.direct.QueuePurge("full", false); err != nil {
		t.Fatal(err)
	}
	p.delivered(result)
	if d, ok, err := p.direct.Get("full", true); err != nil || !ok || d.MessageId != id {
		t.Errorf("message %q (there: %t, error: %v), want %q", d.MessageId, ok, err, id)
	}
	if len(p.lost) != 0 {
		t.Error("a refusal is taken for a missing binding")
	}
}

func TestTooLargeIsGivenUpAtOnce(t *testing.T) {
	t.Parallel()
	p := newPost(t).run()
	p.declare("q", nil)
	large := message()
	large.Body = make([]byte, rabbit.MaxBody+1)
	if err := p.Deliver(t.Context(), "", "q", large); !errors.Is(err, courier.ErrTooLarge) {
		t.Errorf("Deliver: %v, want ErrTooLarge", err)
	}
	p.mustDeliver("q")
	if n := p.failures(); n != 0 {
		t.Errorf("%d publishes to be tried again, want none", n)
	}
}

func TestDeliverEndsWithItsContext(t *testing.T) {
	t.Parallel()
	p := newPost(t) // not running: there is no connection
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Deliver(ctx, "", "q", message()) }()
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Deliver: %v, want the end of its context", err)
		}
	case <-time.After(patience):
		t.Fatal("Deliver outlives its context")
	}
}

func TestManyAtOnceBeyondTheWindow(t *testing.T) {
	t.Parallel()
	p := newPost(t).run()
	p.declare("q", nil)
	const n = 1000
	var senders sync.WaitGroup
	for range n {
		senders.Go(func() {
			if err := p.Deliver(t.Context(), "", "q", message()); err != nil {
				t.Errorf("Deliver: %v", err)
			}
		})
	}
	senders.Wait()
	p.waitDepth("q", n)
}
