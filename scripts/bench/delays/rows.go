package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/group"
	"github.com/cityconnect/cityconnect/platform/topology"
	"github.com/cityconnect/cityconnect/scripts/bench/internal/testbed"
)

// dueHeader says when a message is due, in Unix milliseconds. It stays, while
// x-not-before goes when its time has come.
const dueHeader = "x-bench-due"

// lead is how long before the first message is due all of them are parked, at
// 1,000 a second.
func (b *bench) lead() time.Duration { return time.Duration(b.messages) * time.Millisecond }

// A latecomers counts messages by how late they came.
type latecomers struct {
	mu   sync.Mutex
	want int
	late []float64
	all  chan struct{}
}

func newLatecomers(want int) *latecomers { return &latecomers{want: want, all: make(chan struct{})} }

func (l *latecomers) came(headers amqp.Table) {
	due, _ := headers[dueHeader].(int64)
	late := time.Since(time.UnixMilli(due))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = append(l.late, float64(late.Microseconds())/1000)
	if len(l.late) == l.want {
		close(l.all)
	}
}

// rows lets messages wait as rows.
func (b *bench) rows(ctx context.Context, name string) (r result, err error) {
	url, drop, err := testbed.Vhost()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	const queue = "queue.bench"
	queues := topology.Group{Name: "bench", Queues: []topology.Queue{{Name: queue, Keys: []event.Key{event.VoteReceivedKey}}}}
	if err := b.publish(url, queue, queues); err != nil {
		return r, err
	}
	came := newLatecomers(b.messages)
	cfg := consumer.Defaults()
	runner, err := group.New(cfg, group.Dependencies{
		Database: b.pool, RabbitURL: url, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry(),
	}, consumer.Group{Name: queues.Name, Queues: queues.Queues, Effect: consumer.InTx(b.pool,
		func(_ context.Context, _ pgx.Tx, messages []consumer.Message) error {
			for _, m := range messages {
				came.came(m.Headers)
			}
			return nil
		})})
	if err != nil {
		return r, err
	}
	runCtx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	started := time.Now()
	go func() { ended <- runner.Run(runCtx) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()

	began := started
	for parked := 0; parked < b.messages; {
		if parked == 0 { // the consumer connects and declares yet
			began = time.Now()
		}
		time.Sleep(20 * time.Millisecond)
		if err := b.pool.QueryRow(ctx, `select count(*) from delayed_messages where queue = $1`, queue).Scan(&parked); err != nil {
			return r, fmt.Errorf("count: %w", err)
		}
		if time.Since(started) > b.lead() {
			return r, errors.New("the first message was due before all were parked")
		}
	}
	took := time.Since(began)
	select {
	case <-came.all:
	case <-ctx.Done():
		return r, ctx.Err()
	}
	return newResult(name, b.messages, took, came.late), nil
}

// publish fills the queue with messages that are due one after another.
func (b *bench) publish(url, queue string, queues topology.Group) error {
	conn, err := amqp.Dial(url)
	if err != nil {
		return fmt.Errorf("open broker: %w", err)
	}
	defer conn.Close()
	if err := topology.New(event.Topology{}, nil, queues).Declare(context.Background(), conn); err != nil {
		return err
	}
	out, err := newPublisher(conn)
	if err != nil {
		return err
	}
	// Publishing takes a few seconds itself; the lead begins after it.
	first := time.Now().Add(b.lead() + 15*time.Second)
	for range b.messages {
		due := first.Add(rand.N(b.spread)).UnixMilli()
		msg := message(due)
		msg.Headers[event.NotBeforeHeader] = due
		if err := out.publish("", queue, msg); err != nil {
			return err
		}
	}
	return out.flush()
}

func message(due int64) amqp.Publishing {
	body := fmt.Sprintf(`{"report_id": %q, "report_version": 2, "report_title": "Pothole", "timestamp": 1, "voter_id": "v", "vote_type": "upvote", "new_score": 1}`, uuid.New())
	return amqp.Publishing{
		MessageId: uuid.NewString(), Type: string(event.VoteReceivedKey), DeliveryMode: amqp.Persistent, Body: []byte(body),
		Headers: amqp.Table{dueHeader: due},
	}
}

// A publisher waits for the confirms of each 500 messages.
type publisher struct {
	ch       *amqp.Channel
	confirms []*amqp.DeferredConfirmation
}

func newPublisher(conn *amqp.Connection) (*publisher, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("open channel: %w", err)
	}
	if err := ch.Confirm(false); err != nil {
		return nil, fmt.Errorf("enter confirm mode: %w", err)
	}
	return &publisher{ch: ch}, nil
}

func (p *publisher) publish(exchange, key string, msg amqp.Publishing) error {
	confirm, err := p.ch.PublishWithDeferredConfirm(exchange, key, false, false, msg)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if p.confirms = append(p.confirms, confirm); len(p.confirms) == 500 {
		return p.flush()
	}
	return nil
}

func (p *publisher) flush() error {
	for _, c := range p.confirms {
		if !c.Wait() {
			return errors.New("the broker refused a message")
		}
	}
	p.confirms = p.confirms[:0]
	return nil
}
