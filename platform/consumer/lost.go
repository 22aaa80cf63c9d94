package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/rabbit"
)

const (
	// lostMargin is how much earlier a loss is said to have begun than the queue was
	// last seen empty: clocks differ, and a message may have been on its way.
	lostMargin = time.Minute
	// longestBacklog is where republishing begins when nobody has seen the queue
	// empty: the outbox keeps no more by default.
	longestBacklog = 72 * time.Hour
	// auditedBack is how many entries of the audit are searched for losses.
	auditedBack = 20_000
)

// A LostQueue was deleted or has expired, with the messages that were in it, and
// was declared again since. All that was published before Since was handled.
type LostQueue struct {
	Queue string
	Since time.Time
}

// LostQueues returns the queues that were lost and whose messages nobody has said
// to be published again.
func LostQueues(ctx context.Context, pool *pgxpool.Pool) ([]LostQueue, error) {
	return pgpool.Collect(ctx, pool, "read lost queues", pgx.RowToStructByPos[LostQueue], `
		with recent as (
		  select id, action, queue, detail from (select * from operations_audit order by id desc limit $3) a where action in ($1, $2)
		)
		select queue, min((detail->>'since')::timestamptz) from recent l
		where action = $1 and not exists (select from recent r where r.action = $2 and r.queue = l.queue and r.id > l.id)
		group by queue order by queue`, audit.QueueLost, audit.QueueRepublished, auditedBack)
}

// Republished notes that what the lost queues had was published again from since
// on, and returns those of which that is not true.
func Republished(ctx context.Context, pool *pgxpool.Pool, actor string, since time.Time) (left []LostQueue, err error) {
	lost, err := LostQueues(ctx, pool)
	if err != nil {
		return nil, err
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		for _, l := range lost {
			if l.Since.Before(since) {
				left = append(left, l)
				continue
			}
			if err := writeLoss(ctx, tx, actor, audit.QueueRepublished, l.Queue, since); err != nil {
				return err
			}
		}
		return nil
	})
	return left, err
}

func writeLoss(ctx context.Context, tx pgx.Tx, actor string, action audit.Action, queue string, since time.Time) error {
	return audit.Write(ctx, tx, audit.Entry{Actor: actor, Action: action, Queue: &queue}, map[string]time.Time{"since": since.UTC().Truncate(time.Second)})
}

// noteExists takes what the broker says of a queue that this process reads. One
// that was there, and is not, was deleted: whatever reads it would declare it again
// and nobody would learn of it. The caller is on the connection of before, so that
// it is the same broker, with its disk.
//
// It reports whether the queue was lost just now.
func (q *queueWorkers) noteExists(ctx context.Context, there bool, messages int) (lost bool) {
	switch {
	case there:
		q.stats.exists.Store(true)
		if messages == 0 && q.breaker.isClosed() { // else the workers hold some that are not done
			q.emptyAt.Store(time.Now().Unix())
		}
		q.noteLoss(ctx)
		return false
	case !q.stats.exists.CompareAndSwap(true, false) || q.effect == nil:
		return false
	}
	since := time.Now().Add(-longestBacklog)
	if empty := q.emptyAt.Load(); empty > 0 {
		since = time.Unix(empty, 0).Add(-lostMargin)
	}
	q.lostSince.CompareAndSwap(0, since.Unix())
	q.log.Error().Str("queue", q.queue).Time("since", since).Msg("queue was deleted with its messages, run report-service republish and then notification-service republished; see docs/recoverability.md")
	q.noteLoss(ctx)
	return true
}

// noteLoss notes a loss that was not noted yet.
func (q *queueWorkers) noteLoss(ctx context.Context) {
	since := q.lostSince.Load()
	if since == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTimeout)
	defer cancel()
	if err := q.store.noteLoss(ctx, q.queue, time.Unix(since, 0)); err != nil {
		q.log.Warn().Str("queue", q.queue).Str("error", failure.Describe(err)).Msg("noting the loss of a queue failed, will retry")
		return
	}
	q.lostSince.CompareAndSwap(since, 0)
}

// lookForLosses finds out which of the queues that this process reads are gone. It asks
// on the session's connection: behind another one there may be another broker.
func (c *Consumer) lookForLosses(ctx context.Context) {
	conn := c.conn.Load()
	if conn == nil {
		return
	}
	for _, q := range c.queues {
		if q.effect != nil {
			q.lookAgain(ctx, conn)
		}
	}
}

// lookAgain finds out whether the queue is gone.
func (q *queueWorkers) lookAgain(ctx context.Context, conn *amqp.Connection) {
	ch, err := rabbit.OpenChannel(conn)
	if err != nil {
		return
	}
	defer ch.Close()
	state, err := ch.QueueDeclarePassive(q.queue, true, false, false, false, nil)
	if err == nil || isNotFound(err) {
		q.noteExists(ctx, err == nil, state.Messages)
	}
}

// isNotFound reports whether the broker answered that a queue does not exist.
func isNotFound(err error) bool {
	refusal, ok := errors.AsType[*amqp.Error](err)
	return ok && refusal.Code == amqp.NotFound
}

// noteLoss writes the loss of a queue into the audit.
func (s *store) noteLoss(ctx context.Context, queue string, since time.Time) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		return writeLoss(ctx, tx, "the service", audit.QueueLost, queue, since)
	})
}
