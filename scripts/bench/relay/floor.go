package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
)

// window is that of the relay.
const window = 512

// runFloor publishes n messages from memory with nothing but the client
// library: no database, no marks, no order to keep. Nothing can be faster by
// much with this client.
func runFloor(ctx context.Context, f *fixture, n int) (time.Duration, error) {
	conn, err := amqp.Dial(f.broker)
	if err != nil {
		return 0, err
	}
	defer conn.Close() // all is confirmed
	ch, err := conn.Channel()
	if err != nil {
		return 0, err
	}
	if err := ch.Confirm(false); err != nil {
		return 0, err
	}
	table := amqp.Table{}
	for name, value := range headers() {
		table[name] = value
	}
	payload := body(uuid.New(), 1)
	flying := make(chan *amqp.DeferredConfirmation, window)
	confirmed := make(chan error, 1)
	go func() { confirmed <- confirmAll(ctx, flying) }()
	began := time.Now()
	for range n {
		confirm, err := ch.PublishWithDeferredConfirm(f.topology.Exchange(), string(key), true, false, amqp.Publishing{
			MessageId: uuid.NewString(), Type: string(key), ContentType: "application/json", AppId: "bench",
			Timestamp: began, DeliveryMode: amqp.Persistent, Headers: table, Body: payload,
		})
		if err != nil {
			return 0, err
		}
		flying <- confirm
	}
	close(flying)
	err = <-confirmed
	return time.Since(began), err
}

func confirmAll(ctx context.Context, flying <-chan *amqp.DeferredConfirmation) error {
	for confirm := range flying {
		if ok, err := confirm.WaitContext(ctx); err != nil || !ok {
			return fmt.Errorf("not confirmed (error %w)", err)
		}
	}
	return nil
}
