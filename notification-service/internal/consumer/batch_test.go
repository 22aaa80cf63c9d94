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
			lane:     &lane{deps: &deps{tuning: Tuning{BatchSize: 10}}},
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
