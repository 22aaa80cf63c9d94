package relay

import (
	"time"

	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// settle takes in the broker's answer.
func (s *session) settle(o settlement) {
	s.flying = s.flying[1:] // answers come in publishing order
	s.relay.outstanding.Add(-1)
	now := time.Now()
	s.progress = now
	m := s.relay.metrics
	m.inFlight.Set(float64(len(s.flying)))
	switch o.outcome.Result {
	case rabbit.Acked:
		m.confirmSeconds.Observe(now.Sub(o.row.sent).Seconds())
		m.published.WithLabelValues(o.row.key).Inc()
		s.relay.recent.published(now, now.Sub(o.row.sent))
		m.commitSeconds.Observe(max(0, now.Sub(o.row.created).Seconds()))
		if _, held := s.held[o.row.report]; held {
			m.overtaken.Inc()
		}
		s.routed(o.row.key)
		s.judge(o.row, "")
	case rabbit.Nacked:
		m.refused.WithLabelValues(nacked).Inc()
		s.refuse(o.row, "the broker refused the message (nack)", true)
	case rabbit.Returned:
		m.refused.WithLabelValues(returned).Inc()
		s.refuse(o.row, "no queue takes the message: "+o.outcome.Reason, false)
	case rabbit.Lost:
		s.putBack(o.row) // unknown: the next session reads it again, in order
	}
}

// refuse counts an attempt, unless the whole kind is held back for it.
func (s *session) refuse(r *row, reason string, nack bool) {
	held, opened := s.relay.breakers.refused(r.key, reason, time.Now())
	// The rows of this report that are in flight behind r cannot be called back;
	// those that are not yet wait, or they would overtake it for certain.
	if !held {
		s.hold(r, untilWritten)
		s.judge(r, reason)
		return
	}
	s.hold(r, s.reads)
	s.putBack(r)
	if opened {
		s.relay.metrics.shut.WithLabelValues(r.key).Set(1)
		s.relay.cfg.Log.Error().Str("routing_key", r.key).Str("reason", reason).
			Msg("messages of this kind are held back: their queue does not take them")
		// A channel that was opened while a queue had no leader may refuse for
		// long after; a fresh one does not.
		s.renewing = s.renewing || nack
	}
}

// routed notes that a queue takes messages of a kind.
func (s *session) routed(key string) {
	if s.relay.breakers.taken(key) {
		s.relay.metrics.shut.WithLabelValues(key).Set(0)
		s.relay.cfg.Log.Info().Str("routing_key", key).Msg("messages of this kind flow again")
		s.nextRead = time.Now() // the pages so far left this kind out
	}
}

// judge hands a row to the marker. It does not block: mayPublish keeps the rows
// that wait below the room that the marker has.
func (s *session) judge(r *row, refusal string) {
	s.waiting++
	s.marker.in <- verdict{row: r, refusal: refusal}
}

// marked forgets rows whose fate is written. A page that was asked for before
// cannot contain them: it left out what was under way.
func (s *session) marked(batch []verdict) {
	s.waiting -= len(batch)
	s.relay.publishedNow(time.Now())
	for _, v := range batch {
		if v.refusal == "" {
			s.untrack(v.row)
		} else {
			s.hold(v.row, s.reads)
			s.putBack(v.row)
		}
	}
}

// hold makes the later rows of r's report wait until a page was read whose
// number is above after: that page knows about the refusal.
func (s *session) hold(r *row, after int64) { s.held[r.report] = after }

// putBack leaves a row that is still pending for another page.
func (s *session) putBack(r *row) {
	s.horizon.back(r, s.reads)
	s.untrack(r)
}

func (s *session) untrack(r *row) {
	if s.tracked[r.seq] == r {
		delete(s.tracked, r.seq)
		s.relay.leases.End(r.Lease)
	}
}

// dropForeign drops what is queued of shards that are not ours any more, or
// are to be handed over.
func (s *session) dropForeign() {
	kept := s.queue[:0]
	for _, r := range s.queue {
		if s.relay.leases.MayPublish(r.Lease) {
			kept = append(kept, r)
		} else {
			s.putBack(r)
		}
	}
	clear(s.queue[len(kept):])
	s.queue = kept
}
