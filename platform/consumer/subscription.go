package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/delay"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
)

// drainGrace is how long work in hand may take once a stop was requested. It
// leaves room in the ten seconds that most supervisors grant.
const drainGrace = 5 * time.Second

// A subscription is one consumer on one channel, and the worker's goroutine
// that handles its deliveries: tags belong to the channel, so each delivery is
// settled here or not at all.
type subscription struct {
	ch       *amqp.Channel
	queue    string
	tag      string
	prefetch int
	priority int // at the broker, which gives messages to the highest that takes more
	reader   reader
	batches  *batcher
	handler  *handler
	// subscribed is called once the broker has accepted the subscription.
	subscribed func()
	metrics    *metrics
	log        zerolog.Logger

	busySince atomic.Int64 // Unix nanoseconds of the batch in hand, or 0
	postpones atomic.Bool  // what it cannot finish, instead of giving that back
}

// run consumes until ctx ends or the broker ends the subscription. It then finishes
// the messages in hand; those that it cannot finish go back to the queue.
func (s *subscription) run(ctx context.Context) error {
	// Work in hand lives drainGrace longer than ctx.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	stopDraining := context.AfterFunc(ctx, func() { time.AfterFunc(drainGrace, stop) })
	defer stopDraining()

	closed := s.ch.NotifyClose(make(chan *amqp.Error, 1))
	defer s.metrics.channelsClosed.Inc()
	defer s.ch.Close() // closed already if all goes well
	if err := s.ch.Qos(s.prefetch, 0, false); err != nil {
		return fmt.Errorf("set prefetch: %w", err)
	}
	deliveries, err := s.ch.Consume(s.queue, s.tag, false, false, false, false, amqp.Table{"x-priority": s.priority})
	if err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	s.subscribed()
	// The broker stops sending, and earlier deliveries are still handled.
	stopCancelling := context.AfterFunc(ctx, func() { _ = s.ch.Cancel(s.tag, false) })
	defer stopCancelling()
	go s.pump(deliveries, closed, stop) // ends with the channel; batches.discard waits for it

	for batch := s.batches.next(work); len(batch) > 0; batch = s.batches.next(work) {
		s.busySince.Store(time.Now().UnixNano())
		s.handler.handle(work, batch)
		s.busySince.Store(0)
		s.batches.done(len(batch))
	}
	s.handler.forwarding.Wait() // ends when work does
	s.handler.acks.flush()
	s.giveBack(ctx)
	_ = s.ch.Close() // an error says that it is closed already
	s.batches.discard()
	if ctx.Err() == nil {
		return errors.New("the broker ended the subscription")
	}
	return nil
}

// giveBack returns what is still in hand to its place in the queue. Of a negative
// acknowledgement RabbitMQ 4.3 counts no delivery, as it does of a channel that is
// closed; older versions count one of either. What is postponed goes through a retry
// queue to the end of the queue, which no version counts.
func (s *subscription) giveBack(ctx context.Context) {
	if s.postpones.Load() {
		forwarding, stop := context.WithTimeout(context.WithoutCancel(ctx), drainGrace)
		defer stop()
		s.handler.acks.track(s.batches.rest())
		for _, j := range s.handler.acks.unsettled() {
			s.handler.postpone(forwarding, j, errHeldTooLong)
		}
		s.handler.forwarding.Wait()
		s.handler.acks.flush()
	}
	_ = s.ch.Nack(0, true, true) // all of them; an error says that the channel is gone
}

// pump reads the messages and passes them to the batcher, while the worker may
// be waiting for the database. It never waits itself. When the channel is gone,
// nothing more can be settled, and channelGone ends the work in hand.
func (s *subscription) pump(deliveries <-chan amqp.Delivery, closed <-chan *amqp.Error, channelGone func()) {
	for d := range deliveries {
		s.metrics.received(s.queue, &d)
		s.batches.add(s.reader.read(&d))
	}
	s.batches.end()
	if s.ch.IsClosed() {
		if reason := <-closed; reason != nil {
			s.log.Warn().Str("queue", s.queue).Int("code", reason.Code).Msg("the broker closed the channel, will subscribe again")
		}
		channelGone()
	}
}

// Limits of what the contract allows, checked here because anyone with
// rights at the broker can publish.
const (
	maxIDBytes   = 255
	maxBodyBytes = 256 << 10
)

// A reader understands the deliveries of a queue that gets messages of keys.
type reader struct {
	keys   []event.Key
	effect Effect
}

// read returns the job of d.
func (r reader) read(d *amqp.Delivery) *job {
	j := &job{d: d}
	if j.notBefore, j.err = delay.NotBefore(d.Headers); j.err == nil {
		j.msg, j.err = r.message(d)
	}
	return j
}

// message returns the message of d. Its errors are permanent: the same bytes
// will never be understood.
func (r reader) message(d *amqp.Delivery) (Message, error) {
	key := event.Key(d.Type)
	if key == "" { // of another program; a queue with one type of messages has it
		key = r.keys[0]
	}
	switch {
	case d.MessageId == "":
		return Message{}, failure.Refuse("message_id is missing")
	case len(d.MessageId) > maxIDBytes:
		return Message{}, failure.Refuse("message_id is too long")
	case len(d.Body) > maxBodyBytes:
		return Message{}, failure.Refuse("body is too large")
	case d.Type == "" && len(r.keys) > 1:
		return Message{}, failure.Refuse("message type is missing")
	case !slices.Contains(r.keys, key):
		return Message{}, failure.Refuse("message type does not belong in this queue")
	}
	e, err := event.Decode(key, d.Body)
	if err != nil {
		return Message{}, failure.Undecodable(err)
	}
	m := Message{ID: d.MessageId, Event: e, Body: d.Body, Headers: d.Headers}
	m.value, err = r.effect.Read(m)
	return m, err
}
