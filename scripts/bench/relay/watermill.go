package main

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wamqp "github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver that Watermill uses
)

// outboxTopic is Watermill's table.
const outboxTopic = "events"

// runWatermill forwards n messages from Watermill's outbox, and returns when
// the last is acknowledged.
func runWatermill(ctx context.Context, f *fixture, n int) (time.Duration, error) {
	db, err := stdsql.Open("pgx", f.database)
	if err != nil {
		return 0, err
	}
	defer db.Close() // nothing is under way
	if err := addEnvelopes(ctx, db, n); err != nil {
		return 0, err
	}
	subscriber, err := sql.NewSubscriber(sql.BeginnerFromStdSQL(db), sql.SubscriberConfig{
		SchemaAdapter:    sql.DefaultPostgreSQLSchema{SubscribeBatchSize: 500},
		OffsetsAdapter:   sql.DefaultPostgreSQLOffsetsAdapter{},
		InitializeSchema: true,
		PollInterval:     10 * time.Millisecond,
	}, watermill.NopLogger{})
	if err != nil {
		return 0, err
	}
	publisher, err := wamqp.NewPublisher(publisherConfig(f), watermill.NopLogger{})
	if err != nil {
		return 0, err
	}
	defer publisher.Close() // all is confirmed
	return forward(ctx, subscriber, publisher, n)
}

func publisherConfig(f *fixture) wamqp.Config {
	config := wamqp.NewDurableTopicConfig(f.broker, f.topology.Exchange(), "")
	config.Exchange.Durable = true
	config.Publish.ConfirmDelivery = true
	config.Publish.ChannelPoolSize = 10
	config.Publish.Mandatory = true
	return config
}

func forward(ctx context.Context, subscriber message.Subscriber, publisher message.Publisher, n int) (time.Duration, error) {
	var left atomic.Int64
	left.Store(int64(n))
	done := make(chan struct{})
	counting := func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			produced, err := next(msg)
			if err == nil && left.Add(-1) == 0 {
				close(done)
			}
			return produced, err
		}
	}
	f, err := forwarder.NewForwarder(subscriber, publisher, watermill.NopLogger{}, forwarder.Config{
		ForwarderTopic: outboxTopic, Middlewares: []message.HandlerMiddleware{counting},
	})
	if err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- f.Run(ctx) }()
	select {
	case <-done:
	case err := <-ended:
		return 0, fmt.Errorf("forwarder ended early: %w", err)
	}
	took := time.Since(began)
	return took, errors.Join(f.Close(), <-ended)
}

// addEnvelopes fills Watermill's outbox again, through its own publisher.
func addEnvelopes(ctx context.Context, db *stdsql.DB, n int) error {
	if _, err := db.ExecContext(ctx, `drop table if exists watermill_events, watermill_offsets_events`); err != nil {
		return err
	}
	inner, err := sql.NewPublisher(sql.BeginnerFromStdSQL(db), sql.PublisherConfig{
		SchemaAdapter: sql.DefaultPostgreSQLSchema{}, AutoInitializeSchema: true,
	}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	outer := forwarder.NewPublisher(inner, forwarder.PublisherConfig{ForwarderTopic: outboxTopic})
	const batch = 500
	for from := 0; from < n; from += batch {
		var messages []*message.Message
		for range min(batch, n-from) {
			msg := message.NewMessage(uuid.NewString(), body(uuid.New(), 1))
			for name, value := range headers() {
				msg.Metadata.Set(name, value)
			}
			messages = append(messages, msg)
		}
		if err := outer.Publish(string(key), messages...); err != nil {
			return fmt.Errorf("fill watermill's outbox: %w", err)
		}
	}
	return nil
}
