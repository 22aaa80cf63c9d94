package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Status is where a report stands.
type Status string

// The statuses.
const (
	Pending    Status = "pending"
	InProgress Status = "in_progress"
	Resolved   Status = "resolved"
	Rejected   Status = "rejected"
)

// transitions is the status machine.
var transitions = map[Status][]Status{
	Pending:    {InProgress, Resolved, Rejected},
	InProgress: {Pending, Resolved, Rejected},
	Resolved:   {InProgress},
	Rejected:   {Pending},
}

// Closed reports whether the work on a report with status s has ended.
func (s Status) Closed() bool { return s == Resolved || s == Rejected }

// A Change is one entry of a report's history.
type Change struct {
	From    Status // empty for the first
	To      Status
	Note    string
	By      string // the official; empty for the first
	Version int64  // of the report, after the change
	At      time.Time
}

// A Move is what an official wants to do to a report's status.
type Move struct {
	To      Status
	Note    string
	By      string   // the official
	IfMatch Versions // the versions at which it may happen
}

// Move brings f to another status and returns the entry for its history; ok
// is false when f is there already, and nothing is to be done.
func (f *Filing) Move(m Move, now time.Time) (entry Change, ok bool, err error) {
	switch {
	case !m.IfMatch.Has(f.Version):
		return Change{}, false, &Error{Kind: Stale, Msg: fmt.Sprintf("the report is at version %d by now", f.Version)}
	case m.To == f.Status:
		return Change{}, false, nil
	case !slices.Contains(transitions[f.Status], m.To):
		return Change{}, false, &Error{Kind: IllegalTransition, Msg: "a report that is " + string(f.Status) +
			" can only become " + join(transitions[f.Status])}
	}
	note := strings.TrimSpace(m.Note)
	if note == "" && (m.To == Rejected || f.Status.Closed()) {
		return Change{}, false, &Error{Kind: Invalid, Field: "/note",
			Msg: "mandatory when a report is rejected or reopened"}
	}
	from := f.Status
	f.Status = m.To
	f.touch(now)
	return Change{From: from, To: f.Status, Note: note, By: m.By, Version: f.Version, At: f.UpdatedAt}, true, nil
}

func join(statuses []Status) string {
	names := make([]string, len(statuses))
	for i, s := range statuses {
		names[i] = string(s)
	}
	return strings.Join(names, " or ")
}
