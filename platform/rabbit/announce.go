package rabbit

import (
	"context"
	"encoding/json"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Announce sends v as JSON to everybody who listens to a fanout exchange now. Nothing
// confirms it: what is lost must be found in another way.
func Announce(ctx context.Context, ch *amqp.Channel, exchange, from string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode announcement: %w", err)
	}
	err = ch.PublishWithContext(ctx, exchange, "", false, false, amqp.Publishing{
		AppId: from, ContentType: "application/json", DeliveryMode: amqp.Transient, Body: body,
	})
	if err != nil {
		return fmt.Errorf("publish announcement: %w", err)
	}
	return nil
}

// AnnounceAll announces what next returns, over connections of cfg, until ctx ends. Then
// next returns nil.
func AnnounceAll(ctx context.Context, cfg Config, exchange, from string, next func(context.Context) any) error {
	return Supervise(ctx, cfg, func(ctx context.Context, conn *amqp.Connection) error {
		if err := DeclareExchange(conn, exchange, amqp.ExchangeFanout); err != nil {
			return err
		}
		ch, err := OpenChannel(conn)
		if err != nil {
			return err
		}
		for {
			v := next(ctx)
			if v == nil {
				return nil
			}
			if err := Announce(ctx, ch, exchange, from, v); err != nil {
				return err
			}
		}
	})
}
