package broadcast

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

const (
	// maxMessages and maxBytes bound the messages that wait at the broker for a replica
	// that does not read. The oldest go first.
	maxMessages = 10_000
	maxBytes    = 64 << 20
)

// errSubscriptionEnded says that the broker ended the subscription.
var errSubscriptionEnded = errors.New("the broker ended the subscription")

// publish sends announcements over conn until ctx ends.
func (b *Bus) publish(ctx context.Context, conn *amqp.Connection) error {
	ch, err := b.openChannel(conn)
	if err != nil {
		return err
	}
	// The others missed commits while this connection was away.
	if err := rabbit.Announce(ctx, ch, b.exchange, b.replica, message{Compare: true}); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case a := <-b.queue:
			m := seal(a, b.keyring)
			m.Compare = b.lost.Swap(false)
			if err := rabbit.Announce(ctx, ch, b.exchange, b.replica, m); err != nil {
				return err
			}
			b.published.Inc()
		}
	}
}

// receive delivers what the other replicas announce until ctx ends.
func (b *Bus) receive(ctx context.Context, conn *amqp.Connection) error {
	var deliveries <-chan amqp.Delivery
	err := rabbit.Ask(conn, func() (err error) {
		deliveries, err = b.subscribe(conn)
		return err
	})
	if err != nil {
		return err
	}
	// From here on a loss shows in the numbers. Notifications announced before this
	// moment are in the database.
	b.hub.Compare()
	for {
		select {
		case <-ctx.Done():
			return nil
		case d, ok := <-deliveries:
			if !ok {
				return fmt.Errorf("receive announcements: %w", errSubscriptionEnded)
			}
			b.onDelivery(d)
		}
	}
}

// subscribe declares the replica's own queue, which goes with the connection.
func (b *Bus) subscribe(conn *amqp.Connection) (<-chan amqp.Delivery, error) {
	ch, err := b.openChannel(conn)
	if err != nil {
		return nil, err
	}
	name := b.exchange + "." + b.replica
	_, err = ch.QueueDeclare(name, false, true, true, false, amqp.Table{
		amqp.QueueMaxLenArg:      maxMessages,
		amqp.QueueMaxLenBytesArg: maxBytes,
	})
	if err != nil {
		return nil, fmt.Errorf("declare queue of replica: %w", err)
	}
	if err := ch.QueueBind(name, "", b.exchange, false, nil); err != nil {
		return nil, fmt.Errorf("bind queue of replica: %w", err)
	}
	// A broker whose users are those of an earlier release does not allow it.
	if err := b.bindProgress(conn, name); err != nil {
		b.rabbit.Log.Warn().Err(err).Msg("following the progress of photos failed, uploaders see the verdict alone")
	}
	deliveries, err := ch.Consume(name, "", true, true, false, false, nil)
	if err != nil {
		return nil, fmt.Errorf("receive announcements: %w", err)
	}
	return deliveries, nil
}

// bindProgress has the queue of the replica get the stages of photos. It has a
// channel of its own, because a refusal ends that.
func (b *Bus) bindProgress(conn *amqp.Connection, queue string) error {
	if err := rabbit.DeclareExchange(conn, b.progress, amqp.ExchangeFanout); err != nil {
		return err
	}
	return rabbit.BindQueue(conn, queue, "", b.progress)
}

// openChannel opens a channel and declares the exchange.
func (b *Bus) openChannel(conn *amqp.Connection) (*amqp.Channel, error) {
	if err := rabbit.DeclareExchange(conn, b.exchange, amqp.ExchangeFanout); err != nil {
		return nil, err
	}
	return rabbit.OpenChannel(conn)
}

// onDelivery passes an announcement on to the hub. One that cannot be read makes the
// hub compare with the database, which has the same notifications.
func (b *Bus) onDelivery(d amqp.Delivery) {
	if d.Exchange == b.progress {
		b.onProgress(d)
		return
	}
	if d.AppId == b.replica {
		return // the hub has it already
	}
	a, compare, err := open(d.Body, b.keyring)
	if err != nil {
		b.unreadable.Inc()
		b.rabbit.Log.Warn().Err(err).Msg("reading an announcement failed, comparing with the database")
		compare = true
	}
	b.received.Inc()
	if compare {
		b.hub.Compare()
	}
	b.hub.Deliver(a.batch, a.committedAt)
}

// onProgress passes on how far the worker is with a photo. A message that cannot be
// read is left out: the verdict comes another way.
func (b *Bus) onProgress(d amqp.Delivery) {
	p, err := event.DecodePhotoProgress(d.Body)
	var uploader string
	if err == nil {
		uploader, err = b.keyring.Open(p.PhotoID, p.To)
	}
	if err != nil {
		b.unreadable.Inc()
		b.rabbit.Log.Warn().Err(err).Msg("reading the progress of a photo failed, its uploader sees the verdict alone")
		return
	}
	b.received.Inc()
	b.hub.Progress(notification.UserStream(uploader), notification.Progress{ReportID: p.ReportID, PhotoID: p.PhotoID, Stage: p.Stage})
}
