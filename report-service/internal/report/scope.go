package report

import (
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// The kinds of refusals to officials who do not work for the whole city.
const (
	OtherDepartment fault.Kind = "other department"
	ModeratorsOnly  fault.Kind = "moderators only"
)

var (
	errOtherDepartment = fault.New(OtherDepartment, "the report belongs to another department, whose officials work on it")
	errModeratorsOnly  = fault.New(ModeratorsOnly, "only moderators hide, redact, restrict and show what residents wrote and uploaded")
)

// A Scope says whose reports an official, a connection or a firm works on: those of departments,
// by their codes, or of the whole city, which is the zero value. Reports that no department has
// are every official's, and no connection's.
type Scope struct {
	codes      string // with spaces between
	connection bool
	private    bool // a connection's: with those that only the city sees
	// Of a firm, which is like a connection for one report: the job by whose link it acts.
	job, report uuid.UUID
}

// ScopeOf returns the scope of departments, at least one.
func ScopeOf(codes []string) Scope { return Scope{codes: strings.Join(codes, " ")} }

// ConnectionScope returns the scope of a connection of the department, with reports that only
// the city sees or without.
func ConnectionScope(department string, private bool) Scope {
	return Scope{codes: department, connection: true, private: private}
}

// City reports whether s is the whole city.
func (s Scope) City() bool { return s == Scope{} }

// Departments returns the codes in s.
func (s Scope) Departments() []string { return strings.Fields(s.codes) }

// Connection reports whether s is a connection's, and with private reports whether those that
// only the city sees are in it.
func (s Scope) Connection() (connection, private bool) { return s.connection, s.private }

// Job returns the job by whose link a firm acts, and its report; zero for everybody else.
func (s Scope) Job() (job, report uuid.UUID) { return s.job, s.report }

// has reports whether s has f.
func (s Scope) has(f *Filing) bool {
	if s.connection {
		return slices.Contains(s.Departments(), f.Department) && f.HiddenReason == "" && (s.private || !f.Private()) &&
			(s.report == uuid.Nil || s.report == f.ID)
	}
	return s.City() || f.Department == "" || slices.Contains(s.Departments(), f.Department)
}

// An Action is something that may be done with a report.
type Action int

// The actions.
const (
	Read     Action = iota // what everybody sees of it
	Converse               // read what the reporter and officials write to each other
	Handle                 // read what officials know, and work on it
	Moderate               // hide, redact, restrict and show what residents wrote and uploaded
)

// A Reach says of which reports somebody may do something. May decides by it, and SQL has
// its conditions from it, so that a list shows those of which May says so.
type Reach struct {
	Shown    bool   // those that everybody sees
	Reporter string // those of this reporter; nobody's if it is empty
	Official bool   // those in Scope, of officials and connections
	Scope    Scope
}

// Reach returns of which reports u may do a.
func (u User) Reach(a Action) Reach {
	r := Reach{Official: u.Official, Scope: u.Scope}
	if u.Scope.connection { // nothing else, not even what everybody sees
		return Reach{Official: a == Read || a == Handle, Scope: u.Scope}
	}
	switch a {
	case Read:
		r.Shown, r.Reporter = true, u.ID
	case Converse:
		r.Reporter = u.ID
	case Handle:
	case Moderate:
		r.Official = u.Official && u.Scope.City()
	}
	return r
}

func (r Reach) has(f *Filing) bool {
	return r.Shown && f.HiddenReason == "" && !f.Private() || r.Reporter != "" && r.Reporter == f.Reporter.ID ||
		r.Official && r.Scope.has(f)
}

// May returns nil if u may do a with f, and otherwise the fault that u reads. A report that u
// may not even read does not exist.
func May(u User, a Action, f *Filing) error {
	switch {
	case u.Reach(a).has(f):
		return nil
	case !u.Official || !u.Reach(Read).has(f):
		return ErrNotFound
	case u.Reach(Handle).has(f):
		return errModeratorsOnly
	}
	return errOtherDepartment
}
