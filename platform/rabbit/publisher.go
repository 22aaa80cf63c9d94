package rabbit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A Result is what became of a published message.
type Result int

// The results of a publish.
const (
	Acked    Result = iota // the broker has it, in a queue
	Nacked                 // the broker refused it
	Returned               // no queue takes it
	Lost                   // the connection went first: it may or may not be there
)

// An Outcome is the end of one publish.
type Outcome struct {
	Result Result
	Reason string // the broker's words, for a Returned message
}

// Errors of PublishWait for a message that did not arrive, or may not have.
var (
	ErrNacked   = errors.New("the broker refused the message")
	ErrReturned = errors.New("no queue takes the message")
	ErrLost     = errors.New("the connection ended before the broker answered")
)

// Err returns nil for an Acked message, else one of ErrNacked, ErrReturned and
// ErrLost.
func (o Outcome) Err() error {
	switch o.Result {
	case Acked:
		return nil
	case Nacked:
		return ErrNacked
	case Returned:
		return fmt.Errorf("%w: %s", ErrReturned, o.Reason)
	default:
		return ErrLost
	}
}

// A Publisher publishes on one channel of its own, in confirm mode and
// mandatory, with a bounded number of messages in flight. It lives as long as
// its connection.
type Publisher struct {
	conn    *amqp.Connection
	ch      *amqp.Channel
	returns chan amqp.Return
	closes  chan *amqp.Error
	slots   chan struct{} // one per message in flight; full means wait
	unacked chan inFlight // in publishing order, never full: a slot comes first
	done    chan struct{} // closed once no message is in flight

	mu     sync.Mutex // one publish at a time: for the order, and a channel allows no more
	closed bool
}

// An inFlight is a message that the broker has not answered yet.
type inFlight struct {
	exchange, key, id string
	body              []byte
	confirm           *amqp.DeferredConfirmation
	onOutcome         func(Outcome)
}

// NewPublisher opens a channel for publishing on conn, with at most window
// messages in flight. A window above 1,024 costs more than it gains: the
// client's bookkeeping grows with it.
func NewPublisher(conn *amqp.Connection, window int) (*Publisher, error) {
	var ch *amqp.Channel
	err := Ask(conn, func() (err error) {
		if ch, err = conn.Channel(); err != nil {
			return fmt.Errorf("open publishing channel: %w", err)
		}
		if err := ch.Confirm(false); err != nil {
			_ = ch.Close()
			return fmt.Errorf("enter confirm mode: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	p := &Publisher{
		conn: conn,
		ch:   ch,
		// At most window returns can be unread; a full listener would lose one
		// after five seconds, and a lost return looks like success.
		returns: ch.NotifyReturn(make(chan amqp.Return, window)),
		closes:  ch.NotifyClose(make(chan *amqp.Error, 1)),
		slots:   make(chan struct{}, window),
		unacked: make(chan inFlight, window),
		done:    make(chan struct{}),
	}
	go p.awaitOutcomes()
	return p, nil
}

// Publish sends msg and returns; onOutcome is called once the broker answered
// or the connection ended, in publishing order, from another goroutine, which
// it must not hold up. While the window is full, Publish waits.
//
// After an error onOutcome is not called. ErrUnpublishable concerns the message
// alone; any other error means that the channel is over and that it is unknown
// whether the message went out.
func (p *Publisher) Publish(exchange, key string, msg amqp.Publishing, onOutcome func(Outcome)) error {
	if err := checkShort(short{"exchange", exchange}, short{"routing_key", key}); err != nil {
		return err
	}
	if err := CheckSize(msg); err != nil {
		return err
	}
	select {
	case p.slots <- struct{}{}:
	case <-p.done:
		return ErrLost
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrLost
	}
	confirm, err := p.ch.PublishWithDeferredConfirm(exchange, key, true, false, msg)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	p.unacked <- inFlight{exchange, key, msg.MessageId, msg.Body, confirm, onOutcome}
	return nil
}

// PublishWait sends msg and waits for the answer. It returns nil only if the
// broker has the message in a queue. When ctx ends first, or with ErrLost, the
// message may or may not be there. It is safe for concurrent use.
func (p *Publisher) PublishWait(ctx context.Context, exchange, key string, msg amqp.Publishing) error {
	outcome := make(chan Outcome, 1)
	if err := p.Publish(exchange, key, msg, func(o Outcome) { outcome <- o }); err != nil {
		return err
	}
	select {
	case o := <-outcome:
		return o.Err()
	case <-ctx.Done():
		return fmt.Errorf("wait for confirm: %w", ctx.Err())
	}
}

// Close closes the channel and waits until everything in flight has its
// outcome, which is Lost if the broker has not answered. A broker that does not
// answer this either loses the whole connection.
func (p *Publisher) Close() {
	timeout := time.AfterFunc(closeTimeout, func() { closeWithin(p.conn, closeTimeout) })
	defer timeout.Stop()
	_ = p.ch.Close() // its answer changes nothing: the channel is gone
	<-p.done
}

// awaitOutcomes waits for the outcome of one message after another, until the
// channel is closed and none is left.
func (p *Publisher) awaitOutcomes() {
	defer close(p.done)
	var returned []amqp.Return // not matched with a message yet
	for {
		select {
		case m := <-p.unacked:
			returned = p.await(m, returned)
		case <-p.closes:
			p.mu.Lock()
			p.closed = true
			p.mu.Unlock()
			for len(p.unacked) > 0 {
				returned = p.await(<-p.unacked, returned)
			}
			return
		}
	}
}

// await waits for the answer to m. The broker sends a return before the
// confirm of the same message, on the same channel, and both are passed on by
// one goroutine: once the confirm is here, the return is in p.returns.
func (p *Publisher) await(m inFlight, returned []amqp.Return) []amqp.Return {
	<-m.confirm.Done()
	for len(p.returns) > 0 {
		returned = append(returned, <-p.returns)
	}
	outcome := Outcome{Result: Acked}
	i := slices.IndexFunc(returned, m.matches)
	switch {
	case i >= 0:
		outcome = Outcome{Result: Returned, Reason: fmt.Sprintf("%d %s", returned[i].ReplyCode, returned[i].ReplyText)}
		returned = slices.Delete(returned, i, i+1)
	case m.confirm.Acked():
	case p.ch.IsClosed():
		outcome.Result = Lost // the library's own nack: it means "unknown"
	default:
		outcome.Result = Nacked
	}
	m.onOutcome(outcome)
	<-p.slots
	return returned
}

// matches reports whether r returns m. A return carries no delivery tag; the
// first message with the same address, id and body is taken, and where two are
// equal in all of these, either answer fits either.
func (m inFlight) matches(r amqp.Return) bool {
	return r.MessageId == m.id && r.RoutingKey == m.key && r.Exchange == m.exchange &&
		bytes.Equal(r.Body, m.body)
}
