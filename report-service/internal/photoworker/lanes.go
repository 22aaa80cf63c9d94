package photoworker

import (
	"context"
	"sync"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"github.com/cityconnect/cityconnect/platform/failure"
)

// maxPutOff bounds what a worker remembers of large pictures whose turn has not come.
const maxPutOff = 10_000

// Lanes are how many pictures are made at a time: small ones, which are those of pages
// and telephones, and large ones, which take a hundred times as long.
type Lanes struct{ Small, Large int }

// lanes keep large pictures from holding up small ones. A small picture waits for its
// lane, because that is soon. A large one goes back to the queue if its lane is taken:
// the worker is free for others, and a user who sends many large pictures delays only large
// ones.
type lanes struct {
	small, large *semaphore.Weighted

	mu     sync.Mutex
	putOff map[uuid.UUID]struct{} // large, so that they need not be fetched to find out
}

func newLanes(l Lanes) *lanes {
	return &lanes{
		small: semaphore.NewWeighted(int64(max(1, l.Small))), large: semaphore.NewWeighted(int64(max(1, l.Large))),
		putOff: make(map[uuid.UUID]struct{}),
	}
}

var errLaneTaken = &failure.Error{Class: failure.Postponed, Text: "other pictures are being made"}

// tryAgain returns an error if photo is known to be large and its lane is taken.
func (l *lanes) tryAgain(photo uuid.UUID) error {
	l.mu.Lock()
	_, large := l.putOff[photo]
	l.mu.Unlock()
	if !large {
		return nil
	}
	if !l.large.TryAcquire(1) {
		return errLaneTaken
	}
	l.large.Release(1)
	return nil
}

// enter waits for the lane of a small photo, or returns an error if that of a large one
// is taken. The caller has to call leave.
func (l *lanes) enter(ctx context.Context, photo uuid.UUID, large bool) (leave func(), err error) {
	if !large {
		if err := l.small.Acquire(ctx, 1); err != nil {
			return nil, errLaneTaken
		}
		return func() { l.small.Release(1) }, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.large.TryAcquire(1) {
		if len(l.putOff) >= maxPutOff {
			clear(l.putOff)
		}
		l.putOff[photo] = struct{}{}
		return nil, errLaneTaken
	}
	delete(l.putOff, photo)
	return func() { l.large.Release(1) }, nil
}
