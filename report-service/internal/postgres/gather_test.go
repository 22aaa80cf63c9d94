package postgres

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A plain change is about nothing that stands already.
type plain struct{}

func (plain) scope() scope        { return scope{} }
func (plain) read(*reads)         {}
func (plain) write(*writes) error { return nil }

// While a batch is written, others gather for the next, unless they fill one
// or the first is slow.
func TestChangesGatherBehindACommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g *group
		began, end := make(chan int, maxCommits), make(chan struct{})
		g = newGroup(func(_ context.Context, b *batch) error {
			g.fill(b)
			began <- len(b.entries)
			<-end
			return nil
		})
		var changes sync.WaitGroup
		come := func(n int) {
			for range n {
				changes.Go(func() { _ = g.do(t.Context(), plain{}) })
				synctest.Wait()
			}
		}
		want := func(what string, sizes ...int) {
			t.Helper()
			synctest.Wait()
			for _, size := range sizes {
				if len(began) == 0 {
					t.Fatalf("%s: no batch began, want one of %d", what, size)
				}
				if got := <-began; got != size {
					t.Errorf("%s: a batch of %d began, want %d", what, got, size)
				}
			}
			if len(began) > 0 {
				t.Errorf("%s: another batch began, of %d", what, <-began)
			}
		}

		come(1)
		want("nobody is there", 1)
		come(5)
		want("one is written")
		end <- struct{}{}
		want("it has ended", 5)
		come(maxBatch + 2)
		want("they fill a batch", maxBatch)
		<-time.After(slowCommit)
		want("those two are slow", 2)
		come(1)
		want("one has just begun")
		end <- struct{}{}
		want("one has just ended")
		<-time.After(slowCommit)
		want("the others are slow", 1)
		close(end)
		changes.Wait()
	})
}
