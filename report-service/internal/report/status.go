package report

import (
	"slices"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// A Status is the state of a report.
type Status string

// The statuses.
const (
	Pending    Status = "pending"
	InProgress Status = "in_progress"
	Resolved   Status = "resolved"
	Rejected   Status = "rejected"
)

// A Transition is a move that a report's status allows.
type Transition struct {
	To           Status
	NoteRequired bool
}

// transitions is the status machine: which status leads to which, and whether
// the official has to explain it. Rejecting needs a note, and so does reopening.
//
//	from          pending   in_progress   resolved   rejected
//	pending                 yes           yes        note
//	in_progress   yes                     yes        note
//	resolved                note
//	rejected      note
var transitions = map[Status][]Transition{
	Pending:    {{To: InProgress}, {To: Resolved}, {To: Rejected, NoteRequired: true}},
	InProgress: {{To: Resolved}, {To: Rejected, NoteRequired: true}, {To: Pending}},
	Resolved:   {{To: InProgress, NoteRequired: true}},
	Rejected:   {{To: Pending, NoteRequired: true}},
}

// Transitions returns the moves that s allows, the usual ones first.
func (s Status) Transitions() []Transition { return transitions[s] }

// Closed reports whether the work on a report with status s has ended. A
// closed report takes no votes.
func (s Status) Closed() bool { return s == Resolved || s == Rejected }

// A Change is one entry of a report's history.
type Change struct {
	From Status // empty for the filing
	To   Status
	Note string
	By   string // the official; empty for the filing
	// Department is the name of that of the connection that made it, and empty for officials.
	Department string
	// Corrected is what a correction changed, and nil for all other entries.
	Corrected *Corrected
	// Kind is that of an entry about a reporter's word on a resolution, and empty for
	// all others.
	Kind    ChangeKind
	Version int64 // of the report, after the change
	At      time.Time
}

// IsReply reports whether c is an official's reply, which leaves the status as
// it was, as a correction does. So is the note with which a report is kept resolved.
func (c Change) IsReply() bool {
	return c.From == c.To && c.Corrected == nil && (c.Kind == "" || c.Kind == Upheld)
}

// A Move is an official's request to change a report's status.
type Move struct {
	To         Status
	Among      []Status // instead of To, for an Open311 update: a report that has one of them keeps it, and Note is a reply
	Note       string
	By         string      // the official
	ByName     string      // for other officials
	Scope      Scope       // within which they act
	IfMatch    Versions    // the versions at which it may happen
	Idempotent *Idempotent // nil without a key of the client
	Follows    bool        // it is a duplicate's, which ends with its original
	NoPhoto    bool        // the city resolves with a photo of the finished work alone, and there is none
}

// Move brings f to another status and returns the entry for its history; ok is
// false if f already has the status.
func (f *Filing) Move(m Move, now time.Time) (entry Change, ok bool, err error) {
	if !m.IfMatch.Has(f.Version) {
		return Change{}, false, m.IfMatch.stale(f.Version)
	}
	note := strings.TrimSpace(m.Note)
	if slices.Contains(m.Among, f.Status) {
		if note == "" {
			return Change{}, false, nil
		}
		return f.Reply(Reply{Text: note, By: m.By, At: now}), true, nil
	}
	if m.To == f.Status {
		return Change{}, false, nil
	}
	legal := f.Status.Transitions()
	if i := slices.IndexFunc(legal, func(t Transition) bool { return slices.Contains(m.Among, t.To) }); i >= 0 {
		m.To = legal[i].To
	}
	i := slices.IndexFunc(legal, func(t Transition) bool { return t.To == m.To })
	if i < 0 {
		names := make([]string, len(legal))
		for i, t := range legal {
			names[i] = string(t.To)
		}
		return Change{}, false, fault.New(IllegalTransition, "a report that is "+string(f.Status)+
			" can only become "+strings.Join(names, " or "))
	}
	if note == "" && legal[i].NoteRequired {
		return Change{}, false, fault.NewInvalid("/note", "must not be blank when a report is rejected or reopened")
	}
	if m.To == Resolved && m.NoPhoto {
		return Change{}, false, errPhotoNeeded
	}
	from := f.Status
	f.Status = m.To
	f.touch(now)
	return Change{From: from, To: f.Status, Note: note, By: m.By, Version: f.Version, At: f.UpdatedAt}, true, nil
}

// A Reply is what an official says to everybody about a report without
// changing its status.
type Reply struct {
	Text   string
	By     string // the official
	ByName string // for other officials
	Scope  Scope  // within which they act
	At     time.Time
}

// NewReply returns the reply of an official.
func NewReply(text string, by Official, now time.Time) (Reply, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Reply{}, fault.NewInvalid("/text", "must not be blank")
	}
	return Reply{Text: text, By: by.ID, ByName: by.Name, Scope: by.Scope, At: stored(now)}, nil
}

// Reply returns the entry of r for f's history. It is a change of f, whatever
// the status: officials reply about what is closed, too.
func (f *Filing) Reply(r Reply) Change {
	f.touch(r.At)
	return Change{From: f.Status, To: f.Status, Note: r.Text, By: r.By, Version: f.Version, At: f.UpdatedAt}
}
