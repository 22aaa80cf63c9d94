package consumer

import (
	"testing"
	"testing/synctest"
	"time"
)

// A batch waits for more only when the one before was large, and never for
// what cannot come because the prefetch is used up.
func TestBatchFills(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		acks := new(ackTracker)
		b := newBatcher(Config{BatchSize: 10}, 10, make(chan struct{}, 1), newPriority(1), 0, acks)
		come := func(n int) {
			for range n {
				b.add(new(job))
			}
		}
		take := func(what string, want int, after time.Duration) {
			t.Helper()
			began := time.Now()
			got := len(b.next(t.Context()))
			if took := time.Since(began); got != want || took != after {
				t.Errorf("%s: %d taken after %v, want %d after %v", what, got, took, want, after)
			}
			b.done(got)
		}

		come(3)
		take("a trickle", 3, 0)
		come(6)
		take("many at once", 6, 0)
		come(4)
		time.AfterFunc(maxFill/2, func() { come(6) })
		take("after many, the rest comes soon", 10, maxFill/2)
		come(2)
		for i := range 4 {
			time.AfterFunc(time.Duration(i+1)*maxFill/2, func() { come(2) })
		}
		take("after many, the rest comes one after another", 10, 2*maxFill)
		come(2)
		take("after many, no more comes", 2, maxFill)
		come(2)
		take("a trickle again", 2, 0)

		acks.unacked = make([]pendingAck, 6) // on their way to a retry
		come(4)
		take("four may come", 4, 0)
		come(4)
		take("four may come, after many", 4, 0)
	})
}

// With a spacing, a batch fills until that is over since the last one began: a
// lone message does not wait, nor does a full batch.
func TestBatchesAreSpaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const spacing = 50 * time.Millisecond
		b := newBatcher(Config{BatchSize: 10, BatchWait: spacing}, 20, make(chan struct{}, 1), newPriority(1), 0, new(ackTracker))
		take := func(what string, now, later, want int, after time.Duration) {
			t.Helper()
			for range now {
				b.add(new(job))
			}
			time.AfterFunc(spacing/2, func() {
				for range later {
					b.add(new(job))
				}
			})
			began := time.Now()
			got := len(b.next(t.Context()))
			if took := time.Since(began); got != want || took != after {
				t.Errorf("%s: %d taken after %v, want %d after %v", what, got, took, want, after)
			}
			b.done(got)
		}
		take("the first", 1, 0, 1, 0)
		take("one right behind it", 1, 2, 3, spacing)
		time.Sleep(spacing) //nolint:forbidigo // the bubble's clock
		take("one that comes later", 1, 0, 1, 0)
		take("it fills", 2, 8, 10, spacing/2)
		take("it is full", 10, 0, 10, 0)
	})
}

// While another worker has a batch in hand, a small one grows; a full one, or
// one that has waited for long, goes beside it.
func TestBatchWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turn := make(chan struct{}, 1)
		worker := func() *batcher {
			return newBatcher(Config{BatchSize: 10}, 10, turn, newPriority(1), 0, new(ackTracker))
		}
		take := func(what string, b *batcher, now, later, want int, after time.Duration) {
			t.Helper()
			for range now {
				b.add(new(job))
			}
			time.AfterFunc(maxTurn/4, func() {
				for range later {
					b.add(new(job))
				}
			})
			began := time.Now()
			got := len(b.next(t.Context()))
			if took := time.Since(began); got != want || took != after {
				t.Errorf("%s: %d taken after %v, want %d after %v", what, got, took, want, after)
			}
		}
		first := worker()
		take("no other has a batch in hand", first, 1, 0, 1, 0)
		take("the other is slow", worker(), 1, 2, 3, maxTurn)
		take("it fills", worker(), 3, 7, 10, maxTurn/4)
		take("it is full", worker(), 10, 0, 10, 0)
		time.AfterFunc(maxTurn/2, func() { first.done(1) })
		last := worker()
		take("the other ends", last, 1, 2, 3, maxTurn/2)
		if !last.hasTurn {
			t.Error("the turn did not pass on")
		}
	})
}

// A later queue makes way for progress only, and never for long.
func TestBatchYieldsToMoreUrgentQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPriority(2)
		of := func(rank int) *batcher {
			return newBatcher(Config{BatchSize: 10}, 10, make(chan struct{}, 1), p, rank, new(ackTracker))
		}
		urgent, later := of(0), of(1)
		yielded := func(b *batcher) time.Duration {
			b.add(new(job))
			began := time.Now()
			b.done(len(b.next(t.Context())))
			return time.Since(began)
		}
		if took := yielded(later); took != 0 {
			t.Errorf("yielded for %s to nobody", took)
		}
		p.came(0)
		p.came(0)
		const batch = maxYield / 2 // takes the urgent one
		time.AfterFunc(batch, func() { p.done(0, 2, false) })
		if took := yielded(later); took != batch {
			t.Errorf("yielded for %s, want the %s that it took", took, batch)
		}
		p.came(0)
		time.AfterFunc(batch, func() { p.done(0, 1, true) })
		if took := yielded(later); took != batch+refill {
			t.Errorf("yielded for %s, want the %s that it took and %s for more to come", took, batch, refill)
		}
		p.came(0)
		if took := yielded(later); took != maxYield {
			t.Errorf("yielded for %s to one that makes no progress, want %s at the most", took, maxYield)
		}
		if took := yielded(later); took != 0 {
			t.Errorf("yielded for %s to what makes no progress", took)
		}
		if took := yielded(urgent); took != 0 {
			t.Errorf("the most urgent yielded for %s", took)
		}
	})
}

// A later queue has its share even where the urgent one is never without work.
func TestBatchIsOvertakenTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPriority(2)
		b := newBatcher(Config{BatchSize: 10}, 10, make(chan struct{}, 1), p, 1, new(ackTracker))
		const batch = maxYield / 10 // takes the urgent one
		p.came(0)
		for i := range 2 * maxOvertaken {
			time.AfterFunc(time.Duration(i+1)*batch, func() { p.came(0); p.done(0, 1, true) })
		}
		for range 2 {
			b.add(new(job))
			began := time.Now()
			b.done(len(b.next(t.Context())))
			if took := time.Since(began); took != maxOvertaken*batch {
				t.Errorf("yielded for %s, want the %s of %d batches", took, maxOvertaken*batch, maxOvertaken)
			}
		}
	})
}

// A batch that yields does not idle: it grows.
func TestBatchGrowsWhileItYields(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPriority(2)
		b := newBatcher(Config{BatchSize: 10}, 10, make(chan struct{}, 1), p, 1, new(ackTracker))
		p.came(0)
		b.add(new(job))
		time.AfterFunc(maxYield/4, func() { b.add(new(job)); b.add(new(job)) })
		time.AfterFunc(maxYield/2, func() { p.done(0, 1, false) })
		if got := len(b.next(t.Context())); got != 3 {
			t.Errorf("a batch of %d, want 3", got)
		}
	})
}
