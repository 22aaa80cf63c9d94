package consumer_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/testing/consumertest"
)

// A heldEffect holds its first batch until it is released.
type heldEffect struct {
	consumer.Effect
	read    atomic.Int64  // messages
	sizes   chan int      // of the batches
	release chan struct{} // closed when the first may have its effect
}

func (e *heldEffect) Read(m consumer.Message) (any, error) {
	defer e.read.Add(1)
	return e.Effect.Read(m)
}

func (e *heldEffect) Apply(ctx context.Context, queue string, batch []consumer.Message) (int, error) {
	e.sizes <- len(batch)
	<-e.release
	return e.Effect.Apply(ctx, queue, batch)
}

// As long as one worker may take more, the others get nothing: so its next
// batch is as large as it can be.
func TestFirstWorkerTakesWhatItCan(t *testing.T) {
	t.Parallel()
	h := consumertest.New(t, pgtest.Notification(t))
	effect := &heldEffect{Effect: consumertest.Effect(h.Pool), sizes: make(chan int, 10), release: make(chan struct{})}
	h.Start(consumertest.WithEffect(effect), consumertest.WithConfig(func(c *consumer.Config) { c.Workers = 4 }))
	h.WaitSubscribed(4)
	h.Publish(h.Votes(1, "alice")...)
	sizes := []int{<-effect.sizes} // a batch may grow until it has its effect
	h.Publish(h.Votes(9, "alice")...)
	h.EventuallyEqual("messages received", 10, func() int { return int(effect.read.Load()) })
	close(effect.release)
	h.WaitEffects(10)
	close(effect.sizes)
	for n := range effect.sizes {
		sizes = append(sizes, n)
	}
	if !slices.Equal(sizes, []int{1, 9}) {
		t.Errorf("batches of %v, want one and then the nine that came in between", sizes)
	}
	h.CheckEffects(10)
}
