package monitor

import (
	"context"
	"errors"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// A missing queue is looked for again soon, and then ever more rarely: the broker
// logs each time that it is not there. One that is about to be declared, as after the
// start of its consumer, is seen at once.
const firstAbsent, maxAbsent = time.Second, 20 * time.Second

// seenFor is how long the consumers that were counted are the answer.
const seenFor = 6 * time.Second

// errNotSeen is returned while the broker does not answer.
var errNotSeen = errors.New("the broker does not answer")

// errHidden is returned for a queue of which the broker says nothing: RabbitMQ 4.3 and
// later want a right to read or configure it.
var errHidden = errors.New("the account may not see the queue")

const hidden = -1 // in the place of the number of consumers

// A Broker reads whether the broker answers, and counts the consumers of queues. Its
// connection is its own: it takes no part in publishing or consuming.
type Broker struct {
	cfg    rabbit.Config
	queues []string
	conn   *amqp.Connection
	ch     *amqp.Channel
	absent map[string]*absence // by queue

	mu        sync.Mutex
	consumers map[string]int
	seenAt    time.Time
}

// An absence is how rarely a missing queue is looked for.
type absence struct {
	delays backoff.Backoff
	until  time.Time
	hidden bool
}

// NewBroker returns a Broker that counts the consumers of queues.
func NewBroker(cfg rabbit.Config, queues ...string) *Broker {
	return &Broker{cfg: cfg, queues: queues, absent: make(map[string]*absence)}
}

// Consumers returns how many consumers a queue had at the latest reading, or an
// error if there was none lately. A queue that is missing has none.
func (b *Broker) Consumers(queue string) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.seenAt) > seenFor {
		return 0, errNotSeen
	}
	if b.consumers[queue] == hidden {
		return 0, errHidden
	}
	return b.consumers[queue], nil
}

// Read is for a Part.
func (b *Broker) Read(ctx context.Context) Reading {
	consumers, err := b.look(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.seenAt = time.Time{}
		return Reading{State: Bad, Cause: awayCause(err)}
	}
	b.consumers, b.seenAt = consumers, time.Now()
	return Reading{State: Good}
}

// Close ends the connection.
func (b *Broker) Close() {
	if b.conn != nil {
		_ = b.conn.CloseDeadline(time.Now().Add(time.Second)) // gone either way
	}
}

func (b *Broker) look(ctx context.Context) (consumers map[string]int, err error) {
	if b.conn == nil || b.conn.IsClosed() {
		if b.conn, err = rabbit.Dial(ctx, b.cfg); err != nil {
			return nil, err
		}
		b.ch = nil
	}
	// amqp091-go waits without end for a broker that is there and says nothing.
	stop := context.AfterFunc(ctx, func() { _ = b.conn.CloseDeadline(time.Now()) })
	defer stop()
	consumers = make(map[string]int)
	for _, queue := range b.queues {
		absent := b.absent[queue]
		if absent != nil && time.Now().Before(absent.until) {
			if absent.hidden {
				consumers[queue] = hidden
			}
			continue
		}
		if b.ch == nil || b.ch.IsClosed() {
			if b.ch, err = b.conn.Channel(); err != nil {
				return nil, errors.Join(err, ctx.Err())
			}
		}
		q, err := b.ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		if e, ok := errors.AsType[*amqp.Error](err); ok && (e.Code == amqp.NotFound || e.Code == amqp.AccessRefused) {
			if absent == nil {
				absent = &absence{delays: backoff.Backoff{First: firstAbsent, Max: maxAbsent}}
				b.absent[queue] = absent
			}
			absent.until = time.Now().Add(absent.delays.Next())
			if absent.hidden = e.Code == amqp.AccessRefused; absent.hidden {
				consumers[queue] = hidden
			}
			continue
		}
		if err != nil {
			return nil, errors.Join(err, ctx.Err())
		}
		delete(b.absent, queue)
		consumers[queue] = q.Consumers
	}
	return consumers, nil
}
