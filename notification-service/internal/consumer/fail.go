package consumer

import (
	"context"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/notification-service/internal/failure"
	"github.com/cityconnect/cityconnect/notification-service/internal/forwarder"
	"github.com/cityconnect/cityconnect/platform/event"
)

// fail moves a job that could not be handled to a retry tier, or to the dead
// letters when another attempt makes no sense or none is left.
func (s *subscription) fail(work context.Context, j *job, err error) {
	f := failure.Record{Queue: s.queue, Class: failure.Classify(err), Text: failure.Describe(err), At: time.Now()}
	retries := failure.Retries(j.d.Headers)
	s.board.failed.add(1)
	line := s.log.Warn().Str("queue", s.queue).Str("message_id", clip(j.d.MessageId)).
		Str("class", string(f.Class)).Str("reason", f.Text).Int("retries", retries)
	if trace, ok := j.d.Headers[event.TraceHeader].(string); ok {
		line = line.Str("traceparent", clip(trace))
	}
	ladder := s.tuning.Ladder()
	if f.Class.Retryable() && retries < len(ladder) {
		delay := ladder[retries]
		line.Dur("delay", delay).Msg("message will be retried")
		s.metrics.retried.WithLabelValues(s.queue, string(f.Class)).Inc()
		s.move(work, j, s.topology.RetryExchange(delay), s.queue, failure.Retry(j.d, f))
		return
	}
	line.Msg("message is a dead letter")
	s.metrics.deadLettered.WithLabelValues(s.queue, string(f.Class)).Inc()
	s.move(work, j, s.topology.Names.DeadLetterExchange(), s.topology.Names.DeadLetterKey(s.queue), failure.DeadLetter(j.d, f))
}

// move publishes msg and then acknowledges the original. It does not hold up
// the worker. Until the broker confirms, the original stays unsettled; it is
// delivered again if that never happens.
func (s *subscription) move(work context.Context, j *job, exchange, key string, msg amqp.Publishing) {
	s.moves.Go(func() {
		err := s.forwarder.Forward(work, exchange, key, msg)
		if errors.Is(err, forwarder.ErrTooLarge) {
			msg.Headers = failure.Essential(msg.Headers)
			err = s.forwarder.Forward(work, exchange, key, msg)
		}
		switch {
		case err == nil:
			s.forget(work, j)
			s.ledger.done(j)
		case errors.Is(err, forwarder.ErrTooLarge):
			s.reject(j)
		}
	})
}

// reject lets the broker move what is too large to be published: it has the
// bytes already. Such a dead letter lacks our reasons.
func (s *subscription) reject(j *job) {
	if j.d.Reject(false) == nil {
		s.metrics.nacked.WithLabelValues(s.queue).Inc()
	}
	s.ledger.drop(j)
}

// forget drops the notes of a suspect that came to an end. If that fails, it
// is suspected a little longer than it deserves.
func (s *subscription) forget(work context.Context, j *job) {
	if !j.noted {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), pingTimeout)
	defer cancel()
	if err := s.store.Finish(ctx, s.queue, j.msg.ID); err != nil {
		s.log.Warn().Str("queue", s.queue).Str("reason", failure.Describe(err)).Msg("forget starts of message")
	}
}

// clip keeps what anyone may have written into a message out of the log's way.
func clip(s string) string {
	const longest = 64
	return s[:min(len(s), longest)]
}
