package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wamqp "github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	wmessage "github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/wagslane/go-rabbitmq"
	"golang.org/x/sync/errgroup"
)

// prefetch is the contract's, for each consumer. wagslane also runs as many
// handlers at once, which is its best; watermill handles one message at a time.
const prefetch = 10

// raw acknowledges each message and does nothing with it.
func (b *bench) raw(ctx context.Context, url string, l load) (result, error) {
	conn, err := amqp.Dial(url)
	if err != nil {
		return result{}, fmt.Errorf("open broker: %w", err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return result{}, fmt.Errorf("open channel: %w", err)
	}
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return result{}, fmt.Errorf("set prefetch: %w", err)
	}
	deliveries, err := ch.ConsumeWithContext(ctx, b.queue(), "", false, false, false, false, nil)
	if err != nil {
		return result{}, fmt.Errorf("consume: %w", err)
	}
	watch := newStopwatch(l)
	for d := range deliveries {
		watch.begin()
		if err := d.Ack(false); err != nil {
			return result{}, fmt.Errorf("acknowledge: %w", err)
		}
		if watch.done(d.MessageId) {
			break
		}
	}
	return watch.result(), nil
}

// An effect is the same idempotent insert for each peer.
type effect struct {
	pool  *pgxpool.Pool
	watch *stopwatch
}

func (b *bench) newEffect(ctx context.Context, l load) (*effect, error) {
	cfg, err := pgxpool.ParseConfig(b.database)
	if err != nil {
		return nil, fmt.Errorf("read database URL: %w", err)
	}
	cfg.MaxConns = 20 // as our services have
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return &effect{pool, newStopwatch(l)}, nil
}

var errSick = errors.New("this message fails for a second")

func (e *effect) apply(ctx context.Context, id string) error {
	e.watch.begin()
	if e.watch.sick(id) {
		return errSick
	}
	_, err := e.pool.Exec(ctx, `
		insert into processed_messages (consumer, message_id) values ('bench', $1) on conflict do nothing`, id)
	if err != nil {
		return fmt.Errorf("insert: %w", err)
	}
	e.watch.done(id)
	return nil
}

// wagslane consumes with so many consumers of ten handlers each, and requeues
// what fails.
func (b *bench) wagslane(consumers int) func(context.Context, string, load) (result, error) {
	return func(ctx context.Context, url string, l load) (result, error) {
		e, err := b.newEffect(ctx, l)
		if err != nil {
			return result{}, err
		}
		defer e.pool.Close()
		conn, err := rabbitmq.NewConn(url, rabbitmq.WithConnectionOptionsLogger(quiet{}))
		if err != nil {
			return result{}, fmt.Errorf("open broker: %w", err)
		}
		defer conn.Close()
		var running errgroup.Group
		var started []*rabbitmq.Consumer
		for range consumers {
			c, err := rabbitmq.NewConsumer(conn, b.queue(), rabbitmq.WithConsumerOptionsQueueNoDeclare,
				rabbitmq.WithConsumerOptionsConcurrency(prefetch), rabbitmq.WithConsumerOptionsQOSPrefetch(prefetch),
				rabbitmq.WithConsumerOptionsLogger(quiet{}))
			if err != nil {
				return result{}, fmt.Errorf("make consumer: %w", err)
			}
			started = append(started, c)
			running.Go(func() error {
				return c.Run(func(d rabbitmq.Delivery) rabbitmq.Action {
					if e.apply(ctx, d.MessageId) != nil {
						return rabbitmq.NackRequeue
					}
					return rabbitmq.Ack
				})
			})
		}
		err = e.watch.wait(ctx)
		for _, c := range started {
			c.Close()
		}
		return e.watch.result(), errors.Join(err, running.Wait())
	}
}

type quiet struct{}

func (quiet) Fatalf(string, ...any) {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Warnf(string, ...any)  {}
func (quiet) Infof(string, ...any)  {}
func (quiet) Debugf(string, ...any) {}

// watermill consumes with its router and its retry middleware, which waits in
// the handler.
func (b *bench) watermill(ctx context.Context, url string, l load) (result, error) {
	e, err := b.newEffect(ctx, l)
	if err != nil {
		return result{}, err
	}
	defer e.pool.Close()
	cfg := wamqp.NewDurableQueueConfig(url)
	cfg.Consume.Qos.PrefetchCount = prefetch
	cfg.Marshaler = byMessageID{}
	cfg.TopologyBuilder = &standing{}
	subscriber, err := wamqp.NewSubscriber(cfg, watermill.NopLogger{})
	if err != nil {
		return result{}, fmt.Errorf("make subscriber: %w", err)
	}
	router, err := wmessage.NewRouter(wmessage.RouterConfig{CloseTimeout: time.Second}, watermill.NopLogger{})
	if err != nil {
		return result{}, fmt.Errorf("make router: %w", err)
	}
	router.AddMiddleware(middleware.Retry{MaxRetries: 3, InitialInterval: time.Second, Logger: watermill.NopLogger{}}.Middleware)
	router.AddConsumerHandler("effect", b.queue(), subscriber, func(m *wmessage.Message) error {
		return e.apply(m.Context(), m.UUID)
	})
	ended := make(chan error, 1)
	go func() { ended <- router.Run(ctx) }()
	err = e.watch.wait(ctx)
	_ = router.Close() // a handler that sleeps in its retry ends with the process
	return e.watch.result(), errors.Join(err, subscriber.Close())
}

// byMessageID reads messages as they are published here.
type byMessageID struct{ wamqp.DefaultMarshaler }

func (byMessageID) Unmarshal(d amqp.Delivery) (*wmessage.Message, error) {
	return wmessage.NewMessage(d.MessageId, d.Body), nil
}

// standing leaves the queue as it stands: watermill cannot declare ours.
type standing struct{ wamqp.DefaultTopologyBuilder }

func (*standing) BuildTopology(*amqp.Channel, wamqp.BuildTopologyParams, wamqp.Config, watermill.LoggerAdapter) error {
	return nil
}
