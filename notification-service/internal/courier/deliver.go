package courier

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// Deliver returns nil once the broker has confirmed that msg stands in a
// queue. It keeps trying until ctx ends, and gives up at once only on what
// can never be published. It is safe for concurrent use.
//
// A message whose confirm was lost is published again: readers must know
// messages by their id.
func (c *Courier) Deliver(ctx context.Context, exchange, key string, msg amqp.Publishing) error {
	for delay := firstDelay; ; delay = min(2*delay, slowDelay) {
		err := c.try(ctx, exchange, key, msg)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, rabbit.ErrUnpublishable):
			return fmt.Errorf("%w: %w", ErrTooLarge, err)
		case ctx.Err() != nil:
			return ctx.Err()
		}
		c.recover(exchange, key, err)
		if !pause(ctx, delay) {
			return ctx.Err()
		}
	}
}

// try publishes once and waits for the answer.
func (c *Courier) try(ctx context.Context, exchange, key string, msg amqp.Publishing) error {
	publisher, err := c.current(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	answer := make(chan rabbit.Outcome, 1)
	if err := publisher.Publish(exchange, key, msg, func(o rabbit.Outcome) { answer <- o }); err != nil {
		return err
	}
	timer := time.NewTicker(c.patience)
	defer timer.Stop()
	for {
		select {
		case o := <-answer:
			c.metrics.published.Observe(time.Since(began).Seconds())
			return o.Err()
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			if !c.blocked.Load() { // publishing once more would not be faster, only double
				return errNoConfirm
			}
		}
	}
}

// recover does what helps against err before the next try.
func (c *Courier) recover(exchange, key string, err error) {
	c.metrics.failed.Inc()
	c.cfg.Log.Warn().Err(err).Str("exchange", exchange).Str("routing_key", key).Msg("message could not be moved yet")
	if errors.Is(err, rabbit.ErrReturned) {
		c.unroutable(exchange, key)
		return
	}
	select {
	case c.suspect <- struct{}{}:
	default: // asked for already
	}
}

// pause waits, and tells whether ctx still lives.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
