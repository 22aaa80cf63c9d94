package relay

import (
	"errors"
	"fmt"
	"time"

	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// publish sends what is queued, up to a burst, and tells whether more could go.
// After a burst the session looks up: confirms make room, and neither they nor
// a change of ownership are to wait for the end of a long queue.
func (s *session) publish(now time.Time) (more bool, err error) {
	if !s.relay.leases.Valid() { // the guard at the socket asks again
		return false, nil
	}
	for n := 0; len(s.queue) > 0 && s.mayPublish(); n++ {
		if n == burst {
			return true, nil
		}
		next := s.queue[0]
		s.queue = s.queue[1:]
		if s.isHeld(next) || !s.relay.leases.MayPublish(next.Lease) {
			s.putBack(next)
			continue
		}
		if err := s.send(next, now); err != nil {
			return false, err
		}
	}
	return false, nil
}

// mayPublish keeps to the window, and keeps what a crash would leave
// published and unmarked to a window and a batch.
func (s *session) mayPublish() bool {
	window := s.relay.cfg.Window
	return !s.isBlocked && !s.renewing && len(s.flying) < window &&
		len(s.flying)+s.waiting < window+markBatch
}

// isHeld tells whether a queued row has to wait after all. It is read again.
func (s *session) isHeld(r *row) bool {
	_, held := s.held[r.report]
	return held || s.relay.breakers.isShut(r.key)
}

// send publishes one row. What cannot be published at all is refused here.
func (s *session) send(r *row, now time.Time) error {
	msg, err := r.message()
	if err == nil {
		r.sent = now
		// Counted before the bytes can move: the guard at the socket looks at it.
		s.relay.outstanding.Add(1)
		err = s.publisher.Publish(s.relay.cfg.Topology.Exchange(), r.key, msg, func(o rabbit.Outcome) {
			s.settled <- settlement{r, o}
		})
		if err != nil {
			s.relay.outstanding.Add(-1)
		}
	}
	switch {
	case err == nil:
		if len(s.flying) == 0 {
			s.progress = now // the broker owed nothing until here
		}
		s.flying = append(s.flying, r)
		s.relay.metrics.inFlight.Set(float64(len(s.flying)))
		return nil
	case errors.Is(err, rabbit.ErrUnpublishable):
		s.relay.metrics.refused.WithLabelValues(unpublishable).Inc()
		// No breaker here: this is the fault of the message, not of its queue.
		s.hold(r, untilWritten)
		s.judge(r, err.Error())
		return nil
	default:
		return fmt.Errorf("publish: %w", err)
	}
}
