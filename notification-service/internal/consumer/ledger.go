package consumer

import (
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// ackHold is how long a message that is done waits for one below it that is
// still on its way to a retry, so that one acknowledgement does for both. The
// broker writes each acknowledgement to its log, and answers it with as many
// deliveries: single ones cost it ten times as much, and come back as batches
// of one.
const ackHold = time.Millisecond

// A ledger acknowledges the deliveries of a channel with as few frames as
// possible. An acknowledgement may stand for everything up to a tag, and so
// the ledger knows what is open below.
type ledger struct {
	acknowledger amqp.Acknowledger
	acked        func(n int, err error) // told of each acknowledgement

	mu    sync.Mutex
	lines []line // in the order of their tags
	timer bool   // release is due
}

// A line is a delivery that was not acknowledged yet.
type line struct {
	tag  uint64
	done bool
}

// take enters deliveries, which must come in the order of their tags.
func (l *ledger) take(jobs []*job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range jobs {
		l.lines = append(l.lines, line{tag: j.d.DeliveryTag})
	}
}

// open returns how many deliveries are not acknowledged.
func (l *ledger) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lines)
}

// done acknowledges jobs, at once or within ackHold.
func (l *ledger) done(jobs ...*job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range jobs {
		if i := l.find(j); i >= 0 {
			l.lines[i].done = true
		}
	}
	l.ackLowest()
	if !l.timer && slices.ContainsFunc(l.lines, func(n line) bool { return n.done }) {
		l.timer = true
		time.AfterFunc(ackHold, l.release)
	}
}

// ackLowest acknowledges everything below the first that is not done.
func (l *ledger) ackLowest() {
	n := slices.IndexFunc(l.lines, func(n line) bool { return !n.done })
	if n < 0 {
		n = len(l.lines)
	}
	if n > 0 {
		l.acked(n, l.acknowledger.Ack(l.lines[n-1].tag, n > 1))
		l.lines = slices.Delete(l.lines, 0, n)
	}
}

// release acknowledges one by one what is done and waits for others.
func (l *ledger) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = false
	l.lines = slices.DeleteFunc(l.lines, func(n line) bool {
		if n.done {
			l.acked(1, l.acknowledger.Ack(n.tag, false))
		}
		return n.done
	})
}

// drop forgets a delivery that was settled otherwise.
func (l *ledger) drop(j *job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.find(j); i >= 0 {
		l.lines = slices.Delete(l.lines, i, i+1)
		l.ackLowest()
	}
}

func (l *ledger) find(j *job) int {
	return slices.IndexFunc(l.lines, func(n line) bool { return n.tag == j.d.DeliveryTag })
}
