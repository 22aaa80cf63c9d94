package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/delay"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/forwarder"
)

// A Forwarder publishes under confirm; forwarder.Forwarder is one.
type Forwarder interface {
	Forward(ctx context.Context, exchange, key string, msg amqp.Publishing) error
}

// retriesExceeded is the code of the log line for a message whose attempts are used
// up. A broken message, which never had another attempt, is logged without it.
const retriesExceeded = "RABBITMQ_MESSAGE_MAX_RETRIES_EXCEEDED"

// fail moves a job that could not be handled to a retry queue, or to the dead
// letters when another attempt makes no sense or none is left.
func (h *handler) fail(work context.Context, j *job, err error) {
	f := failure.Record{Queue: h.queue, Class: failure.Classify(err), Text: failure.Describe(err), At: time.Now()}
	retries := failure.Retries(j.d.Headers)
	h.stats.failed.Add(f.At, 1)
	line := h.about(h.log.Warn(), j).Str("class", string(f.Class)).Str("error", f.Text).Int("retries", retries)
	if f.Class.Retryable() && retries < len(h.schedule) {
		delay := h.schedule[retries]
		line.Dur("delay", delay).Msg("handling a message failed, will retry")
		h.metrics.retried.WithLabelValues(h.queue, string(f.Class)).Inc()
		h.forward(work, j, h.topology.RetryExchange(delay), h.queue, failure.Retry(j.d, f))
		return
	}
	if f.Class.Retryable() {
		line.Str("code", retriesExceeded).Msg("handling a message failed and no attempt is left, it becomes a dead letter")
	} else {
		line.Msg("handling a message failed, it becomes a dead letter")
	}
	h.metrics.deadLettered.WithLabelValues(h.queue, string(f.Class)).Inc()
	names := h.topology.Names
	h.forward(work, j, names.DeadLetterExchange(), names.DeadLetterKey(h.queue), failure.DeadLetter(j.d, f))
}

// postponedFor is how long a message waits whose turn has not come.
const postponedFor = 5 * time.Second

// postpone moves a job that has not failed to a retry queue: the one whose delay is
// next to postponedFor.
func (h *handler) postpone(work context.Context, j *job, why error) {
	delay := slices.MinFunc(slices.Collect(maps.Keys(h.topology.RetryQueues())), func(a, b time.Duration) int {
		return cmp.Or(cmp.Compare((a-postponedFor).Abs(), (b-postponedFor).Abs()), cmp.Compare(a, b))
	})
	h.about(h.log.Debug(), j).Str("reason", failure.Describe(why)).Dur("delay", delay).Msg("a message waits for its turn")
	h.metrics.postponed.WithLabelValues(h.queue).Inc()
	j.noted = false // what the database has of it now says that it waits
	h.forward(work, j, h.topology.RetryExchange(delay), h.queue, failure.Postpone(j.d))
}

// forward publishes msg and then acknowledges the original. It does not hold
// up the worker. Until the broker confirms, the original stays unsettled; it
// is delivered again if that never happens.
func (h *handler) forward(work context.Context, j *job, exchange, key string, msg amqp.Publishing) {
	h.forwarding.Go(func() {
		err := h.forwarder.Forward(work, exchange, key, msg)
		switch {
		case err == nil:
			if j.noted {
				h.finish(work, j)
			}
			h.acks.done(j)
		case errors.Is(err, forwarder.ErrTooLarge):
			// The broker moves a message that is too large to be published: it has
			// the bytes already. Such a dead letter has none of our headers.
			if j.d.Reject(false) == nil {
				h.metrics.nacked.WithLabelValues(h.queue).Inc()
			}
			h.acks.forget(j)
		}
	})
}

// finish deletes the notes of a redelivered message that came to an end. If
// that fails, the message counts as suspect until upkeep removes its starts.
func (h *handler) finish(work context.Context, j *job) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), pingTimeout)
	defer cancel()
	if err := h.store.finish(ctx, h.queue, j.msg.ID); err != nil {
		h.log.Warn().Str("queue", h.queue).Str("error", failure.Describe(err)).Msg("deleting the starts of a message failed, upkeep will retry")
	}
}

// about adds to a log line what the job's message, and the request that it came
// of, are found by.
func (h *handler) about(line *zerolog.Event, j *job) *zerolog.Event {
	if !line.Enabled() {
		return line
	}
	return line.Str("queue", h.queue).Str("message_id", clip(j.d.MessageId)).
		Str("trace_id", event.TraceID(j.d.Headers[event.TraceHeader]))
}

// clip shortens what anyone may have written into a message before it is
// logged.
func clip(s string) string {
	const longest = 64
	return s[:min(len(s), longest)]
}

// A Parker keeps messages until a time; delay.Releaser is one.
type Parker interface {
	// Park keeps those of messages from queue whose time has not come, and
	// returns what became of each, by its id. With again they may have come from the
	// Parker just now.
	Park(ctx context.Context, queue string, messages []delay.Message, again bool) (map[string]delay.Outcome, error)
}

// park keeps back the jobs of a batch whose time has not come, and returns the
// others, which are to be handled now.
func (h *handler) park(work context.Context, batch []*job) (now []*job) {
	isEarly := func(j *job) bool { return j.err == nil && !j.notBefore.IsZero() }
	if !slices.ContainsFunc(batch, isEarly) { // as in most batches
		return batch
	}
	var early []*job
	var messages []delay.Message
	for _, j := range batch {
		if isEarly(j) {
			early, messages = append(early, j), append(messages, delay.NewMessage(j.d, j.notBefore))
		} else {
			now = append(now, j)
		}
	}
	h.parkAll(work, early, messages, false, func(j *job, outcome delay.Outcome) {
		switch outcome {
		case delay.Parked:
			h.metrics.parked.WithLabelValues(h.queue).Inc()
			h.acks.done(j)
		case delay.Far:
			h.fail(work, j, failure.Refuse(fmt.Sprintf("%s is more than %d days ahead", event.NotBeforeHeader, int(delay.MaxAhead.Hours()/24))))
		case delay.Full:
			h.fail(work, j, failure.Refuse("as many messages wait until a time as DELAY_MAX allows"))
		default:
			now = append(now, j)
		}
	})
	return now
}

// parkAll parks messages, which are those of jobs, in one transaction, or if that fails
// one by one, so that each fails for its own reason. It passes what became of the others
// to settle. stopped is that of applyBatch.
func (h *handler) parkAll(work context.Context, jobs []*job, messages []delay.Message, again bool, settle func(*job, delay.Outcome)) (stopped bool) {
	var outcomes map[string]delay.Outcome
	err := h.withDatabase(work, func(ctx context.Context, _ bool) (err error) {
		outcomes, err = h.parker.Park(ctx, h.queue, messages, again)
		return err
	})
	switch {
	case errors.Is(err, errStopped):
		return true
	case err != nil && len(jobs) == 1:
		h.fail(work, jobs[0], err)
		return false
	case err != nil:
		for i := range jobs {
			stopped = h.parkAll(work, jobs[i:i+1], messages[i:i+1], again, settle) || stopped
		}
		return stopped
	}
	for _, j := range jobs {
		settle(j, outcomes[j.msg.ID])
	}
	return false
}
