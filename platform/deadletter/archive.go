package deadletter

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// How the archiver takes dead letters: rarely many, and then quickly.
const (
	archivePrefetch = 200
	archiveBatch    = 100
	archiveTimeout  = 10 * time.Second
	archiveRetry    = time.Second
	maxArchiveRetry = 15 * time.Second
)

// An Archiver moves dead letters from their queues into the database. A
// letter leaves its queue when it is committed, so where the archiver does
// not run, the queue keeps it for its day.
type Archiver struct {
	store    *Store
	rabbit   rabbit.Config
	topology *topology.Topology
	log      zerolog.Logger
}

// NewArchiver returns an Archiver of the dead-letter queues of t.
func NewArchiver(store *Store, cfg rabbit.Config, t *topology.Topology) *Archiver {
	return &Archiver{store: store, rabbit: cfg, topology: t, log: cfg.Log}
}

// Run archives until ctx ends.
func (a *Archiver) Run(ctx context.Context) error {
	return rabbit.Supervise(ctx, a.rabbit, func(ctx context.Context, conn *amqp.Connection) error {
		g, ctx := errgroup.WithContext(ctx)
		for queue, dlq := range a.topology.DeadLetterQueues() {
			g.Go(func() error { return a.drain(ctx, conn, queue, dlq) })
		}
		return g.Wait()
	})
}

// drain archives the messages of dlq until ctx ends. It declares the queue: at
// a new broker the archiver may be there before the consumer.
func (a *Archiver) drain(ctx context.Context, conn *amqp.Connection, queue, dlq string) error {
	if err := a.topology.DeclareDeadLetterQueue(conn, dlq); err != nil {
		return err
	}
	deliveries, err := rabbit.Consume(ctx, conn, dlq, archivePrefetch)
	if err != nil {
		return err
	}
	for first := range deliveries {
		batch := gather(first, deliveries)
		if err := a.archive(ctx, queue, batch); err != nil {
			return err
		}
		if err := batch[len(batch)-1].Ack(true); err != nil { // everything before it is archived
			return fmt.Errorf("acknowledge dead letters: %w", err)
		}
	}
	if ctx.Err() == nil {
		return fmt.Errorf("the broker ended the subscription of %s", dlq)
	}
	return nil
}

// gather adds to first the deliveries that are there already.
func gather(first amqp.Delivery, deliveries <-chan amqp.Delivery) []amqp.Delivery {
	batch := []amqp.Delivery{first}
	for len(batch) < archiveBatch {
		select {
		case d, ok := <-deliveries:
			if !ok {
				return batch
			}
			batch = append(batch, d)
		default:
			return batch
		}
	}
	return batch
}

// archive commits the batch. It tries until it succeeds or ctx ends: the
// letters are in hand, and their queue would give them out again at once.
func (a *Archiver) archive(ctx context.Context, queue string, batch []amqp.Delivery) error {
	letters := make([]Letter, len(batch))
	for i := range batch {
		letters[i] = NewLetter(queue, &batch[i], time.Now())
	}
	delays := backoff.Backoff{First: archiveRetry, Max: maxArchiveRetry}
	for {
		commitCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), archiveTimeout)
		err := a.store.Archive(commitCtx, letters)
		cancel()
		if err == nil {
			return nil
		}
		a.log.Warn().Str("queue", queue).Int("letters", len(letters)).Str("error", failure.Describe(err)).Msg("archiving dead letters failed, will retry")
		if err := backoff.Sleep(ctx, delays.Next()); err != nil {
			return err
		}
	}
}
