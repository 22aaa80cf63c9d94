package consumer

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/delay"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
)

// How long a message is parked for the one before it. It doubles, as a message that
// was not there after a while will not be there a moment later.
const (
	// minWait is above the time that the releaser takes for now, and long enough for
	// a message that another worker has in hand.
	minWait = 500 * time.Millisecond
	maxWait = 5 * time.Second
	// waitMargin is how much longer than all retries together a message waits: the
	// one before it may have failed as often as it is allowed to.
	waitMargin = 20 * time.Second
)

// known is how long it is certain that the id of a handled message is kept. An older
// message is not waited for.
const known = 29 * 24 * time.Hour

// patience returns how long a message waits for the one before it, in all. Only the
// time for which it is parked counts: an outage takes nothing of it.
func patience(schedule []time.Duration) time.Duration {
	total := waitMargin
	for _, delay := range schedule {
		total += delay
	}
	return total
}

// A lookup is when messages before others were looked for, and which are missing.
type lookup struct {
	at      time.Time // by the database's clock
	missing []uuid.UUID
}

// split parts jobs, which are to be handled together, into those whose turn it is and
// those whose previous message has not had its effect. That is not noted as an
// attempt. The order of the versions must be kept within each report.
func (h *handler) split(ctx context.Context, jobs []*job) (ready, early []*job, at time.Time, err error) {
	here := make(map[string]bool, len(jobs))
	previous := make(map[*job]string)
	var wanted []uuid.UUID
	for _, j := range jobs {
		here[j.msg.ID] = true
		if id, ok := h.previous(j); ok {
			previous[j] = id.String()
			if !here[id.String()] {
				wanted = append(wanted, id)
			}
		}
	}
	if len(wanted) == 0 { // as in most batches
		return jobs, nil, at, nil
	}
	found, err := h.store.previous(ctx, h.queue, wanted)
	if err != nil {
		return nil, nil, at, err
	}
	if len(found.missing) == 0 {
		return jobs, nil, at, nil
	}
	var since time.Time
	if h.since != nil {
		if since, err = h.since(ctx); err != nil {
			return nil, nil, at, err
		}
	}
	since = maxTime(since, found.at.Add(-known))
	missing := make(map[string]bool) // and those that wait for a missing one
	for _, id := range found.missing {
		missing[id.String()] = !madeAt(id).Before(since)
	}
	for _, j := range jobs {
		if missing[previous[j]] {
			missing[j.msg.ID] = true
			early = append(early, j)
		} else {
			ready = append(ready, j)
		}
	}
	return ready, early, found.at, nil
}

// previous returns the message that must have its effect before that of j, if this
// queue gets it and j waits for it.
func (h *handler) previous(j *job) (uuid.UUID, bool) {
	id, key, ok := event.Previous(j.msg.Event)
	if !ok || j.waitsNoMore || !slices.Contains(h.keys, key) {
		return uuid.Nil, false
	}
	return id, failure.Waited(j.d.Headers) < h.patience
}

// madeAt returns when a message got its id, or the end of time if that does not say it.
func madeAt(id uuid.UUID) time.Time {
	if id.Version() != 7 {
		return time.Unix(1<<40, 0)
	}
	return time.Unix(id.Time().UnixTime())
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// parkEarly parks jobs whose previous message has not had its effect, and returns
// those that must not wait: their time has come while they were parked, or nothing
// more may be parked. stopped is that of applyBatch.
func (h *handler) parkEarly(work context.Context, jobs []*job, at time.Time) (now []*job, stopped bool) {
	if len(jobs) == 0 {
		return nil, false
	}
	messages := make([]delay.Message, len(jobs))
	for i, j := range jobs {
		waited := failure.Waited(j.d.Headers)
		wait := min(max(waited, minWait), maxWait)
		d := *j.d
		d.Headers = maps.Clone(j.d.Headers)
		if d.Headers == nil {
			d.Headers = make(amqp.Table)
		}
		d.Headers[failure.WaitedHeader] = (waited + wait).Milliseconds()
		messages[i] = delay.NewMessage(&d, at.Add(wait))
	}
	stopped = h.parkAll(work, jobs, messages, true, func(j *job, outcome delay.Outcome) {
		if outcome != delay.Parked {
			j.waitsNoMore = outcome != delay.Due
			now = append(now, j)
			return
		}
		h.metrics.early.WithLabelValues(h.queue).Inc()
		h.about(h.log.Debug(), j).Msg("the message before this one has not had its effect, it is parked")
		if j.noted {
			h.finish(work, j)
		}
		h.acks.done(j)
	})
	return now, stopped
}

// noteWaits counts jobs that are done and had to wait for the message before them, and
// those that have waited for it in vain.
func (h *handler) noteWaits(jobs []*job) {
	for _, j := range jobs {
		waited := failure.Waited(j.d.Headers)
		if waited == 0 {
			continue
		}
		h.metrics.waited.WithLabelValues(h.queue).Observe(waited.Seconds())
		if waited >= h.patience {
			h.metrics.overtook.WithLabelValues(h.queue).Inc()
			h.about(h.log.Warn(), j).Dur("waited", waited).Msg("the message before this one has not come, this one was handled before it")
		}
	}
}
