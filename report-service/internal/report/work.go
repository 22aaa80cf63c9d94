package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// An Official is someone of the city who works on reports, or a connection that does.
type Official struct {
	ID    string
	Name  string
	Scope Scope // within which they act
}

// User returns o as the author of a request.
func (o Official) User() User {
	return User{ID: o.ID, Name: o.Name, Official: !o.Scope.connection, Scope: o.Scope}
}

// A Member is an official, operator or auditor who has used the service.
type Member struct {
	ID     string
	Name   string
	Role   string
	SeenAt time.Time // to the hour
}

// A Department is a part of the city's administration.
type Department struct {
	ID         int32
	Code       string // by which identity providers call it
	Name       string
	Categories []int32 // whose reports it gets, unless an official assigns them
	Routes     []Route // likewise, of areas
}

// A Route sends the reports of an area to a department: those of a category before the
// category's own department, or those that no category sends anywhere.
type Route struct {
	Area     string `json:"area"`     // its code
	Category int32  `json:"category"` // 0 for the latter
}

// CheckDepartments returns what is wrong with departments as the complete list
// of a city.
func CheckDepartments(departments []Department) error {
	ids, names, codes, categories := make(map[int32]bool), make(map[string]bool), make(map[string]bool), make(map[int32]bool)
	routes := make(map[Route]bool)
	for i, d := range departments {
		at := fmt.Sprintf("/departments/%d/", i)
		switch {
		case d.Name == "":
			return fault.NewInvalid(at+"name", "must not be blank")
		case ids[d.ID]:
			return fault.NewInvalid(at+"id", "is already used by another department")
		case names[d.Name]:
			return fault.NewInvalid(at+"name", "is already used by another department")
		case d.Code != "" && codes[d.Code]:
			return fault.NewInvalid(at+"code", "is already used by another department")
		}
		ids[d.ID], names[d.Name], codes[d.Code] = true, true, true
		for j, category := range d.Categories {
			if categories[category] {
				return fault.NewInvalid(fmt.Sprintf("%scategory_ids/%d", at, j), "is already used by another department")
			}
			categories[category] = true
		}
		for j, route := range d.Routes {
			if routes[route] {
				return fault.NewInvalid(fmt.Sprintf("%sroutes/%d", at, j), "is already used by another department")
			}
			routes[route] = true
		}
	}
	return nil
}

// An Assignment says who works on a report.
type Assignment struct {
	Assignee   *Official // nil for nobody
	Department int32     // 0 for the department of the category
}

// A Task is a report in the officials' queue. It has no description, which the
// queue does not show.
type Task struct {
	Report
	Assignee   *Official     // nil for nobody
	Department *Department   // in charge, assigned or by category; nil for none
	Routed     bool          // whether the department is that of the category
	Notes      int64         // internal notes
	Original   *uuid.UUID    // of which it is a duplicate; nil for none
	DueAt      *time.Time    // when the work is to be finished; nil without a deadline
	Overdue    int           // how many targets late, up to 3
	Waiting    bool          // whether a question to the reporter is open
	Question   *OpenQuestion // nil unless it waits
	Unanswered bool          // its last question was not answered in time, and no official has acted since
	Photos     []uuid.UUID   // ready ones, oldest first
	Abuse      int64         // complaints that no official has settled
	Comments   int64         // that no official has seen
	Disputed   bool          // a reporter says that it is not fixed, and no official has acted since
	External   *ExternalRef  // its number in another system; nil for none
	Perhaps    *Likeness     // of which it is probably a duplicate; nil for none, or where nobody looked
}

// A Queue is a part of the officials' list.
type Queue struct {
	Tasks []Task
	Next  *Cursor // nil on the last
}

// An ActKind is a kind of act of an official on a report.
type ActKind string

// The kinds of acts.
const (
	Moved        ActKind = "move"    // to another status, for all to see
	Replied      ActKind = "reply"   // for all to see, without another status
	Recast       ActKind = "correct" // into another category or to another place, for all to see
	KeptResolved ActKind = "keep"    // resolved, although it was disputed, for all to see
	Assigned     ActKind = "assign"  // to an official or a department
	Forwarded    ActKind = "forward" // to another department
	Noted        ActKind = "note"    // internally

	SetExternalRef ActKind = "external_ref" // its number in the system of a connection

	SentToFirm ActKind = "firm"       // what it says then is JobState.Act
	JobEnded   ActKind = "firm_ended" // in time, without an official, before the firm was done

	MarkedDuplicate   ActKind = "duplicate"
	UnmarkedDuplicate ActKind = "no_duplicate"

	Asked            ActKind = "ask" // the reporter something
	WithdrewQuestion ActKind = "withdraw_question"
	GotNoAnswer      ActKind = "expire"  // in time, without an official
	BecameOverdue    ActKind = "overdue" // without an official

	// Earlier versions let a report wait for the resident without a question.
	StartedWaiting ActKind = "wait"
	StoppedWaiting ActKind = "no_wait"

	AddedPhoto    ActKind = "add_photo"
	ShowedPhoto   ActKind = "show_photo" // a held one
	RemovedPhoto  ActKind = "remove_photo"
	RedactedPhoto ActKind = "redact_photo"

	HidReport      ActKind = "hide"
	ShowedReport   ActKind = "unhide" // again
	RedactedWords  ActKind = "redact"
	DismissedAbuse ActKind = "dismiss_abuse" // the complaints were unfounded

	RestrictedReport ActKind = "restrict" // to officials and its reporter
	PublishedReport  ActKind = "publish"  // again

	HidComment    ActKind = "hide_comment"
	ShowedComment ActKind = "show_comment" // again
)

