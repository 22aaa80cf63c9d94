package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/cityconnect/cityconnect/platform/delay"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
)

// A Parker keeps messages until a time; delay.Releaser is one.
type Parker interface {
	// Park keeps those of messages from queue whose time has not come, and
	// returns what became of each, by its id.
	Park(ctx context.Context, queue string, messages []delay.Message) (map[string]delay.Outcome, error)
}

// park keeps back the jobs of a batch whose time has not come, and returns the
// others, which are to be handled now.
func (h *handler) park(work context.Context, batch []*job) (now []*job) {
	var early []*job
	for _, j := range batch {
		if j.err == nil && !j.notBefore.IsZero() {
			early = append(early, j)
		}
	}
	if early == nil { // as most batches
		return batch
	}
	for _, j := range batch {
		if j.err != nil || j.notBefore.IsZero() {
			now = append(now, j)
		}
	}
	return append(now, h.parkAll(work, early)...)
}

// parkAll parks jobs in one transaction, or if that fails one by one, so that
// each fails for its own reason. It returns those whose time has come.
func (h *handler) parkAll(work context.Context, jobs []*job) (due []*job) {
	messages := make([]delay.Message, len(jobs))
	for i, j := range jobs {
		messages[i] = delay.NewMessage(j.d, j.notBefore)
	}
	var outcomes map[string]delay.Outcome
	err := h.withDatabase(work, func(ctx context.Context, _ bool) (err error) {
		outcomes, err = h.parker.Park(ctx, h.queue, messages)
		return err
	})
	switch {
	case errors.Is(err, errStopped):
		return nil
	case err != nil && len(jobs) == 1:
		h.fail(work, jobs[0], err)
		return nil
	case err != nil:
		for _, j := range jobs {
			due = append(due, h.parkAll(work, []*job{j})...)
		}
		return due
	}
	for _, j := range jobs {
		switch outcomes[j.msg.ID] {
		case delay.Parked:
			h.metrics.parked.WithLabelValues(h.queue).Inc()
			h.acks.done(j)
		case delay.Far:
			h.fail(work, j, failure.Refuse(fmt.Sprintf("%s is more than %d days ahead", event.NotBeforeHeader, int(delay.MaxAhead.Hours()/24))))
		case delay.Full:
			h.fail(work, j, failure.Refuse("as many messages wait until a time as DELAY_MAX allows"))
		default:
			due = append(due, j)
		}
	}
	return due
}
