package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
)

// An arrivals plays the part of Run against a clock of its own.
type arrivals struct {
	*committer
	t   *testing.T
	now time.Time
}

func newArrivals(t *testing.T) *arrivals {
	c := &committer{maxLockWaits: 2, subjects: make(map[uuid.UUID]*batch)}
	return &arrivals{c, t, time.Unix(0, 0)}
}

// come adds requests, and returns the batches that begin then.
func (s *arrivals) come(scopes ...scope) (begun []*batch) {
	for _, sc := range scopes {
		s.queue = append(s.queue, &request{scope: sc, outcome: make(chan error, 1)})
	}
	for b := s.next(s.now); b != nil; b = s.next(s.now) {
		begun = append(begun, b)
	}
	return begun
}

// end finishes b, and returns the batches that begin then.
func (s *arrivals) end(b *batch) []*batch {
	s.finish(b, s.now)
	return s.come()
}

// want checks the sizes of the batches that began, and returns them.
func (s *arrivals) want(what string, begun []*batch, sizes ...int) []*batch {
	s.t.Helper()
	if len(begun) != len(sizes) {
		s.t.Fatalf("%s: %d batches begin, want %d", what, len(begun), len(sizes))
	}
	for i, b := range begun {
		if len(b.requests) != sizes[i] {
			s.t.Errorf("%s: a batch of %d begins, want %d", what, len(b.requests), sizes[i])
		}
	}
	return begun
}

// While a batch is written, others gather for the next, unless they fill one
// or the first is slow.
func TestChangesGatherBehindACommit(t *testing.T) {
	t.Parallel()
	s, creates := newArrivals(t), make([]scope, maxBatch+7)
	first := s.want("alone", s.come(creates[:1]...), 1)
	s.want("one is written", s.come(creates[:5]...))
	second := s.want("it has ended", s.end(first[0]), 5)
	s.want("nearly a batch", s.come(creates[:maxBatch-1]...))
	s.want("they fill one", s.come(creates[:3]...), maxBatch)
	s.now = s.now.Add(slowCommit)
	s.want("both are slow", s.come(), 2)
	s.want("one has just begun", s.come(creates[:1]...))
	s.want("one has just ended", s.end(second[0]))
	s.now = s.now.Add(slowCommit)
	s.want("the others are slow", s.come(), 1)
}

func TestCommitsAreBounded(t *testing.T) {
	t.Parallel()
	s := newArrivals(t)
	sizes := make([]int, maxCommits)
	for i := range sizes {
		sizes[i] = maxBatch
	}
	begun := s.want("many", s.come(make([]scope, (maxCommits+2)*maxBatch)...), sizes...)
	s.now = s.now.Add(time.Minute)
	s.want("as many as may be", s.come())
	s.want("one of them has ended", s.end(begun[0]), maxBatch)
}

// Changes of one report are never in two batches at a time, and keep their
// order; votes of different users may share one.
func TestReportsAreInOneBatch(t *testing.T) {
	t.Parallel()
	s, a, b := newArrivals(t), uuid.New(), uuid.New()
	votes := s.want("votes and a status", s.come(
		scope{a, "ann"}, scope{a, "bob"}, scope{a, "ann"}, scope{a, "eve"}, scope{subject: b}, scope{b, "bob"}), 3)
	s.now = s.now.Add(time.Minute)
	other := s.want("only what is about another report", s.come(scope{a, "kim"}, scope{uuid.New(), "kim"}), 1)
	s.now = s.now.Add(time.Minute)
	s.want("nothing but those", s.end(other[0]))
	s.want("what waited for the first", s.end(votes[0]), 4)
}

// A report that another session has locked gets a batch of its own, which does
// not count among the commits; what else is about it waits.
func TestLockedReportsAreApart(t *testing.T) {
	t.Parallel()
	s, a, b, c := newArrivals(t), uuid.New(), uuid.New(), uuid.New()
	begun := s.want("votes", s.come(scope{a, "ann"}, scope{a, "bob"}, scope{b, "ann"}, scope{c, "ann"}, scope{}), 5)
	begun[0].locked = begun[0].requests[:4]
	locked := s.want("three reports are locked, and two may wait", s.end(begun[0]), 2, 1)
	if !locked[0].waitsForLock || !locked[1].waitsForLock || s.commits != 0 {
		t.Errorf("%+v and %+v beside %d commits, want two that wait for locks and none", locked[0], locked[1], s.commits)
	}
	s.want("more on the locked ones, and others", s.come(scope{a, "eve"}, scope{c, "eve"}, scope{uuid.New(), "eve"}), 1)
	s.now = s.now.Add(time.Minute)
	s.want("a lock was granted", s.end(locked[0]), 1, 1)
}

// A change is not decided after its deadline, also if no timer has fired. Once
// taken it is made, however often its batch is halved.
func TestTake(t *testing.T) {
	t.Parallel()
	deadline := time.Now().Add(time.Minute)
	waits := func() bool { return false }
	late, taken := &request{deadline: deadline, abandoned: waits}, &request{deadline: deadline, abandoned: waits}
	if !taken.take(deadline.Add(-1)) || !taken.take(deadline.Add(time.Hour)) {
		t.Error("a request within its deadline is not taken, or not kept")
	}
	if late.take(deadline) || late.take(deadline.Add(-1)) || !errors.Is(late.err, errLate) {
		t.Errorf("a request at its deadline is taken, or its outcome is %v", late.err)
	}
	if suspended := (&request{deadline: deadline, abandoned: waits}); suspended.take(deadline.Round(0)) {
		t.Error("a request is taken that the wall clock alone knows to be late")
	}
	if (&request{abandoned: func() bool { return true }}).take(deadline) {
		t.Error("a request is taken whose client has left")
	}
	if !(&request{abandoned: waits}).take(deadline) {
		t.Error("a request without a deadline is not taken")
	}
}

func TestWithdrawnRequestsAreDropped(t *testing.T) {
	t.Parallel()
	s := newArrivals(t)
	first := s.come(scope{})
	s.come(make([]scope, 3)...)
	s.queue[1].state.Store(withdrawn)
	s.want("one has left", s.end(first[0]), 2)
	if len(s.queue) != 0 {
		t.Errorf("%d are left in the queue", len(s.queue))
	}
}
