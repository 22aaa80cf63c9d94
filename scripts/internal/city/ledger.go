package city

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
	Owner   int       // the user, or Officials
	Screen  int       // of the owner's screens, from 0
	Type    string    // of the notification, for whoever counts by it
	Written time.Time // when the consumer wrote it, zero if that is not known
	Seen    time.Time
}

// Officials is the owner of the notifications of all officials.
const Officials = -1

// A Delivery is a first sight, and how long it took from the planned request.
type Delivery struct {
	Sight
	Planned              time.Time
	ToConsumer, ToScreen time.Duration
}

// A Tally is the state of a ledger.
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

// A Ledger proves what became of every accepted event: each has to come to every
// screen that it concerns, once.
//
// An event is known by its report and the report's version. A notification can
// overtake the answer to the request that caused it, so either may be noted first.
type Ledger struct {
	delivered func(Delivery)

	mu          sync.Mutex
	reports     map[uuid.UUID]*history
	outstanding map[key]struct{} // events that are not on all of their screens yet
	tally       Tally            // Lost is only counted by Tally
	changed     chan struct{}    // closed and replaced with every sight that somebody waits for
}

// A key is what an event is known by.
type key struct {
	report  uuid.UUID
	version int64
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

// NewLedger returns an empty ledger. It calls delivered, which must not block or
// ask the ledger, for each first sight of a notification of an accepted event.
func NewLedger(delivered func(Delivery)) *Ledger {
	return &Ledger{
		delivered: delivered, reports: make(map[uuid.UUID]*history), outstanding: make(map[key]struct{}), changed: make(chan struct{}),
	}
}

// Accept notes an accepted event.
func (l *Ledger) Accept(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.historyLocked(e.Report)
	if h.accepted(e.Version) != nil {
		return // a request that changed nothing was answered with an earlier event
	}
	r := h.at(e.Version)
	r.planned, r.want, r.owner = e.Planned.UnixMicro(), e.Screens, int32(e.Owner) //nolint:gosec // users are counted in thousands
	l.tally.Accepted++
	l.tally.Expected += int64(bits.OnesCount64(e.Screens))
	l.outstanding[key{e.Report, e.Version}] = struct{}{}
	var rest []Sight
	for _, s := range h.early {
		if s.Version == e.Version {
			l.tally.Unanswered--
			l.showLocked(r, s)
		} else {
			rest = append(rest, s)
		}
	}
	h.early = rest
}

// See notes a notification that a screen has shown.
func (l *Ledger) See(s Sight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.historyLocked(s.Report)
	if r := h.accepted(s.Version); r != nil {
		l.showLocked(r, s)
		return
	}
	if slices.ContainsFunc(h.early, s.same) {
		l.tally.Doubled++
		return
	}
	l.tally.Unanswered++
	h.early = append(h.early, s)
}

// Find notes a notification that was read from the list afterwards, where
// what a screen has shown stands as well.
func (l *Ledger) Find(s Sight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.historyLocked(s.Report)
	if r := h.accepted(s.Version); r != nil && r.got&(1<<s.Screen) == 0 {
		l.showLocked(r, s)
	}
}

// showLocked counts a sight of an accepted event.
func (l *Ledger) showLocked(r *record, s Sight) {
	bit := uint64(1) << s.Screen
	switch {
	case s.Owner != int(r.owner) || r.want&bit == 0:
		l.tally.Astray++
		return
	case r.got&bit != 0:
		l.tally.Doubled++
		return
	}
	r.got |= bit
	l.tally.Once++
	if r.got == r.want {
		delete(l.outstanding, key{s.Report, s.Version})
	}
	close(l.changed)
	l.changed = make(chan struct{})
	if s.Seen.IsZero() {
		return // found afterwards
	}
	planned := time.UnixMicro(r.planned)
	l.delivered(Delivery{s, planned, s.Written.Sub(planned), s.Seen.Sub(planned)})
}

func (l *Ledger) historyLocked(id uuid.UUID) *history {
	h := l.reports[id]
	if h == nil {
		h = &history{}
		l.reports[id] = h
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

// Tally returns the state of the ledger. What is under way counts as lost.
func (l *Ledger) Tally() Tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tally
	t.Lost = t.Expected - t.Once
	t.Once -= min(t.Once, t.Doubled) // shown more than once is not once
	return t
}

// Outstanding returns how many notifications are still expected.
func (l *Ledger) Outstanding() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tally.Expected - l.tally.Once
}

// Oldest returns when the oldest of the events that are still expected was planned,
// or now if there is none.
func (l *Ledger) Oldest() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := time.Now()
	for k := range l.outstanding {
		if planned := time.UnixMicro(l.reports[k.report].accepted(k.version).planned); planned.Before(oldest) {
			oldest = planned
		}
	}
	return oldest
}

// Await returns true once an accepted event is on a screen, and false if it is not
// when done closes.
func (l *Ledger) Await(report uuid.UUID, version int64, screen int, done <-chan struct{}) bool {
	return l.await(done, func() bool {
		r := l.historyLocked(report).accepted(version)
		return r != nil && r.got&(1<<screen) != 0
	})
}

// Settle waits until nothing is outstanding, or until done closes.
func (l *Ledger) Settle(done <-chan struct{}) {
	l.await(done, func() bool { return len(l.outstanding) == 0 })
}

// await asks after each sight whether okLocked, until done closes.
func (l *Ledger) await(done <-chan struct{}, okLocked func() bool) bool {
	for {
		l.mu.Lock()
		ok, changed := okLocked(), l.changed
		l.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-done:
			return false
		}
	}
}
