// Package report holds the rules about residents' reports: what a valid report
// is, how its status changes, and who may vote on it. It depends neither on
// HTTP, nor on the database, nor on the broker.
package report

import (
	"cmp"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// The kinds of faults that only reports have.
const (
	OwnReport         fault.Kind = "own report"
	Closed            fault.Kind = "closed"
	IllegalTransition fault.Kind = "illegal transition"
	Stale             fault.Kind = "stale"
	Signpost          fault.Kind = "signpost"
	KeyReused         fault.Kind = "key reused"
	StillRunning      fault.Kind = "still running"
	NotPending        fault.Kind = "not pending"
	StaysPrivate      fault.Kind = "stays private"
)

// ErrNotFound refuses a request about a report that does not exist.
var ErrNotFound = fault.New(fault.NotFound, "there is no such report")

// A Privacy says whether the reporter's name is shown beside the report.
type Privacy string

// The privacy levels.
const (
	Public    Privacy = "public"
	Anonymous Privacy = "anonymous"
)

// A Visibility says who sees a report.
type Visibility string

// The visibilities. A report for officials is seen by its reporter and by them.
const (
	ForEverybody Visibility = "public"
	ForOfficials Visibility = "officials"
)

// PrivateReason hides a report ForOfficials in the database. Officials do not give it,
// so that a Report has no HiddenReason for it.
const PrivateReason = "private"

// A Position is a place on the globe in WGS 84 degrees.
type Position struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

// An Area is the part of the city that a report is in; the zero value is outside of all.
type Area struct {
	ID   int32
	Code string // the city's own
}

// A User is the author of a request; the zero value is somebody who is not
// signed in.
type User struct {
	ID       string
	Name     string
	Official bool  // whether the role is that of an official
	Scope    Scope // of an official or a connection
	Guest    bool  // without an account
}

// AsOfficial returns the official that u acts as. Without a name, the id is
// shown.
func (u User) AsOfficial() Official {
	return Official{ID: u.ID, Name: cmp.Or(u.Name, u.ID), Scope: u.Scope}
}

// A Reporter is the resident who filed a report.
type Reporter struct {
	ID    string
	Name  string
	Guest bool // without an account, which nothing tells later
}

// A Report is the public part of a report. It has no reporter.
type Report struct {
	ID          uuid.UUID
	Title       string
	Description string
	Category    Category
	Position    *Position // nil if the reporter gave none
	Area        Area      // that has the position
	Asset       Asset
	Address     string
	Privacy     Privacy
	Visibility  Visibility
	Status      Status
	Score       int64 // upvotes less downvotes
	Version     int64 // counts the announced changes, from 1
	CreatedAt   time.Time
	UpdatedAt   time.Time
	// HiddenReason says why officials have hidden it; it is empty for a report
	// that everybody sees to whom its visibility shows it.
	HiddenReason string
	WithdrawnAt  *time.Time // when its reporter has withdrawn it; nil for all others
}

// A View is a report as one reader may see it.
type View struct {
	Report
	ReporterName string        // empty unless the report is public
	Mine         bool          // whether the reader filed it
	MyVote       Vote          // the reader's
	Photos       []uuid.UUID   // ready ones, oldest first
	Question     *OpenQuestion // that waits for the reader's answer; nil for none
	// Verdict is there for the reporter alone, as long as they may say whether it is fixed.
	Verdict *AskedVerdict
}

// For returns v as u may read it: a connection gets nothing of the reporter, not even
// whether everybody reads their name.
func (v View) For(u User) View {
	if u.Scope.connection {
		v.Privacy, v.ReporterName = Anonymous, ""
	}
	return v
}

// An Outlook is what a reporter learns about the work on the report.
type Outlook struct {
	Department string     // in charge; empty for none
	DueAt      *time.Time // by when the city intends to finish its work; nil if it has no target, or waits
}

// A Filing is a report together with its reporter. As a whole it stays between
// this package and the database: only Views and events leave.
type Filing struct {
	Report
	Reporter    Reporter  // without an id if an application filed it: nobody did whom we know
	Application uuid.UUID // that filed it by Open311; zero for none
	Department  string    // the code of the one in charge, for May; empty for none
	Intake      *Intake   // of one that is being filed for somebody; nil for others
	// Restricted is the version at which an official made it one ForOfficials; 0 if its
	// reporter did, or nobody.
	Restricted int64
}

// New files r, of which its reporter has given the words, the category, the place and who
// may see it: a pending report at its first version. The reporter's name of an
// anonymous report is dropped here: nobody sees it, so it is not stored.
func New(r Report, by Reporter, now time.Time) (Filing, error) {
	r.Title, r.Description, r.Address = strings.TrimSpace(r.Title), strings.TrimSpace(r.Description), strings.TrimSpace(r.Address)
	if r.Title == "" {
		return Filing{}, fault.NewInvalid("/title", "must not be blank")
	}
	if r.Privacy == Anonymous {
		by.Name = ""
	}
	r.ID = uuid.Must(uuid.NewV7()) // ordered by time, which keeps the indexes on it small and warm
	r.Visibility = cmp.Or(r.Visibility, ForEverybody)
	r.Status, r.Version = Pending, 1
	r.CreatedAt, r.UpdatedAt = stored(now), stored(now)
	return Filing{Report: r, Reporter: by}, nil
}

// An Idempotent makes a repeated request take effect only once.
type Idempotent struct {
	UserID   string         // of the request's author
	Key      string         // chosen by the client
	Request  [32]byte       // a hash of the request's content
	Response StoredResponse // also for repetitions
	Refusal  error          // why the request is refused unless it repeats another; nil if it is not
}

// A StoredResponse is the response to a request, kept for its repetitions. Only
// the package that made it can read it.
type StoredResponse []byte

// View returns f as its reporter sees it.
func (f *Filing) View() View {
	v := View{Report: f.Report, Mine: true}
	if f.Privacy == Public {
		v.ReporterName = f.Reporter.Name
	}
	return v
}

// HideName makes f anonymous, for ever; ok is false if it is already.
func (f *Filing) HideName(now time.Time) (ok bool) {
	if f.Privacy == Anonymous {
		return false
	}
	f.Privacy, f.Reporter.Name = Anonymous, ""
	f.touch(now)
	return true
}

// WithdrawnReason hides a report that its reporter has withdrawn.
const WithdrawnReason = "withdrawn"

// Withdraw hides f from everybody but officials and its reporter, for ever; ok is false if
// it is withdrawn already. Once officials have begun to work on it, it is too late. The
// votes end with it.
func (f *Filing) Withdraw(ifMatch Versions, now time.Time) (ok bool, err error) {
	switch {
	case f.WithdrawnAt != nil:
		return false, nil
	case !ifMatch.Has(f.Version):
		return false, ifMatch.stale(f.Version)
	case f.Status != Pending:
		return false, fault.New(NotPending, "the report is "+string(f.Status)+": only a pending one can be withdrawn")
	}
	f.HiddenReason = cmp.Or(f.HiddenReason, WithdrawnReason)
	f.Score = 0
	f.touch(now)
	f.WithdrawnAt = &f.UpdatedAt
	return true, nil
}

// Private reports whether r is seen by its reporter and officials alone.
func (r *Report) Private() bool { return r.Visibility == ForOfficials }

// Restrict lets officials and the reporter alone see f; ok is false if it is so already.
func (f *Filing) Restrict(ifMatch Versions, now time.Time) (ok bool, err error) {
	switch {
	case !ifMatch.Has(f.Version):
		return false, ifMatch.stale(f.Version)
	case f.Private():
		return false, nil
	}
	f.touch(now)
	f.Visibility, f.Restricted = ForOfficials, f.Version
	return true, nil
}

// Publish takes back that an official has restricted f; ok is false if everybody sees it
// already. One that its reporter has filed for the city alone stays so for ever. So does
// one to which something was added since, which goes by used: that was written for its
// reporter.
func (f *Filing) Publish(used bool, ifMatch Versions, now time.Time) (ok bool, err error) {
	switch {
	case !ifMatch.Has(f.Version):
		return false, ifMatch.stale(f.Version)
	case !f.Private():
		return false, nil
	case f.Restricted == 0:
		return false, fault.New(StaysPrivate, "the reporter has filed the report for the city alone, and it stays so")
	case used || f.Restricted != f.Version:
		return false, fault.New(StaysPrivate, "something was added to the report while only the city saw it, and it stays so")
	}
	f.touch(now)
	f.Visibility, f.Restricted = ForEverybody, 0
	return true, nil
}

// touch records an announced change at now.
func (f *Filing) touch(now time.Time) {
	f.Version++
	f.UpdatedAt = stored(now)
}

// stored rounds t to the precision of the database, so that an answer and a
// later one about the same report do not differ.
func stored(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
