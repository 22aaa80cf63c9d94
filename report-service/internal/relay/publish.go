package relay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/trace"
)

// burst is how many rows are published before the session does anything else:
// confirms make room in the window, and neither they nor a change of the leases
// should wait for the end of a long queue.
const burst = 64

// untilRecorded blocks a report until the refusal of its row is in the table.
const untilRecorded = int64(math.MaxInt64)

// A confirmation is the end of one publish.
type confirmation struct {
	row     *row
	outcome rabbit.Outcome
}

// A probeResult is the outcome of the probe of an open circuit.
type probeResult struct {
	key string
	row *row // nil if none waits
	err error
}

// publish sends queued rows, up to a burst, and reports whether more could be
// sent at once.
func (s *session) publish(now time.Time) (more bool, err error) {
	if !s.leases.Valid() { // the guard at the socket checks again
		return false, nil
	}
	count := &s.rows.count
	for n := 0; len(s.rows.queue) > 0 && !s.isBlocked && !s.reconnecting; n++ {
		// A crash leaves at most a window and a batch of rows published and
		// unrecorded. So the result writer also has room for all rows that wait
		// for it.
		if count[inFlight] >= s.cfg.Window || count[inFlight]+count[recording] >= s.cfg.Window+resultBatch {
			break
		}
		if n == burst {
			return true, nil
		}
		r := s.rows.next()
		if s.rows.isBlocked(r) || s.breaker.isOpen(r.key) || !s.leases.MayPublish(r.lease) {
			s.rows.release(r)
			continue
		}
		if count[inFlight] == 0 {
			s.progress = now // until now, the broker owed no confirm
		}
		r.publishedAt = now
		s.rows.move(r, inFlight) // before any byte is sent, because the guard checks it
		err := s.publisher.Publish(s.exchange, r.key, r.message(), func(o rabbit.Outcome) {
			s.confirmations <- confirmation{r, o}
		})
		switch {
		case errors.Is(err, rabbit.ErrUnpublishable):
			s.metrics.refused.WithLabelValues(unpublishable).Inc()
			// No circuit opens: this is the fault of the message, not of its queue.
			s.rows.block(r, untilRecorded)
			s.record(result{row: r, refusal: err.Error()})
		case err != nil:
			s.rows.release(r) // its outcome is unknown: the next session reads it again
			return false, fmt.Errorf("publish: %w", err)
		}
	}
	return false, nil
}

// onConfirm handles the broker's answer.
func (s *session) onConfirm(c confirmation) {
	r, now := c.row, time.Now()
	s.progress = now
	switch c.outcome.Result {
	case rabbit.Acked:
		s.metrics.published.WithLabelValues(r.key).Inc()
		s.metrics.rate.Add(now, 1)
		s.metrics.confirmSeconds.Observe(now.Sub(r.publishedAt).Seconds())
		s.metrics.commitSeconds.Observe(max(0, now.Sub(r.created)), now, trace.ID(r.trace.String))
		if s.rows.isBlocked(r) {
			s.metrics.overtaken.Inc()
		}
		s.recordSuccess(r.key)
		s.record(result{row: r})
	case rabbit.Nacked:
		s.metrics.refused.WithLabelValues(nacked).Inc()
		s.onRefusal(result{row: r, refusal: "the broker refused the message (nack)"})
	case rabbit.Returned:
		s.metrics.refused.WithLabelValues(returned).Inc()
		s.onRefusal(result{r, "no queue takes the message: " + c.outcome.Reason, s.breaker.has(r.key)})
	case rabbit.Lost:
		s.rows.release(r) // its outcome is unknown: the next session reads it again, in order
	}
}

// onRefusal counts an attempt of a row, unless it is spared or the circuit of its
// routing key is open.
func (s *session) onRefusal(res result) {
	r := res.row
	open, opened := s.breaker.recordRefusal(r.key, res.refusal, time.Now())
	// Later rows of this report that are in flight cannot be called back; the
	// others wait, or they would certainly overtake it.
	if !open {
		s.rows.block(r, untilRecorded)
		s.record(res)
		return
	}
	s.rows.block(r, s.watermark.reads)
	s.rows.release(r)
	if opened {
		s.metrics.circuitOpen.WithLabelValues(r.key).Set(1)
		s.log.Error().Str("routing_key", r.key).Str("reason", res.refusal).
			Msg("queue refuses messages, circuit opened: its rows wait until a probe succeeds")
		// After a nack: a channel that was opened while a queue had no leader
		// may keep refusing; a new one does not.
		s.reconnecting = s.reconnecting || !res.spared
	}
}

// recordSuccess closes the circuit of a routing key if it was open.
func (s *session) recordSuccess(key string) {
	if s.breaker.recordSuccess(key) {
		s.metrics.circuitOpen.WithLabelValues(key).Set(0)
		s.log.Info().Str("routing_key", key).Msg("queue takes messages again, circuit closed")
		s.schedule.next = time.Now() // earlier reads left this key out
	}
}

// record passes the outcome of a row to the result writer. It does not block:
// see publish.
func (s *session) record(res result) {
	s.rows.move(res.row, recording)
	s.results.in <- res
}

// onRecorded finishes rows whose result is in the table. Earlier reads cannot
// contain them: they left out rows in progress.
func (s *session) onRecorded(batch []result) {
	for _, res := range batch {
		if res.refusal == "" {
			s.rows.finish(res.row)
		} else {
			s.rows.block(res.row, s.watermark.reads)
			s.rows.release(res.row)
		}
	}
}

// startProbe publishes the oldest message of an open circuit, if one is due. It
// uses a channel of its own: the other channel may have caused the refusals. A
// refusal does not count as an attempt: the circuit is probed, not the row.
func (s *session) startProbe(ctx context.Context, now time.Time) {
	key := s.breaker.probeDue(now)
	if key == "" || s.probing {
		return
	}
	for _, r := range s.rows.bySeq {
		if r.key == key {
			return // the oldest may be in progress
		}
	}
	// One probe at a time, concurrently: it waits for the database and for the
	// broker, and the other keys must not wait with it.
	s.probing = true
	leases := s.leases.Active()
	s.rows.sending.Add(1) // for the guard: a probe must not go out after the lease either
	s.background.Go(func() {
		defer s.rows.sending.Add(-1)
		ctx, cancel := context.WithTimeout(ctx, s.cfg.ConfirmTimeout)
		defer cancel()
		r, err := s.reader.oldest(ctx, key, leases)
		if r != nil {
			var publisher *rabbit.Publisher
			if publisher, err = rabbit.NewPublisher(s.conn, 1); err == nil {
				err = publisher.PublishWait(ctx, s.exchange, key, r.message())
				publisher.Close()
			}
		}
		s.probeResults <- probeResult{key, r, err}
	})
}

// onProbe handles the outcome of a probe.
func (s *session) onProbe(p probeResult) {
	s.probing = false
	if p.err != nil {
		reason := p.err.Error()
		if p.row == nil { // the database failed
			reason = pgpool.LogText(p.err)
		}
		s.breaker.recordProbeRefusal(p.key, reason, time.Now())
		s.log.Warn().Str("error", reason).Str("routing_key", p.key).Msg("probe failed, circuit stays open, will retry")
		return
	}
	s.recordSuccess(p.key) // also without a waiting row: the next one shows
	if p.row != nil {
		s.metrics.published.WithLabelValues(p.key).Inc()
		s.metrics.rate.Add(time.Now(), 1)
		s.rows.addProbed(p.row)
		s.results.in <- result{row: p.row}
	}
}
