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
	publisher, err := rabbit.NewPublisher(conn, 1)
	if err != nil {
		return err
	}
	defer publisher.Close()
	untitled := `{"report_id": %q, "report_title": "", "category_id": 2, "category_name": "Street lights and signals",
		"privacy_level": "anonymous", "timestamp": %d, "report_version": 1}`
	for i := range 12 {
		key, body := event.ReportCreatedKey, fmt.Sprintf(untitled, uuid.New(), time.Now().Unix())
		if i%4 == 0 {
			key, body = event.VoteReceivedKey, "{"
		}
		var topology event.Topology
		err := publisher.PublishWait(ctx, topology.Exchange(), string(key), amqp.Publishing{
			MessageId: uuid.NewString(), Type: string(key), ContentType: "application/json",
			Timestamp: time.Now(), DeliveryMode: amqp.Persistent, AppId: "screenshots", Body: []byte(body),
		})
		if err != nil {
			return fmt.Errorf("publish: %w", err)
		}
	}
	t.deadLetters = true
	return nil
}
