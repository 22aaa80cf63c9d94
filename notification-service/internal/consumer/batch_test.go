package consumer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A batch waits for more only when the one before was large, and never for
// what cannot come because the prefetch is used up.
func TestBatchFills(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &subscription{
			lane:     &lane{deps: &deps{tuning: Tuning{BatchSize: 10}}, turn: make(chan struct{}, 1)},
			prefetch: 10, intake: make(chan *job, 10),
		}
		come := func(n int) {
			for range n {
				s.intake <- &job{d: new(amqp.Delivery)}
			}
		}
		take := func(what string, want int, after time.Duration) {
			t.Helper()
			began := time.Now()
			got := len(s.take(context.Background()))
			if took := time.Since(began); got != want || took != after {
				t.Errorf("%s: %d taken after %v, want %d after %v", what, got, took, want, after)
			}
			s.ledger = ledger{}
			s.endTurn()
		}

		come(3)
		take("a trickle", 3, 0)
		come(6)
		take("many at once", 6, 0)
		come(4)
		time.AfterFunc(fillUp/2, func() { come(6) })
		take("after many, the rest comes soon", 10, fillUp/2)
		come(2)
		take("after many, no more comes", 2, fillUp)
		come(2)
		take("a trickle again", 2, 0)

		wait := func() { s.ledger = ledger{lines: make([]line, 6)} } // for their retries
		wait()
		come(4)
		take("four may come", 4, 0)
		wait()
		come(4)
		take("four may come, after many", 4, 0)
	})
}

// While another worker has a batch in hand, a small one grows; a full one, or
// one that has waited for long, goes beside it.
func TestBatchWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lane{deps: &deps{tuning: Tuning{BatchSize: 10}}, turn: make(chan struct{}, 1)}
		worker := func() *subscription { return &subscription{lane: l, prefetch: 10, intake: make(chan *job, 10)} }
		take := func(what string, s *subscription, now, later, want int, after time.Duration) {
			t.Helper()
			for range now {
				s.intake <- &job{d: new(amqp.Delivery)}
			}
			time.AfterFunc(slowBatch/4, func() {
				for range later {
					s.intake <- &job{d: new(amqp.Delivery)}
				}
			})
			began := time.Now()
			got := len(s.take(t.Context()))
			if took := time.Since(began); got != want || took != after {
				t.Errorf("%s: %d taken after %v, want %d after %v", what, got, took, want, after)
			}
		}
		first := worker()
		take("nobody else is at it", first, 1, 0, 1, 0)
		take("the other is slow", worker(), 1, 2, 3, slowBatch)
		take("it fills", worker(), 3, 7, 10, slowBatch/4)
		take("it is full", worker(), 10, 0, 10, 0)
		time.AfterFunc(slowBatch/2, first.endTurn)
		last := worker()
		take("the other ends", last, 1, 2, 3, slowBatch/2)
		if !last.myTurn {
			t.Error("the turn did not pass on")
		}
	})
}
