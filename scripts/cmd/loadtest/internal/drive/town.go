package drive

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
)

// A kind is what somebody does.
type kind int

// The kinds, by which counts are indexed.
const (
	filing kind = iota
	voting
	moving
	kinds
)

// String returns the kind as reports name it.
func (k kind) String() string { return [kinds]string{"create", "vote", "status"}[k] }

// A task is one request that is due.
type task struct {
	kind    kind
	planned time.Time
	number  int // of the incident that is filed
	actor   int // a user, or an official
	report  *report
	status  string
	up      bool
}

// A report is one that was filed and is still open.
type report struct {
	id       uuid.UUID
	owner    int
	status   string
	votes    int // cast so far
	underWay int // votes whose answer has not come
	place    int // in the town's open reports
}

// A town is the state behind the load: which reports are open, and what may
// be done to them so that the API has no reason to refuse it.
type town struct {
	cfg *Config

	mu     sync.Mutex
	random *rand.Rand
	left   [kinds]int
	filed  int
	open   []*report
}

func newTown(cfg *Config) *town {
	t := &town{cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 1618))}
	t.left[filing] = cfg.Users * cfg.ReportsPerUser
	t.left[voting] = t.left[filing] * cfg.VotesPerReport
	t.left[moving] = t.left[filing] * cfg.ChangesPerReport
	return t
}

// next decides what is done at the planned time. It is false if nothing can
// be done now, since all that is left needs a report, and none is open.
func (t *town) next(planned time.Time) (task, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.drawLocked()
	for i := range kinds {
		k := (first + i) % kinds
		if t.left[k] == 0 {
			continue
		}
		if next, ok := t.taskLocked(k); ok {
			t.left[k]--
			next.planned = planned
			return next, true
		}
	}
	return task{}, false
}

// drawLocked draws a kind by how much of each is left, so that all of them
// come to their end together.
func (t *town) drawLocked() kind {
	n := t.random.IntN(max(1, t.left[filing]+t.left[voting]+t.left[moving]))
	for k, left := range t.left {
		if n < left {
			return kind(k)
		}
		n -= left
	}
	return filing
}

func (t *town) taskLocked(k kind) (task, bool) {
	switch k {
	case filing:
		t.filed++
		return task{kind: filing, number: t.filed, actor: t.random.IntN(t.cfg.Users)}, true
	case voting:
		return t.voteLocked()
	default:
		return t.moveLocked()
	}
}

// voteLocked has each vote cast by another user, and by all of them again with
// the opposite vote once all have voted: every one of them changes something.
func (t *town) voteLocked() (task, bool) {
	if len(t.open) == 0 {
		return task{}, false
	}
	r := t.open[0]
	if t.random.IntN(100) >= t.cfg.Hot {
		r = t.open[t.random.IntN(len(t.open))]
	}
	others := t.cfg.Users - 1
	voter := (r.owner + 1 + r.votes%others) % t.cfg.Users
	up := (r.votes/others%2 == 0) == (voter%5 != 0)
	r.votes++
	r.underWay++
	return task{kind: voting, actor: voter, report: r, up: up}, true
}

// moveLocked takes a report that nobody votes on at this moment, because a
// closed one would refuse the vote. The report is out of reach until answered.
func (t *town) moveLocked() (task, bool) {
	for range min(len(t.open), 8) {
		r := t.open[t.random.IntN(len(t.open))]
		if r.underWay > 0 {
			continue
		}
		t.removeLocked(r)
		return task{kind: moving, actor: t.random.IntN(t.cfg.Officials), report: r, status: t.leadLocked(r)}, true
	}
	return task{}, false
}

// leadLocked closes a report only while enough others are open for the votes.
func (t *town) leadLocked(r *report) string {
	switch {
	case r.status == "pending":
		return "in_progress"
	case len(t.open) < t.cfg.Users:
		return "pending"
	default:
		return "resolved"
	}
}

// done notes the outcome of a task. A report whose state is unknown now is
// left alone from here on.
func (t *town) done(next task, id uuid.UUID, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch next.kind {
	case filing:
		if err == nil {
			t.addLocked(&report{id: id, owner: next.actor, status: "pending"})
		}
	case voting:
		next.report.underWay--
	case moving:
		next.report.status = next.status
		if err == nil && next.status != "resolved" {
			t.addLocked(next.report)
		}
	}
}

func (t *town) addLocked(r *report) {
	r.place = len(t.open)
	t.open = append(t.open, r)
}

func (t *town) removeLocked(r *report) {
	last := t.open[len(t.open)-1]
	t.open[r.place] = last
	last.place = r.place
	t.open = t.open[:len(t.open)-1]
}