// An Act is an act of an official on a report. Only officials see it.
type Act struct {
	At         time.Time
	By         Official
	Kind       ActKind
	Text       string      // the note, or why it waited, is hidden or was redacted, or the overdue level
	Status     Status      // to which it was moved
	Assignee   *Official   // to whom it was assigned, nil for nobody
	Department *Department // likewise, nil for the category's
	Original   *uuid.UUID  // of which it was marked as a duplicate
}

// TaskDetails is what officials know about a report.
type TaskDetails struct {
	Task
	Acts       []Act       // oldest first
	Duplicates []uuid.UUID // oldest first
	Verdict    *Verdict    // the reporter's last; nil for none
	// Application is the name of the one that filed it by Open311; empty for none.
	Application string
	Imported    string  // its number in the system before, if it was imported from there; empty for all others
	Intake      *Intake // nil for reports that nobody filed for somebody else
	Job         *Job    // the last; nil for none
	// Disputes are the verdicts of duplicates' reporters on which no official has decided.
	Disputes []DuplicateVerdict
}

// A BulkMove is an official's request to move many reports to a status.
type BulkMove struct {
	At      time.Time // when it began
	By      Official
	To      Status
	Note    string
	Reports []uuid.UUID
	Refused []uuid.UUID // reports that were not moved; nil if the move did not end
}

// Waiting counts what waits for officials in the whole city.
type Waiting struct {
	Commented int64 // reports with comments that no official has seen
	Abuse     int64 // reports with complaints that no official has settled
	Photos    int64 // held ones
	Disputed  int64 // resolved reports that are not fixed, as their reporters say
}

// A GroupCount is how many reports share a status, category, department, assignee and
// area.
type GroupCount struct {
	Status     Status
	Category   int32
	Department int32 // 0 for none
	Assignee   Official
	Area       string // its code; empty for none
	Count      int64
}

// An Interval is the length of the periods of figures.
type Interval string

// The intervals.
const (
	Day   Interval = "day"
	Week  Interval = "week" // begins on Monday
	Month Interval = "month"
)

// A PeriodCounts is how many reports of a category were filed in a period, and how
// many were resolved, rejected and opened again in it, whenever they were filed.
type PeriodCounts struct {
	Begin                               time.Time // of the period, in UTC
	Category                            int32
	Filed, Resolved, Rejected, Reopened int64
	VerdictCounts
}

// VerdictCounts are how many resolutions are fixed and how many are not, as their reporters
// say, and how often the time for that ended without a word.
type VerdictCounts struct{ Confirmed, Disputed, Silent int64 }

// PartOf is the kind of parts of the city by which reports are counted.
type PartOf string

// The kinds of parts: who is in charge of the reports now, and where they are.
const (
	ByDepartment PartOf = "department"
	ByArea       PartOf = "area"
)

// PartCounts are the figures of a department or an area over some time.
type PartCounts struct {
	Part                      int32 // 0 for none
	Filed, Resolved, Rejected int64
	VerdictCounts
	Median *time.Duration // from filing to resolution; nil if none was resolved
}

// Counts are how many reports each choice of a filter would show, with the
// other filters as they are.
type Counts struct {
	Total       int64 // with all filters
	Statuses    map[Status]int64
	Categories  map[int32]int64
	Departments map[int32]int64 // 0 for none
	Assignees   map[Official]int64
	Areas       map[string]int64 // by code, "" outside of all
	Disputed    int64
}

// Count sums shares. They already match those parts of f that are not counted
// here.
func Count(f Filter, shares []GroupCount) Counts {
	c := Counts{
		Statuses: make(map[Status]int64), Categories: make(map[int32]int64),
		Departments: make(map[int32]int64), Assignees: make(map[Official]int64),
		Areas: make(map[string]int64),
	}
	for _, s := range shares {
		status := len(f.Statuses) == 0 || slices.Contains(f.Statuses, s.Status)
		category := len(f.Categories) == 0 || slices.Contains(f.Categories, s.Category)
		department := len(f.Departments) == 0 || slices.Contains(f.Departments, s.Department)
		assignee := f.Assignee == nil || *f.Assignee == s.Assignee.ID
		area := len(f.Areas) == 0 || slices.Contains(f.Areas, s.Area)
		if status && category && department && assignee && area {
			c.Total += s.Count
		}
		if status && category && department && assignee {
			c.Areas[s.Area] += s.Count
		}
		if !area {
			continue
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

// A QueueView is a choice of filters of the queue that an official has named.
type QueueView struct {
	Name    string
	Filters string // the query of the page's address, which only the page reads
}
