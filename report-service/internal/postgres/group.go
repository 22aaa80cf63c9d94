package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// maxBatch bounds how many changes share a commit, and with it how long
	// the first of them waits for the last.
	maxBatch = 64
	// maxCommits is how many batches are written at a time. It is one as long
	// as what gathers meanwhile fits into the next: two halves cost the database
	// more than a whole.
	maxCommits = 4
	// slowCommit is how long nothing may begin or end before another batch is
	// written beside those under way: one slow commit does not hold up others.
	slowCommit = 20 * time.Millisecond
)

// errAbandoned is told to whom nothing else was, which only a panic explains.
var errAbandoned = errors.New("the batch was abandoned")

// A group lets changes that come at the same time share transactions: while
// some commit, others gather, and then go together. A change that comes alone
// goes at once. There is no goroutine behind it: of each batch, the first
// caller does the work for all.
//
// Changes of one report never are in two batches at a time, which would wait
// for each other's lock.
type group struct {
	commit func(ctx context.Context, b *batch) error

	mu      sync.Mutex
	waiting []*entry
	claimed map[uuid.UUID]*batch // which batch has a report
	commits int
	moved   time.Time // when a batch last began or ended
	watched bool      // hurry will look whether something moves
}

// A scope is what a change must have for itself.
type scope struct {
	subject uuid.UUID // the report, or whatever else the change is about; zero for none
	voter   string    // empty if the change wants the subject all for itself
}

// An entry is a change that waits for its turn, and then for its outcome.
type entry struct {
	change change
	scope  scope
	turn   chan turn
	err    error
	locked bool // by somebody else: the change was put off
}

// A turn tells an entry what is next: it leads a batch, or it has its outcome.
type turn struct {
	lead *batch
	err  error
}

// A batch is the changes that share a transaction.
type batch struct {
	entries []*entry
	scopes  map[scope]struct{}
	// patient batches wait for a lock that somebody else holds. They have one
	// subject, and are not among those whose number is limited.
	patient bool
}

func newGroup(commit func(ctx context.Context, b *batch) error) *group {
	return &group{commit: commit, claimed: make(map[uuid.UUID]*batch)}
}

// do makes c, together with others or alone, and returns its own outcome. A
// caller who leaves before c had its turn leaves nothing behind.
func (g *group) do(ctx context.Context, c change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e := &entry{change: c, scope: c.scope(), turn: make(chan turn, 1)}
	g.mu.Lock()
	g.waiting = append(g.waiting, e)
	g.startLocked()
	g.mu.Unlock()
	for left := ctx.Done(); ; {
		select {
		case next := <-e.turn:
			if next.lead == nil {
				return next.err
			}
			g.lead(ctx, next.lead)
		case <-left:
			if g.withdraw(e) {
				return ctx.Err()
			}
			left = nil // it has its turn, and is done to the end
		}
	}
}

// lead writes a batch and tells everyone the outcome.
func (g *group) lead(ctx context.Context, b *batch) {
	for _, e := range b.entries {
		e.err = errAbandoned
	}
	defer g.finish(b)
	if err := g.commit(ctx, b); err != nil { // nothing was tried
		g.fail(ctx, b, err)
	}
}

// fail gives everybody the reason for which the database could not be reached,
// rather than have each find out for himself. Only the leader hears that he
// has left.
func (g *group) fail(ctx context.Context, b *batch, err error) {
	for _, e := range b.entries {
		e.err = err
	}
	if ctx.Err() != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.waiting {
		e.turn <- turn{err: err}
	}
	g.waiting = nil
}

// fill adds to a batch what can go with it.
func (g *group) fill(b *batch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	passed := make(map[uuid.UUID]bool) // subjects of which an earlier change has to wait
	rest := g.waiting[:0]
	for _, e := range g.waiting {
		if len(b.entries) < maxBatch && !passed[e.scope.subject] && g.fitsLocked(b, e) {
			g.addLocked(b, e)
			continue
		}
		passed[e.scope.subject] = e.scope.subject != uuid.Nil
		rest = append(rest, e)
	}
	clear(g.waiting[len(rest):])
	g.waiting = rest
}

// fitsLocked reports whether e can be in b. Changes that are about nothing
// that stands already always can.
func (g *group) fitsLocked(b *batch, e *entry) bool {
	if e.scope.subject == uuid.Nil {
		return true
	}
	if owner := g.claimed[e.scope.subject]; owner != b {
		return owner == nil
	}
	_, alone := b.scopes[scope{subject: e.scope.subject}]
	_, twice := b.scopes[e.scope]
	return e.scope.voter != "" && !alone && !twice
}

func (g *group) addLocked(b *batch, e *entry) {
	b.entries = append(b.entries, e)
	if e.scope.subject != uuid.Nil {
		b.scopes[e.scope] = struct{}{}
		g.claimed[e.scope.subject] = b
	}
}

// startLocked lets the first that can be written lead batches, as long as
// there may be more of them.
func (g *group) startLocked() {
	passed := make(map[uuid.UUID]bool)
	rest := g.waiting[:0]
	for i, e := range g.waiting {
		waiting := len(rest) + len(g.waiting) - i
		if g.roomLocked(waiting) && !passed[e.scope.subject] && (e.scope.subject == uuid.Nil || g.claimed[e.scope.subject] == nil) {
			g.commits++
			g.moved = time.Now()
			g.leadLocked(&batch{}, e)
			continue
		}
		passed[e.scope.subject] = e.scope.subject != uuid.Nil
		rest = append(rest, e)
	}
	clear(g.waiting[len(rest):])
	g.waiting = rest
	g.watchLocked()
}

// roomLocked reports whether another batch may begin when so many wait.
func (g *group) roomLocked(waiting int) bool {
	switch g.commits {
	case 0:
		return true
	case maxCommits:
		return false
	}
	return waiting >= maxBatch || time.Since(g.moved) >= slowCommit
}

// watchLocked sees to it that nobody waits for ever behind a slow batch.
func (g *group) watchLocked() {
	if len(g.waiting) > 0 && g.commits > 0 && !g.watched {
		g.watched = true
		time.AfterFunc(slowCommit, g.hurry)
	}
}

func (g *group) hurry() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watched = false
	g.startLocked()
}

// leadLocked has the first of the entries lead b, which is made of them.
func (g *group) leadLocked(b *batch, entries ...*entry) {
	b.scopes = make(map[scope]struct{})
	for _, e := range entries {
		g.addLocked(b, e)
	}
	entries[0].turn <- turn{lead: b}
}

// finish tells everyone in b the outcome, and lets others have their turn.
func (g *group) finish(b *batch) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for s := range b.scopes {
		delete(g.claimed, s.subject)
	}
	if !b.patient {
		g.commits--
		g.moved = time.Now()
	}
	off := make(map[uuid.UUID][]*entry)
	for _, e := range b.entries {
		if e.locked {
			off[e.scope.subject] = append(off[e.scope.subject], e)
			e.locked = false
		} else {
			e.turn <- turn{err: e.err}
		}
	}
	for _, entries := range off {
		g.leadLocked(&batch{patient: true}, entries...)
	}
	g.startLocked()
}

// withdraw takes e back, unless it had its turn.
func (g *group) withdraw(e *entry) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, waiting := range g.waiting {
		if waiting == e {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			return true
		}
	}
	return false
}
