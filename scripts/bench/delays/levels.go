package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
)

// maxLevel is NServiceBus's: 28 levels reach 8.5 years.
const maxLevel = 27

func level(n int) string { return fmt.Sprintf("delay-level-%02d", n) }

// levels lets messages wait in binary delay levels. A message goes from the
// highest level to the lowest: where its routing key has a 1 it waits, and
// expires into the next exchange; where it has a 0 it goes there at once.
func (b *bench) levels(ctx context.Context) (r result, err error) {
	url, drop, err := testbed.Vhost()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	conn, err := amqp.Dial(url)
	if err != nil {
		return r, fmt.Errorf("open broker: %w", err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return r, fmt.Errorf("open channel: %w", err)
	}
	const destination, delivery = "bench", "delay-delivery"
	if err := declareLevels(ch, destination, delivery); err != nil {
		return r, err
	}
	if err := ch.Qos(100, 0, false); err != nil {
		return r, fmt.Errorf("set prefetch: %w", err)
	}
	deliveries, err := ch.ConsumeWithContext(ctx, destination, "", false, false, false, false, nil)
	if err != nil {
		return r, fmt.Errorf("consume: %w", err)
	}
	came := newLatecomers(b.messages)
	go func() {
		for d := range deliveries {
			came.came(d.Headers)
			_ = d.Ack(false) // the channel's end says why not
		}
	}()
	publishing, err := amqp.Dial(url)
	if err != nil {
		return r, fmt.Errorf("open broker: %w", err)
	}
	defer publishing.Close()
	out, err := newPublisher(publishing)
	if err != nil {
		return r, err
	}
	began := time.Now()
	for range b.messages {
		seconds := 1 + rand.N(int(b.spread.Seconds()))
		msg := message(time.Now().Add(time.Duration(seconds) * time.Second).UnixMilli())
		if err := out.publish(level(maxLevel), routingKey(seconds, destination), msg); err != nil {
			return r, err
		}
	}
	if err := out.flush(); err != nil {
		return r, err
	}
	took := time.Since(began)
	select {
	case <-came.all:
	case <-ctx.Done():
		return r, ctx.Err()
	}
	return newResult("binary levels", b.messages, took, came.late), nil
}

// routingKey has a digit for each level, the highest first, and then the queue.
func routingKey(seconds int, destination string) string {
	digits := strings.Split(fmt.Sprintf("%0*b", maxLevel+1, seconds), "")
	return strings.Join(append(digits, destination), ".")
}

func declareLevels(ch *amqp.Channel, destination, delivery string) error {
	if err := ch.ExchangeDeclare(delivery, amqp.ExchangeTopic, true, false, false, false, nil); err != nil {
		return fmt.Errorf("declare exchange: %w", err)
	}
	for n := range maxLevel + 1 {
		if err := ch.ExchangeDeclare(level(n), amqp.ExchangeTopic, true, false, false, false, nil); err != nil {
			return fmt.Errorf("declare exchange: %w", err)
		}
	}
	for n := range maxLevel + 1 {
		next := delivery
		if n > 0 {
			next = level(n - 1)
		}
		_, err := ch.QueueDeclare(level(n), true, false, false, false, amqp.Table{
			"x-queue-type": "quorum", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
			"x-message-ttl": int64(1000) << n, "x-dead-letter-exchange": next,
		})
		if err != nil {
			return fmt.Errorf("declare queue: %w", err)
		}
		// The digit of level n is the one after those of the levels above it.
		above := strings.Repeat("*.", maxLevel-n)
		if err := ch.QueueBind(level(n), above+"1.#", level(n), false, nil); err != nil {
			return fmt.Errorf("bind queue: %w", err)
		}
		if err := ch.ExchangeBind(next, above+"0.#", level(n), false, nil); err != nil {
			return fmt.Errorf("bind exchange: %w", err)
		}
	}
	if _, err := ch.QueueDeclare(destination, true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
		return fmt.Errorf("declare queue: %w", err)
	}
	if err := ch.QueueBind(destination, "#."+destination, delivery, false, nil); err != nil {
		return fmt.Errorf("bind queue: %w", err)
	}
	return nil
}
