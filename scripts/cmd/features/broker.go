package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

// pools shows the queues as the service sees them.
func (w *walk) pools(ctx context.Context) error {
	var list struct {
		Items []struct {
			Queue                                          string
			Concurrency, Prefetch, Depth, Workers, Stalled int
			Consumers                                      int
		}
		Findings []struct{ What, Remedy string }
	}
	if err := w.operator.Do(ctx, http.MethodGet, "/admin/workers", nil, &list); err != nil {
		return err
	}
	for _, p := range list.Items {
		w.say("%-24s %d waiting, %d consumers in all, %d workers here with prefetch %d, %d stalled",
			p.Queue, p.Depth, p.Consumers, p.Workers, p.Prefetch, p.Stalled)
	}
	for _, f := range list.Findings {
		w.say("the checker: %s. %s", f.What, f.Remedy)
	}
	if n := len(list.Findings); n > 0 {
		return fmt.Errorf("exchanges, queues, bindings and policies are not what they should be in %d places", n)
	}
	w.say("the checker found nothing")
	return nil
}

// A letter is a message of the walk.
type letter struct {
	id     string
	report uuid.UUID
	body   []byte
}

// newLetter returns a message that tells the officials of a report.
func newLetter() letter {
	l := letter{id: uuid.NewString(), report: uuid.New()}
	body, err := json.Marshal(&event.ReportCreated{
		Subject:    event.Subject{ReportID: l.report, ReportVersion: 1, ReportTitle: "Features walk (a test)", Timestamp: time.Now().Unix()},
		CategoryID: 1, CategoryName: "Other", PrivacyLevel: event.Anonymous,
	})
	if err != nil {
		panic(err) // it is made of strings and numbers
	}
	l.body = body
	return l
}

// publish sends l and waits for the broker's confirm.
func (w *walk) publish(ctx context.Context, exchange, key string, l letter) error {
	confirm, err := w.publisher.PublishWithDeferredConfirmWithContext(ctx, exchange, key, true, false, amqp.Publishing{
		MessageId: l.id, Type: string(event.ReportCreatedKey), Body: l.body, ContentType: "application/json",
		DeliveryMode: amqp.Persistent, Timestamp: time.Now(),
		Headers: amqp.Table{event.RecipientHeader: w.keyring.Seal(l.report, "features-walk")},
	})
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	acked, err := confirm.WaitContext(ctx)
	if err == nil && !acked {
		err = errors.New("the broker refused the message")
	}
	return err
}

// confirms shows what the broker answers to a publish.
func (w *walk) confirms(ctx context.Context) error {
	began := time.Now()
	l := newLetter()
	if err := w.publish(ctx, w.topology.Exchange(), string(event.ReportCreatedKey), l); err != nil {
		return err
	}
	w.say("published %s: confirmed after %s", l.id, time.Since(began).Round(10*time.Microsecond))
	if err := w.publish(ctx, w.topology.Exchange(), "report.nobody.wants", newLetter()); err != nil {
		return err
	}
	select {
	case r := <-w.returned:
		w.say("published under a key that nobody reads: confirmed too, but returned with %d %s", r.ReplyCode, r.ReplyText)
	default:
		return errors.New("an unroutable message was not returned")
	}
	return w.told(ctx, l, 1)
}

// told waits until the officials have n notifications of l.
func (w *walk) told(ctx context.Context, l letter, n int) error {
	return wait.Until(ctx, patience, "notification", func(ctx context.Context) (bool, error) {
		got, err := w.count(ctx, l)
		return got >= n, err
	})
}

func (w *walk) count(ctx context.Context, l letter) (int, error) {
	page, err := w.official.Notifications(ctx, "", 100)
	n := 0
	for _, notification := range page.Notifications {
		if notification.ReportID == l.report {
			n++
		}
	}
	return n, err
}

// markers are sent after messages that must not be notified twice. The broker deals
// them out in turn, so that each worker has one behind whatever copy it got.
const markers = 16

// idempotency sends a message three times.
func (w *walk) idempotency(ctx context.Context) error {
	l := newLetter()
	sent := []letter{l, l, l}
	for range markers {
		sent = append(sent, newLetter())
	}
	for _, next := range sent {
		if err := w.publish(ctx, w.topology.Exchange(), string(event.ReportCreatedKey), next); err != nil {
			return err
		}
	}
	for _, next := range sent {
		if err := w.told(ctx, next, 1); err != nil {
			return err
		}
	}
	n, err := w.count(ctx, l)
	if err != nil {
		return err
	}
	w.say("message %s was published 3 times: the officials were notified %d time(s)", l.id, n)
	if n != 1 {
		return fmt.Errorf("%d effects of one message", n)
	}
	return nil
}

// retry puts a message where the consumer puts one that failed.
func (w *walk) retry(ctx context.Context) error {
	l := newLetter()
	retry, queue := w.topology.Retry("1s"), w.topology.Queue(event.ReportCreatedKey)
	began := time.Now()
	if err := w.publish(ctx, retry, queue, l); err != nil {
		return err
	}
	if err := w.told(ctx, l, 1); err != nil {
		return err
	}
	w.say("a message in the retry queue %s came back to %s and had its effect after %s", retry, queue, time.Since(began).Round(time.Millisecond))
	return nil
}
