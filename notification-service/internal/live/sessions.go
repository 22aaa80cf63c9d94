package live

import (
	"context"
	"encoding/json"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/rabbit"
)

const (
	// queueMessages and queueBytes bound what waits at the broker for a replica
	// that does not read. The oldest go first.
	queueMessages = 10_000
	queueBytes    = 64 << 20
)

// publish sends announcements over conn until ctx ends.
func (x *Exchange) publish(ctx context.Context, conn *amqp.Connection) error {
	ch, err := x.channel(conn)
	if err != nil {
		return err
	}
	// Nobody has heard what was committed while this connection was away.
	body, err := json.Marshal(message{Compare: true})
	if err != nil {
		return fmt.Errorf("encode announcement: %w", err)
	}
	if err := x.send(ctx, ch, body); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case a := <-x.outbox:
			body, err := encode(a, x.cfg.Keyring)
			if err != nil {
				return fmt.Errorf("encode announcement: %w", err)
			}
			if err := x.send(ctx, ch, body); err != nil {
				return err
			}
			x.published.Inc()
		}
	}
}

// channel opens a channel and makes sure that the exchange stands.
func (x *Exchange) channel(conn *amqp.Connection) (*amqp.Channel, error) {
	if err := rabbit.DeclareExchange(conn, x.cfg.Topology.LiveExchange(), amqp.ExchangeFanout); err != nil {
		return nil, err
	}
	ch, err := conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("open channel: %w", err)
	}
	return ch, nil
}

func (x *Exchange) send(ctx context.Context, ch *amqp.Channel, body []byte) error {
	err := ch.PublishWithContext(ctx, x.cfg.Topology.LiveExchange(), "", false, false, amqp.Publishing{
		AppId:        x.replica,
		ContentType:  "application/json",
		DeliveryMode: amqp.Transient,
		Body:         body,
	})
	if err != nil {
		return fmt.Errorf("publish announcement: %w", err)
	}
	return nil
}

// receive delivers what the other replicas announce until ctx ends.
func (x *Exchange) receive(ctx context.Context, conn *amqp.Connection) error {
	deliveries, err := x.subscribe(conn)
	if err != nil {
		return err
	}
	// From here on nothing is lost unseen; what was lost before is in the database.
	x.cfg.Hub.Compare()
	for {
		select {
		case <-ctx.Done():
			return nil
		case d, ok := <-deliveries:
			if !ok {
				return fmt.Errorf("receive announcements: the broker ended the subscription")
			}
			x.take(d)
		}
	}
}

// subscribe makes the replica's own queue, which goes with the connection.
func (x *Exchange) subscribe(conn *amqp.Connection) (<-chan amqp.Delivery, error) {
	ch, err := x.channel(conn)
	if err != nil {
		return nil, err
	}
	name := x.cfg.Topology.LiveExchange() + "." + x.replica
	_, err = ch.QueueDeclare(name, false, true, true, false, amqp.Table{
		amqp.QueueMaxLenArg:      queueMessages,
		amqp.QueueMaxLenBytesArg: queueBytes,
	})
	if err != nil {
		return nil, fmt.Errorf("declare queue of replica: %w", err)
	}
	if err := ch.QueueBind(name, "", x.cfg.Topology.LiveExchange(), false, nil); err != nil {
		return nil, fmt.Errorf("bind queue of replica: %w", err)
	}
	deliveries, err := ch.Consume(name, "", true, true, false, false, nil)
	if err != nil {
		return nil, fmt.Errorf("receive announcements: %w", err)
	}
	return deliveries, nil
}

func (x *Exchange) take(d amqp.Delivery) {
	if d.AppId == x.replica {
		return // the hub has it already
	}
	a, compare, err := decode(d.Body, x.cfg.Keyring)
	if err != nil {
		x.unread.Inc()
		x.cfg.Rabbit.Log.Warn().Err(err).Msg("announcement cannot be read")
		compare = true // whatever it said stands in the database
	}
	x.received.Inc()
	if compare {
		x.cfg.Hub.Compare()
	}
	x.cfg.Hub.Deliver(a.batch, a.at)
}
