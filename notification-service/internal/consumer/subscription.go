package consumer

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// drainGrace is how long work in hand may take once it was told to stop. It
// leaves room in the ten seconds that most supervisors grant.
const drainGrace = 5 * time.Second

// A subscription is one consumer on one channel, and one goroutine that
// handles what comes: tags belong to the channel, so whatever it was given is
// settled here or not at all.
type subscription struct {
	*lane
	prefetch int
	ch       *amqp.Channel
	tag      string
	intake   chan *job // holds the prefetch, so that the pump never waits
	plenty   bool      // the last batch was large: the broker seems to have more
	myTurn   bool      // the lane's turn is with this worker

	ledger    ledger       // what was taken from intake and is not yet acknowledged
	busySince atomic.Int64 // Unix nanoseconds of the batch in hand, or 0
	moves     sync.WaitGroup
}

// subscribe opens a channel on conn and begins to consume.
func subscribe(l *lane, conn *amqp.Connection, prefetch int) (*subscription, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("open channel: %w", err)
	}
	l.metrics.channelsOpened.Inc()
	s := &subscription{
		lane: l, prefetch: prefetch, ch: ch, tag: l.nextTag(),
		intake: make(chan *job, prefetch),
	}
	s.ledger = ledger{acknowledger: ch, acked: s.acked}
	return s, nil
}

// run consumes until ctx ends or the broker ends the subscription. It then
// finishes what it has in hand; what it cannot finish goes back to the queue.
func (s *subscription) run(ctx context.Context) error {
	work, stop := drainContext(ctx)
	defer stop()
	closed := s.ch.NotifyClose(make(chan *amqp.Error, 1))
	deliveries, err := s.consume()
	if err != nil {
		_ = s.ch.Close()
		s.metrics.channelsClosed.Inc()
		return err
	}
	// The broker stops sending, and what it sent before is still handled.
	unregister := context.AfterFunc(ctx, func() { _ = s.ch.Cancel(s.tag, false) })
	defer unregister()
	go s.pump(deliveries, closed, stop) // close waits for it
	defer s.close()

	for batch := s.take(work); len(batch) > 0; batch = s.take(work) {
		s.handleBatch(work, batch)
	}
	s.moves.Wait() // they end when work does
	s.ledger.release()
	if ctx.Err() == nil {
		return fmt.Errorf("the broker ended the subscription")
	}
	return nil
}

func (s *subscription) consume() (<-chan amqp.Delivery, error) {
	if err := s.ch.Qos(s.prefetch, 0, false); err != nil {
		return nil, fmt.Errorf("set prefetch: %w", err)
	}
	deliveries, err := s.ch.Consume(s.queue, s.tag, false, false, false, false, nil)
	if err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	return deliveries, nil
}

// drainContext returns a context that lives drainGrace longer than ctx.
func drainContext(ctx context.Context) (context.Context, context.CancelFunc) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(drainGrace, cancel) })
	return work, func() { stop(); cancel() }
}

// pump fills intake. It also reads the messages, because nobody waits for it:
// the worker may be waiting for the database, or for a batch to fill. When the
// channel is gone, nothing can be settled any more, and the work in hand is told
// so.
func (s *subscription) pump(deliveries <-chan amqp.Delivery, closed <-chan *amqp.Error, channelGone func()) {
	for d := range deliveries {
		s.priority.came(s.rank)
		s.intake <- s.understand(&d) // never waits: the broker sends no more than the prefetch
	}
	close(s.intake)
	if s.ch.IsClosed() {
		if reason := <-closed; reason != nil {
			s.log.Warn().Str("queue", s.queue).Int("code", reason.Code).Msg("the broker closed the channel")
		}
		channelGone()
	}
}

// take returns what is there, up to a batch, once there is anything. It
// returns nothing when the subscription is over.
func (s *subscription) take(work context.Context) []*job {
	var batch []*job
	select {
	case j, ok := <-s.intake:
		if !ok {
			return nil
		}
		batch = append(batch, j)
	case <-work.Done():
		return nil
	}
	// What is on its way to a retry takes up prefetch until that is confirmed.
	limit := max(1, min(s.tuning.BatchSize, s.prefetch-s.ledger.open()))
	batch = s.takeMore(batch, limit)
	batch = s.awaitTurn(batch, limit)
	s.plenty = 2*len(batch) >= limit
	s.ledger.take(batch)
	return batch
}

const (
	// yields is how often takeMore lets others run before it believes that
	// nothing more has arrived: a delivery passes through two goroutines of the
	// client on its way here.
	yields = 3
	// fillUp is how long a batch waits for more when the broker seems to have
	// it. After an acknowledgement the deliveries come one by one, and whoever
	// takes the first few makes small transactions for as long as there is a
	// backlog. When messages come singly, nothing waits.
	fillUp = time.Millisecond
)

// takeMore adds to batch what has arrived already, and what arrives within the
// time that is worth waiting.
func (s *subscription) takeMore(batch []*job, limit int) []*job {
	for idle := 0; len(batch) < limit && idle < yields; {
		select {
		case j, ok := <-s.intake:
			if !ok {
				return batch
			}
			batch, idle = append(batch, j), 0
		default:
			idle++
			runtime.Gosched()
		}
	}
	patience := s.tuning.BatchWait
	if s.plenty && s.ledger.open() == 0 { // what is on its way to a retry does not come soon
		patience = max(patience, fillUp)
	}
	if patience == 0 || len(batch) == limit {
		return batch
	}
	return s.await(batch, limit, patience, nil)
}

// await adds to batch what arrives while patience lasts, and until the turn is
// this worker's, if turn is given.
func (s *subscription) await(batch []*job, limit int, patience time.Duration, turn chan<- struct{}) []*job {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for len(batch) < limit {
		select {
		case j, ok := <-s.intake:
			if !ok {
				return batch
			}
			batch = append(batch, j)
		case turn <- struct{}{}:
			s.myTurn = true
			return batch
		case <-timer.C:
			return batch
		}
	}
	return batch
}

// slowBatch is how long a batch waits for another worker's at the most.
const slowBatch = 20 * time.Millisecond

// awaitTurn adds to batch what arrives while another worker of the queue has
// one in hand. Two small batches cost the database more than one that is as
// large as both; only what is full, or has waited for long, goes beside another.
func (s *subscription) awaitTurn(batch []*job, limit int) []*job {
	select {
	case s.turn <- struct{}{}:
		s.myTurn = true
		return batch
	default:
	}
	return s.await(batch, limit, slowBatch, s.turn)
}

func (s *subscription) endTurn() {
	if s.myTurn {
		s.myTurn = false
		<-s.turn
	}
}

// handleBatch handles what take returned, and shows that it is at it.
func (s *subscription) handleBatch(work context.Context, batch []*job) {
	s.priority.yield(work, s.rank)
	s.busySince.Store(time.Now().UnixNano())
	s.handle(work, batch)
	s.busySince.Store(0)
	s.endTurn()
	// What fills half of the prefetch was hardly all that the broker has.
	s.priority.done(s.rank, len(batch), 2*len(batch) >= s.prefetch)
}

// close gives back what is unsettled: the broker delivers it again.
func (s *subscription) close() {
	_ = s.ch.Close() // an error says that it is closed already
	s.metrics.channelsClosed.Inc()
	for range s.intake {
		s.priority.done(s.rank, 1, false)
	}
}
