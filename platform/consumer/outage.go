package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/cityconnect/cityconnect/platform/backoff"
)

// Messages in hand stay there while the circuit is open, for as long as holdTimeouts
// transactions may take, and for maxHold at the most. The broker ends a subscription
// that has had a message in hand for half an hour, or for the five minutes that it can
// be set to, counts a delivery of each, and delivers them again: after delivery-limit of
// these, healthy messages were dead letters.
const (
	holdTimeouts = 6
	maxHold      = time.Minute
)

var errHeldTooLong = errors.New("what the message needs is away")

// hold returns how long messages stay in hand while the circuit is open.
func (c Config) hold() time.Duration { return min(holdTimeouts*c.ApplyTimeout, maxHold) }

// watchCircuit gives back what is in hand each time that the circuit has been open for
// long, until ctx ends. If the database is away, nothing is consumed until it answers:
// an outage of any length counts one delivery of each message at the most. If it is
// something else that the effects need, only a message can find out whether that is
// back: those in hand are postponed, which counts none, and others come.
func (c *Consumer) watchCircuit(ctx context.Context) {
	for c.breaker.lasts(ctx, c.config.hold()) == nil {
		answers := c.databaseAnswers(ctx)
		c.log.Warn().Bool("database_answers", answers).Msg("the circuit has been open for long, the messages in hand go back to their queues")
		for _, q := range c.queues {
			q.release(answers)
		}
		if answers {
			continue
		}
		delays := backoff.Backoff{First: firstProbe, Max: maxProbe}
		for !c.databaseAnswers(ctx) {
			if backoff.Sleep(ctx, delays.Next()) != nil {
				return
			}
		}
		c.breaker.record(true, false) // other replicas may leave no message to probe with
		for _, q := range c.queues {
			q.resume()
		}
	}
}

// databaseAnswers reports whether the database can be read and written.
func (c *Consumer) databaseAnswers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return c.store.ping(ctx) == nil && c.store.writable(ctx) == nil
}

// release ends all subscriptions. Others begin at once if the database answers, and
// otherwise with resume.
func (q *queueWorkers) release(answers bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.round++
	q.away = !answers
	for s := range q.active {
		s.postpones.Store(answers)
	}
	q.changeLocked()
}

// resume lets workers subscribe again.
func (q *queueWorkers) resume() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.away = false
	q.changeLocked()
}
