package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// An Official is someone of the city who works on reports.
type Official struct {
	ID   string
	Name string
}

// A Department is a part of the city that works on reports.
type Department struct {
	ID         int32
	Name       string
	Categories []int32 // whose reports it gets, unless an official assigns them
}

// CheckDepartments returns what is wrong with departments as the whole of a
// city's.
func CheckDepartments(departments []Department) error {
	ids, names, categories := make(map[int32]bool), make(map[string]bool), make(map[int32]bool)
	for i, d := range departments {
		at := fmt.Sprintf("/departments/%d/", i)
		switch {
		case d.Name == "":
			return fault.NewInvalid(at+"name", "want more than white space")
		case ids[d.ID]:
			return fault.NewInvalid(at+"id", "another department has it")
		case names[d.Name]:
			return fault.NewInvalid(at+"name", "another department has it")
		}
		ids[d.ID], names[d.Name] = true, true
		for j, category := range d.Categories {
			if categories[category] {
				return fault.NewInvalid(fmt.Sprintf("%scategory_ids/%d", at, j), "another department has it")
			}
			categories[category] = true
		}
	}
	return nil
}

// An Assignment says who works on a report.
type Assignment struct {
	Assignee   *Official // nil for nobody
	Department int32     // 0 for the one that gets the category's reports
}

// A Task is a report as officials find it in their queue. It has no
// description, which the queue does not show.
type Task struct {
	Report
	Assignee   *Official   // nil for nobody
	Department *Department // in charge, assigned or by category; nil for none
	Routed     bool        // whether the category decided about the department
	Notes      int64       // internal notes
	Original   *uuid.UUID  // of which it is a duplicate; nil for none
	DueAt      *time.Time  // until when the work is to be finished; nil for no time
	Overdue    int         // how many times that time is over, up to 3
	Waiting    bool        // whether the city waits for the resident
	Photos     []uuid.UUID // those that everybody sees, oldest first
	Abuse      int64       // complaints of residents, which no official has settled
}

// A Queue is a part of the officials' list.
type Queue struct {
	Tasks []Task
	Next  *Cursor // nil on the last
}

// An ActKind is something that officials do to a report.
type ActKind string

// The kinds of acts.
const (
	Moved    ActKind = "move"   // to another status, for all to see
	Assigned ActKind = "assign" // to an official or a department
	Noted    ActKind = "note"   // internally

	MarkedDuplicate   ActKind = "duplicate"
	UnmarkedDuplicate ActKind = "no_duplicate"

	StartedWaiting ActKind = "wait"    // for the resident
	StoppedWaiting ActKind = "no_wait" // any more
	BecameOverdue  ActKind = "overdue" // by itself

	AddedPhoto    ActKind = "add_photo"
	ShowedPhoto   ActKind = "show_photo" // that was held
	RemovedPhoto  ActKind = "remove_photo"
	RedactedPhoto ActKind = "redact_photo"

	HidReport      ActKind = "hide"
	ShowedReport   ActKind = "unhide" // again
	RedactedWords  ActKind = "redact"
	DismissedAbuse ActKind = "dismiss_abuse" // what residents complained about is no abuse

	HidComment    ActKind = "hide_comment"
	ShowedComment ActKind = "show_comment" // again
)

// An Act is something that an official did to a report. Only officials may
// know of it.
type Act struct {
	At         time.Time
	By         Official
	Kind       ActKind
	Text       string      // the note, or why it waits, is hidden or was redacted, or the level at which it fell overdue
	Status     Status      // to which it was moved
	Assignee   *Official   // to whom it was assigned, nil for nobody
	Department *Department // likewise, nil for that of the category
	Original   *uuid.UUID  // of which it was called a duplicate
}

// TaskDetails is what officials know of a report, beside what everyone does.
type TaskDetails struct {
	Task
	Acts       []Act       // oldest first
	Duplicates []uuid.UUID // oldest first
}

// A BulkMove is an official's request to move many reports to a status.
type BulkMove struct {
	At      time.Time // when it began
	By      Official
	To      Status
	Note    string
	Reports []uuid.UUID
	Refused []uuid.UUID // those that were not moved; nil if the end is not known
}

// A GroupCount is how many reports have the same status, category, department and
// assignee.
type GroupCount struct {
	Status     Status
	Category   int32
	Department int32 // 0 for none
	Assignee   Official
	Count      int64
}

// An Interval is the length of a period that numbers are about.
type Interval string

// The intervals.
const (
	Day   Interval = "day"
	Week  Interval = "week" // which begins on Monday
	Month Interval = "month"
)

// A PeriodCounts is how many reports of a category were filed in a period, and how
// many were resolved and rejected in it, whenever they were filed.
type PeriodCounts struct {
	Begin                     time.Time // of the period, in UTC
	Category                  int32
	Filed, Resolved, Rejected int64
}

// Counts say how many reports each choice of a filter would show, with the
// other filters as they are.
type Counts struct {
	Total       int64 // with all filters
	Statuses    map[Status]int64
	Categories  map[int32]int64
	Departments map[int32]int64 // 0 for none
	Assignees   map[Official]int64
}

// Count counts shares, which keep to those parts of f that are no choice
// counted here.
func Count(f Filter, shares []GroupCount) Counts {
	c := Counts{
		Statuses: make(map[Status]int64), Categories: make(map[int32]int64),
		Departments: make(map[int32]int64), Assignees: make(map[Official]int64),
	}
	for _, s := range shares {
		status := len(f.Statuses) == 0 || slices.Contains(f.Statuses, s.Status)
		category := len(f.Categories) == 0 || slices.Contains(f.Categories, s.Category)
		department := len(f.Departments) == 0 || slices.Contains(f.Departments, s.Department)
		assignee := f.Assignee == nil || *f.Assignee == s.Assignee.ID
		if status && category && department && assignee {
			c.Total += s.Count
		}
		if category && department && assignee {
			c.Statuses[s.Status] += s.Count
		}
		if status && department && assignee {
			c.Categories[s.Category] += s.Count
		}
		if status && category && assignee {
			c.Departments[s.Department] += s.Count
		}
		if status && category && department {
			c.Assignees[s.Assignee] += s.Count
		}
	}
	return c
}
