// Package audit proves what became of every accepted event: each has to come
// to every screen that it concerns, once.
//
// An event is known by its report and the report's version. A notification
// can overtake the answer to the request that caused it, so either may be
// noted first.
package audit

import (
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// MaxScreens is how many screens one event may concern.
const MaxScreens = 64

// An Event is what the API has accepted.
type Event struct {
	Report  uuid.UUID
	Version int64
	Owner   int    // whose notification it is; see Sight
	Screens uint64 // a bit per screen of the owner that has to show it
	Planned time.Time
}

// A Sight is one notification on one screen.
type Sight struct {
	Report  uuid.UUID
	Version int64
	Owner   int // the user, or Officials
	Screen  int // of the owner's screens, from 0
	Written time.Time
	Seen    time.Time
}

// Officials is the owner of notifications to all officials.
const Officials = -1

// A Delivery is how long one notification took, from the planned request.
type Delivery struct {
	ToConsumer, ToScreen time.Duration
}

// A Tally is the state of the audit.
type Tally struct {
	Accepted int64 `json:"accepted"` // events
	Expected int64 `json:"expected"` // notifications on screens
	Once     int64 `json:"once"`
	Lost     int64 `json:"lost"`
	Doubled  int64 `json:"doubled"`
	// Astray were shown to someone whom they do not concern.
	Astray int64 `json:"astray"`
	// Unanswered belong to requests of this run whose answer did not arrive,
	// or to others' use of the same stack.
	Unanswered int64 `json:"unanswered"`
}

// An Audit is a run's book of events and sights.
type Audit struct {
	delivered func(Delivery)

	mu      sync.Mutex
	reports map[uuid.UUID]*history
	tally   Tally // Lost is only counted by Tally
}

// A history holds the events of one report by version, the first at 0.
type history struct {
	events []record
	early  []Sight // of what is not accepted yet
}

// A record is one event. There are millions, so it is small.
type record struct {
	planned int64 // Unix microseconds, 0 until the event is accepted
	want    uint64
	got     uint64
	owner   int32
}

// New returns an empty audit. It calls delivered, which must not block, for
// each first sight of a notification of an accepted event.
func New(delivered func(Delivery)) *Audit {
	return &Audit{delivered: delivered, reports: make(map[uuid.UUID]*history)}
}

// Accept notes an accepted event.
func (a *Audit) Accept(e Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.historyLocked(e.Report)
	if h.accepted(e.Version) != nil {
		return // a request that changed nothing was answered with an earlier event
	}
	r := h.at(e.Version)
	r.planned, r.want, r.owner = e.Planned.UnixMicro(), e.Screens, int32(e.Owner) //nolint:gosec // users are counted in thousands
	a.tally.Accepted++
	a.tally.Expected += int64(bits.OnesCount64(e.Screens))
	var rest []Sight
	for _, s := range h.early {
		if s.Version == e.Version {
			a.tally.Unanswered--
			a.showLocked(r, s)
		} else {
			rest = append(rest, s)
		}
	}
	h.early = rest
}

// See notes a notification that a screen has shown.
func (a *Audit) See(s Sight) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.historyLocked(s.Report)
	if r := h.accepted(s.Version); r != nil {
		a.showLocked(r, s)
		return
	}
	if slices.ContainsFunc(h.early, s.same) {
		a.tally.Doubled++
		return
	}
	a.tally.Unanswered++
	h.early = append(h.early, s)
}

// Find notes a notification that was read from the list afterwards, where
// what a screen has shown stands as well.
func (a *Audit) Find(s Sight) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.historyLocked(s.Report)
	if r := h.accepted(s.Version); r != nil && r.got&(1<<s.Screen) == 0 {
		a.showLocked(r, s)
	}
}

// showLocked counts a sight of an accepted event.
func (a *Audit) showLocked(r *record, s Sight) {
	bit := uint64(1) << s.Screen
	switch {
	case s.Owner != int(r.owner) || r.want&bit == 0:
		a.tally.Astray++
		return
	case r.got&bit != 0:
		a.tally.Doubled++
		return
	}
	r.got |= bit
	a.tally.Once++
	if s.Seen.IsZero() {
		return // found afterwards
	}
	planned := time.UnixMicro(r.planned)
	a.delivered(Delivery{ToConsumer: s.Written.Sub(planned), ToScreen: s.Seen.Sub(planned)})
}

func (a *Audit) historyLocked(id uuid.UUID) *history {
	h := a.reports[id]
	if h == nil {
		h = &history{}
		a.reports[id] = h
	}
	return h
}

// at returns the record of a version, making room for it.
func (h *history) at(version int64) *record {
	for int64(len(h.events)) < version {
		h.events = append(h.events, record{})
	}
	return &h.events[version-1]
}

// accepted returns the record of a version, or nil if it is not accepted yet.
func (h *history) accepted(version int64) *record {
	if version < 1 || version > int64(len(h.events)) || h.events[version-1].planned == 0 {
		return nil
	}
	return &h.events[version-1]
}

func (s Sight) same(o Sight) bool {
	return s.Version == o.Version && s.Owner == o.Owner && s.Screen == o.Screen
}

// Tally returns the state of the audit. What is under way counts as lost.
func (a *Audit) Tally() Tally {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tally
	t.Lost = t.Expected - t.Once
	t.Once -= min(t.Once, t.Doubled) // shown more than once is not once
	return t
}

// Outstanding returns how many notifications are still expected.
func (a *Audit) Outstanding() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tally.Expected - a.tally.Once
}
