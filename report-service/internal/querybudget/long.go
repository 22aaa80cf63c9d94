package querybudget

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// partTime is what a part takes at least: all long answers together read twenty parts a
	// second, and so take about an eighth of a processor where nothing else runs.
	partTime = 50 * time.Millisecond
	// mostRest is how long the gate rests at most after a part: a database that hangs is
	// not its callers' fault.
	mostRest = 2 * time.Second
)

// A Long lets answers in that are read part by part, and which nobody can use unless they
// are whole. So it refuses them before they begin, or never.
//
// All that have begun share one connection, part by part in the order in which they ask,
// and half of its time at most.
type Long struct {
	most, each int
	part       *semaphore.Weighted // held while a part is read, and while the next one waits
	next       time.Time           // when the next part may be read; of the holder

	mu      sync.Mutex
	all     int
	callers map[string]int // how many each has under way
}

// NewLong returns a Long that lets most answers in at a time, and so many of each caller.
func NewLong(most, each int) *Long {
	return &Long{most: most, each: each, part: semaphore.NewWeighted(1), callers: make(map[string]int)}
}

// Begin lets an answer to a caller in, which calls end. Otherwise it returns a *TooManyError
// or ErrBusy.
func (l *Long) Begin(name string) (end func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.callers[name] >= l.each:
		return nil, &TooManyError{mostRest}
	case l.all >= l.most:
		return nil, ErrBusy
	}
	l.all++
	l.callers[name]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all--
		if l.callers[name]--; l.callers[name] == 0 {
			delete(l.callers, name)
		}
	}, nil
}

// Part reads a part of an answer that has begun, once it is its turn. It waits as long as
// ctx.
func (l *Long) Part(ctx context.Context, read func(ctx context.Context) error) error {
	if err := l.part.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("wait for a turn: %w", err)
	}
	defer l.part.Release(1)
	select {
	case <-time.After(time.Until(l.next)):
	case <-ctx.Done():
		return fmt.Errorf("wait for a turn: %w", ctx.Err())
	}
	began := time.Now()
	defer func() {
		took := time.Since(began)
		l.next = time.Now().Add(min(max(partTime-took, took), mostRest))
	}()
	return read(ctx)
}
