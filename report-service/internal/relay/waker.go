package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// A Waker wakes the relays of other processes, for one that writes outbox rows
// and publishes none. A wake-up that gets lost costs time alone: relays poll.
type Waker struct {
	exchange string
	rabbit   rabbit.Config
	pending  atomic.Uint32 // shards that have something new
	due      chan struct{} // holds a value while shards may be pending
}

// NewWaker returns a Waker that uses the broker at url.
func NewWaker(url string, names event.Topology, log zerolog.Logger) *Waker {
	return &Waker{
		exchange: names.WakeExchange(),
		rabbit:   rabbit.Config{URL: url, Name: "waker", Log: log},
		due:      make(chan struct{}, 1),
	}
}

// Wake has the owners of shards told that there is something to publish. It
// never blocks.
func (k *Waker) Wake(set shards.Set) {
	k.pending.Or(uint32(set))
	notify(k.due)
}

// Run sends wake-ups until ctx ends.
func (k *Waker) Run(ctx context.Context) error { return rabbit.Supervise(ctx, k.rabbit, k.session) }

func (k *Waker) session(ctx context.Context, conn *amqp.Connection) error {
	if err := rabbit.DeclareExchange(conn, k.exchange, amqp.ExchangeFanout); err != nil {
		return err
	}
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.due:
		}
		body, err := json.Marshal(wakeup{shards.Set(k.pending.Swap(0))})
		if err != nil {
			return fmt.Errorf("encode wake-up: %w", err)
		}
		err = ch.PublishWithContext(ctx, k.exchange, "", false, false, amqp.Publishing{
			AppId: appID, ContentType: "application/json", DeliveryMode: amqp.Transient, Body: body,
		})
		if err != nil {
			return fmt.Errorf("publish wake-up: %w", err)
		}
		select { // more of them would trigger an owner for nothing
		case <-ctx.Done():
		case <-time.After(wakeupGap):
		}
	}
}
