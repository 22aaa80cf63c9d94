package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

const (
	// wakeupGap separates two wake-ups. An owner does not read more often than
	// that, so more would be useless.
	wakeupGap = readGap
	// maxWakeups bounds the wake-ups that wait at the broker for a replica that
	// does not consume. The oldest are dropped; polling finds their rows.
	maxWakeups = 1000
	// notifierRetry is the pause after the broker refused the exchange or the
	// queue, for example for a missing permission. During the pause the
	// replicas poll.
	notifierRetry = 5 * time.Second
)

var errSubscriptionEnded = errors.New("the broker ended the subscription")

// A notifier passes wake-ups between the replicas: which shards have new rows.
// They are not confirmed and may get lost; polling then finds the rows.
type notifier struct {
	exchange string
	leases   *shards.Leases
	blocked  func() bool // whether the broker takes no messages
	log      zerolog.Logger
	metrics  *metrics

	trigger chan struct{} // holds a value when this replica has rows to read
	// pending are the shards of other replicas in which rows were committed here.
	// A set does not grow, however many commits there are before the next wake-up.
	pending atomic.Uint32
	due     chan struct{} // holds a value while shards may be pending
}

// A wakeup is the message that the replicas exchange.
type wakeup struct {
	Shards shards.Set `json:"shards"`
}

// committed triggers a read if this replica owns one of the shards, and
// notifies the owners of the others. It never blocks.
func (n *notifier) committed(set shards.Set) {
	own := n.leases.ActiveSet()
	if set&own != 0 {
		notify(n.trigger)
	}
	if others := set &^ own; others != 0 {
		n.pending.Or(uint32(others))
		notify(n.due)
	}
}

// notify leaves a value in c. If there is one already, its receiver handles
// both.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run exchanges wake-ups over conn until ctx ends. The relay works without
// wake-ups, so they have a channel of their own, whose errors do not end the
// session.
func (n *notifier) run(ctx context.Context, conn *amqp.Connection) {
	for ctx.Err() == nil {
		if err := n.exchangeWakeups(ctx, conn); err != nil && ctx.Err() == nil && !conn.IsClosed() {
			n.log.Warn().Err(err).Msg("exchanging wake-ups failed, the replicas poll until it is retried")
		}
		_ = backoff.Sleep(ctx, notifierRetry) // the loop ends with ctx
	}
}

// exchangeWakeups sends and receives in turns. At most one wake-up is being
// sent; the next one covers all commits in between.
func (n *notifier) exchangeWakeups(ctx context.Context, conn *amqp.Connection) error {
	var ch *amqp.Channel
	var messages <-chan amqp.Delivery
	err := rabbit.Ask(conn, func() (err error) {
		ch, messages, err = n.subscribe(conn)
		return err
	})
	if err != nil {
		return err
	}
	defer ch.Close() // it ends with the connection anyway
	due := n.due
	var gap <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case m, ok := <-messages:
			if !ok {
				return errSubscriptionEnded
			}
			n.onMessage(m.Body)
		case <-due:
			if err := n.send(ctx, ch); err != nil {
				return err
			}
			due, gap = nil, time.After(wakeupGap)
		case <-gap:
			due, gap = n.due, nil
		}
	}
}

// subscribe consumes the wake-ups of all replicas from a queue that ends with
// the connection. Its name is new each time: after a connection is cut, the
// broker may keep the old queue, and its name, until it notices.
func (n *notifier) subscribe(conn *amqp.Connection) (*amqp.Channel, <-chan amqp.Delivery, error) {
	if err := rabbit.DeclareExchange(conn, n.exchange, amqp.ExchangeFanout); err != nil {
		return nil, nil, err
	}
	ch, err := conn.Channel()
	if err != nil {
		return nil, nil, fmt.Errorf("open channel: %w", err)
	}
	queue := n.exchange + "." + uuid.NewString()
	_, err = ch.QueueDeclare(queue, false, true, true, false, amqp.Table{amqp.QueueMaxLenArg: maxWakeups})
	if err != nil {
		return nil, nil, fmt.Errorf("declare queue of wake-ups: %w", err)
	}
	if err := ch.QueueBind(queue, "", n.exchange, false, nil); err != nil {
		return nil, nil, fmt.Errorf("bind queue of wake-ups: %w", err)
	}
	messages, err := ch.Consume(queue, "", true, true, false, false, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("consume wake-ups: %w", err)
	}
	return ch, messages, nil
}

// send publishes the pending shards. A broker that blocks publishers does not
// read: a message would stay in the socket until the write fails, and the
// connection with it. So the shards stay pending.
func (n *notifier) send(ctx context.Context, ch *amqp.Channel) error {
	if n.blocked() {
		return nil
	}
	set := shards.Set(n.pending.Swap(0))
	if set == 0 {
		return nil
	}
	if err := rabbit.Announce(ctx, ch, n.exchange, appID, wakeup{set}); err != nil {
		return err
	}
	n.metrics.wakeupsSent.Inc()
	return nil
}

// onMessage triggers a read if rows of an own shard were committed elsewhere.
func (n *notifier) onMessage(body []byte) {
	w := wakeup{shards.All} // for the format of another version: a read costs little
	_ = json.Unmarshal(body, &w)
	if w.Shards&n.leases.ActiveSet() != 0 {
		n.metrics.wakeupsReceived.Inc()
		notify(n.trigger)
	}
}

// A Waker wakes the relays of other processes, for a process that writes outbox
// rows and has no relay. A lost wake-up only costs time: relays poll.
type Waker struct {
	exchange string
	rabbit   rabbit.Config
	pending  atomic.Uint32 // shards with new rows
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

// Wake notifies the owners of shards of new rows. It never blocks.
func (k *Waker) Wake(set shards.Set) {
	k.pending.Or(uint32(set))
	notify(k.due)
}

// Run sends wake-ups until ctx ends, with a gap between them: more would be useless.
func (k *Waker) Run(ctx context.Context) error {
	gap := time.NewTimer(0)
	return rabbit.AnnounceAll(ctx, k.rabbit, k.exchange, appID, func(ctx context.Context) any {
		select {
		case <-ctx.Done():
			return nil
		case <-gap.C:
		}
		defer gap.Reset(wakeupGap)
		select {
		case <-ctx.Done():
			return nil
		case <-k.due:
			return wakeup{shards.Set(k.pending.Swap(0))}
		}
	})
}
