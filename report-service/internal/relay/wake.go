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

	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

const (
	// announceGap separates two announcements. An owner does not read more
	// often than that, so more of them would wake it for nothing.
	announceGap = readGap
	// wakesQueued bounds what waits at the broker for a replica that does not
	// listen. The oldest go first; polling finds what they told of.
	wakesQueued = 1000
	// wakesRetry is the pause after the broker refused to pass wakes on, for
	// want of a permission perhaps. There is no hurry: the replicas poll.
	wakesRetry = 5 * time.Second
)

var errWakesEnded = errors.New("the broker ended the subscription")

// wakes are the shards in which something was committed here, and that are
// another replica's to publish. They wait to be announced, in a set and not in
// a queue: however many commits there are meanwhile, it does not grow.
type wakes struct {
	set atomic.Uint32
	due chan struct{} // holds a value while there may be some
}

func newWakes() *wakes { return &wakes{due: make(chan struct{}, 1)} }

func (w *wakes) add(set shards.Set) {
	w.set.Or(uint32(set))
	select {
	case w.due <- struct{}{}:
	default: // whoever takes that value takes these shards too
	}
}

func (w *wakes) take() shards.Set { return shards.Set(w.set.Swap(0)) }

// An announcement tells the other replicas what to look at.
type announcement struct {
	Shards shards.Set `json:"shards"`
}

// Wake tells that rows were committed in shards. Those that this replica owns
// are read soon; the owners of the others are told, unless the broker is away.
// It never blocks, and what it tells may get lost: polling finds it then.
func (r *Relay) Wake(set shards.Set) {
	own := r.leases.ActiveSet()
	if set&own != 0 {
		r.look()
	}
	if others := set &^ own; others != 0 {
		r.wakes.add(others)
	}
}

// look makes the session read soon.
func (r *Relay) look() {
	select {
	case r.wake <- struct{}{}:
	default: // one is enough: the next read sees everything
	}
}

// passWakes tells the other replicas what was committed here, and hears them,
// until ctx ends. The relay does without where that fails, so it has a channel
// of its own, and no error of it ends the session.
func (r *Relay) passWakes(ctx context.Context, conn *amqp.Connection) {
	for ctx.Err() == nil {
		if err := r.talk(ctx, conn); err != nil && ctx.Err() == nil {
			r.cfg.Log.Warn().Err(err).Msg("replicas do not wake each other, they poll")
		}
		pause := time.NewTimer(wakesRetry)
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
}

// talk announces and hears in turns. At most one announcement is under way;
// what is committed meanwhile goes with the next.
func (r *Relay) talk(ctx context.Context, conn *amqp.Connection) error {
	ch, heard, err := r.listen(conn)
	if err != nil {
		return err
	}
	defer ch.Close() // gone either way
	due := r.wakes.due
	var gap <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case d, ok := <-heard:
			if !ok {
				return errWakesEnded
			}
			r.hear(d.Body)
		case <-due:
			if err := r.announce(ctx, ch); err != nil {
				return err
			}
			due, gap = nil, time.After(announceGap)
		case <-gap:
			due, gap = r.wakes.due, nil
		}
	}
}

// listen subscribes to what the others announce, by a queue that goes with the
// connection. Its name is new each time: after a cut, the broker may take a
// while to see that the one before has gone, and keeps its name until then.
func (r *Relay) listen(conn *amqp.Connection) (*amqp.Channel, <-chan amqp.Delivery, error) {
	exchange := r.cfg.Topology.WakeExchange()
	if err := rabbit.DeclareExchange(conn, exchange, amqp.ExchangeFanout); err != nil {
		return nil, nil, err
	}
	ch, err := conn.Channel()
	if err != nil {
		return nil, nil, fmt.Errorf("open channel: %w", err)
	}
	queue := exchange + "." + uuid.NewString()
	_, err = ch.QueueDeclare(queue, false, true, true, false, amqp.Table{amqp.QueueMaxLenArg: wakesQueued})
	if err != nil {
		return nil, nil, fmt.Errorf("declare queue of wakes: %w", err)
	}
	if err := ch.QueueBind(queue, "", exchange, false, nil); err != nil {
		return nil, nil, fmt.Errorf("bind queue of wakes: %w", err)
	}
	heard, err := ch.Consume(queue, "", true, true, false, false, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("receive wakes: %w", err)
	}
	return ch, heard, nil
}

// announce tells the others. A broker that blocks us reads nothing: what is
// written then stays in the socket until the write fails, and the connection
// with it. So the shards wait.
func (r *Relay) announce(ctx context.Context, ch *amqp.Channel) error {
	if r.isBlocked() {
		return nil
	}
	set := r.wakes.take()
	if set == 0 {
		return nil
	}
	body, err := json.Marshal(announcement{set})
	if err != nil {
		return fmt.Errorf("encode wake: %w", err)
	}
	err = ch.PublishWithContext(ctx, r.cfg.Topology.WakeExchange(), "", false, false, amqp.Publishing{
		AppId: appID, ContentType: "application/json", DeliveryMode: amqp.Transient, Body: body,
	})
	if err != nil {
		return fmt.Errorf("publish wake: %w", err)
	}
	r.metrics.announced.Inc()
	return nil
}

// hear looks at the outbox if something of ours was committed elsewhere.
func (r *Relay) hear(body []byte) {
	a := announcement{shards.All} // of a version that says it otherwise: a look costs little
	_ = json.Unmarshal(body, &a)
	if a.Shards&r.leases.ActiveSet() != 0 {
		r.metrics.heard.Inc()
		r.look()
	}
}
