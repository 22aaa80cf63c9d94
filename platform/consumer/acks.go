package consumer

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/metric"
)

// ackHold is how long a message that is done waits for one below it that is
// still on its way to a retry, so that one acknowledgement does for both. The
// broker writes each acknowledgement to its log, and answers it with as many
// deliveries: single ones cost it ten times as much, and come back as batches
// of one. Where every tenth message fails, this decides the throughput.
const ackHold = time.Millisecond

// An ackTracker acknowledges the deliveries of a channel with as few frames as
// possible. An acknowledgement may cover everything up to a tag, so the tracker
// keeps the pending tags below.
type ackTracker struct {
	acknowledger amqp.Acknowledger
	handled      *metric.Rate
	acked        prometheus.Counter

	mu      sync.Mutex
	unacked []pendingAck // in the order of their tags
	timer   bool         // flush is due
}

// A pendingAck is a delivery that was not acknowledged yet.
type pendingAck struct {
	job  *job
	done bool
}

// track adds deliveries, which must come in the order of their tags.
func (a *ackTracker) track(jobs []*job) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, j := range jobs {
		a.unacked = append(a.unacked, pendingAck{job: j})
	}
}

// pending returns how many deliveries are not acknowledged.
func (a *ackTracker) pending() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.unacked)
}

// done acknowledges jobs, at once or within ackHold.
func (a *ackTracker) done(jobs ...*job) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, j := range jobs {
		if i := a.findLocked(j); i >= 0 {
			a.unacked[i].done = true
		}
	}
	a.ackLowestLocked()
	if !a.timer && slices.ContainsFunc(a.unacked, func(p pendingAck) bool { return p.done }) {
		a.timer = true
		time.AfterFunc(ackHold, a.flush)
	}
}

// ackLowestLocked acknowledges everything below the first that is not done.
func (a *ackTracker) ackLowestLocked() {
	n := slices.IndexFunc(a.unacked, func(p pendingAck) bool { return !p.done })
	if n < 0 {
		n = len(a.unacked)
	}
	if n > 0 {
		a.ackLocked(n, a.unacked[n-1].job.d.DeliveryTag)
		a.unacked = slices.Delete(a.unacked, 0, n)
	}
}

// ackLocked acknowledges n deliveries up to tag, and counts them. An
// acknowledgement that could not be sent needs nothing: its channel is gone, and
// the redelivery finds the effect.
func (a *ackTracker) ackLocked(n int, tag uint64) {
	a.handled.Add(time.Now(), n)
	if a.acknowledger.Ack(tag, n > 1) == nil {
		a.acked.Add(float64(n))
	}
}

// flush acknowledges one by one what is done and waits for others.
func (a *ackTracker) flush() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.timer = false
	a.unacked = slices.DeleteFunc(a.unacked, func(p pendingAck) bool {
		if p.done {
			a.ackLocked(1, p.job.d.DeliveryTag)
		}
		return p.done
	})
}

// unsettled returns the jobs that are not done.
func (a *ackTracker) unsettled() (jobs []*job) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.unacked {
		if !p.done {
			jobs = append(jobs, p.job)
		}
	}
	return jobs
}

// forget drops a delivery that was settled otherwise.
func (a *ackTracker) forget(j *job) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.findLocked(j); i >= 0 {
		a.unacked = slices.Delete(a.unacked, i, i+1)
		a.ackLowestLocked()
	}
}

func (a *ackTracker) findLocked(j *job) int {
	return slices.IndexFunc(a.unacked, func(p pendingAck) bool { return p.job == j })
}
