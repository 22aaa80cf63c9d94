package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// breakMessages sends messages that can never succeed, of two kinds.
func (t *town) breakMessages(ctx context.Context, url string) error {
	conn, err := rabbit.Dial(ctx, rabbit.Config{URL: url, Name: "screenshots"})
	if err != nil {
		return fmt.Errorf("dial broker: %w", err)
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	if err := ch.Confirm(false); err != nil {
		return fmt.Errorf("confirm mode: %w", err)
	}
	untitled := `{"report_id": %q, "report_title": "", "category_id": 2, "category_name": "Street lights and signals",
		"privacy_level": "anonymous", "timestamp": %d, "report_version": 1}`
	for i := range 12 {
		key, body := event.ReportCreatedKey, fmt.Sprintf(untitled, uuid.New(), time.Now().Unix())
		if i%4 == 0 {
			key, body = event.VoteReceivedKey, "{"
		}
		if err := send(ctx, ch, key, body); err != nil {
			return err
		}
	}
	t.deadLetters = true
	return nil
}

func send(ctx context.Context, ch *amqp.Channel, key event.Key, body string) error {
	var topology event.Topology
	confirm, err := ch.PublishWithDeferredConfirmWithContext(ctx, topology.Exchange(), string(key), true, false, amqp.Publishing{
		MessageId: uuid.NewString(), Type: string(key), ContentType: "application/json",
		Timestamp: time.Now(), DeliveryMode: amqp.Persistent, AppId: "screenshots", Body: []byte(body),
	})
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if _, err := confirm.WaitContext(ctx); err != nil {
		return fmt.Errorf("wait for the confirm: %w", err)
	}
	return nil
}
