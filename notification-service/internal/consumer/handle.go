package consumer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/notification-service/internal/failure"
)

// maxStarts is how often a message may be started after a process died with
// it in hand. Being there once is an accident; the third time it is the cause.
const maxStarts = 3

// errStopped says that the worker was told to stop before the database was
// there. What is in hand stays unsettled, and the broker delivers it again.
var errStopped = errors.New("stopped")

// A job is a delivery that was read.
type job struct {
	d     *amqp.Delivery
	msg   Message
	err   error // why the delivery is not understood
	noted bool  // its start is noted
}

// understand reads a delivery. What cannot be read is a job all the same, which
// fails when its turn comes.
func (s *subscription) understand(d *amqp.Delivery) *job {
	s.metrics.received(s.queue, d)
	msg, err := s.reader.read(s.key, d)
	return &job{d: d, msg: msg, err: err}
}

// handle brings every job of the batch to its outcome.
func (s *subscription) handle(work context.Context, batch []*job) {
	var fresh, again, suspects []*job
	ids := make(map[string]bool, len(batch))
	for _, j := range batch {
		switch {
		case j.err != nil:
			s.fail(work, j, j.err)
		case j.d.Redelivered:
			suspects = append(suspects, j)
		case ids[j.msg.ID]: // the same message twice: the second finds the first one's effect
			again = append(again, j)
		default:
			ids[j.msg.ID] = true
			fresh = append(fresh, j)
		}
	}
	s.together(work, fresh)
	for _, j := range again {
		s.together(work, []*job{j})
	}
	for _, j := range suspects {
		s.alone(work, j)
	}
}

// together gives the jobs their effect in one transaction. If that fails, they
// are parted until each that fails does so alone, for its own reason.
func (s *subscription) together(work context.Context, jobs []*job) {
	for len(jobs) > 0 {
		var applied Applied
		now, began := jobs, time.Now()
		err := s.reach(work, func(ctx context.Context, probe bool) (err error) {
			if now = jobs; probe {
				now = jobs[:1]
			}
			applied, err = s.apply(ctx, now)
			return err
		})
		switch {
		case errors.Is(err, errStopped):
			return
		case err == nil:
			s.succeed(work, now, applied)
		case len(now) == 1:
			s.fail(work, now[0], err)
		default:
			s.apart(work, now, time.Since(began))
		}
		jobs = jobs[len(now):]
	}
}

// slowFailure is how long a failure may take, with its quick tries, and still be
// asked for again and again. One that waits for a lock would make its
// neighbours wait each time.
const slowFailure = 50 * time.Millisecond

// apart finds the failing ones of a batch that failed: by halves, which costs
// the good ones few transactions, or each by itself if the failure was slow.
func (s *subscription) apart(work context.Context, jobs []*job, took time.Duration) {
	size := (len(jobs) + 1) / 2
	if took > slowFailure {
		size = 1
	}
	var parts sync.WaitGroup
	for part := range slices.Chunk(jobs, size) {
		parts.Go(func() { s.together(work, part) })
	}
	parts.Wait()
}

func (s *subscription) apply(ctx context.Context, jobs []*job) (Applied, error) {
	batch := make([]Message, len(jobs))
	for i, j := range jobs {
		batch[i] = j.msg
	}
	start := time.Now()
	applied, err := s.store.Apply(ctx, s.queue, batch)
	s.metrics.handled(s.queue, time.Since(start), err)
	return applied, err
}

// alone runs a message that was in hand when a process died, or when a
// connection did. Its neighbours do not share its transaction, and its start
// is noted, so that the next process knows if this one dies of it.
func (s *subscription) alone(work context.Context, j *job) {
	var starts int
	err := s.reach(work, func(ctx context.Context, _ bool) (err error) {
		starts, err = s.store.Start(ctx, s.queue, j.msg.ID)
		return err
	})
	if errors.Is(err, errStopped) {
		return
	}
	j.noted = true
	switch {
	case err != nil:
		s.fail(work, j, err)
	case starts > maxStarts:
		s.fail(work, j, &failure.Error{Class: failure.Poison, Text: "the process died each time that this message was started"})
	default:
		s.together(work, []*job{j})
	}
}

// succeed acknowledges the jobs, whose effect stands, and tells the live
// streams.
func (s *subscription) succeed(work context.Context, jobs []*job, applied Applied) {
	s.metrics.duplicates.WithLabelValues(s.queue).Add(float64(applied.Seen))
	s.ledger.done(jobs...)
	if len(applied.Batch.Feed) > 0 {
		s.announcer.Announce(context.WithoutCancel(work), applied.Batch)
	}
}

// acked counts acknowledgements. One that could not be sent needs nothing:
// its channel is gone, and the redelivery finds the effect.
func (s *subscription) acked(n int, err error) {
	s.board.handled.add(n)
	if err == nil {
		s.metrics.acked.WithLabelValues(s.queue).Add(float64(n))
	}
}
