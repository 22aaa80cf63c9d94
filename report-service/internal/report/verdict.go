package report

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// The kinds of faults that only resolutions have.
const (
	NoVerdict      fault.Kind = "no verdict"
	DisputedBefore fault.Kind = "disputed before"
	NotDisputed    fault.Kind = "not disputed"
	PhotoNeeded    fault.Kind = "photo needed"
)

// The faults of resolutions.
var (
	ErrNoVerdict      = fault.New(NoVerdict, "nobody asks whether the report is fixed: it is not resolved, the time for it is over, or officials have decided")
	ErrDisputedBefore = fault.New(DisputedBefore, "it was taken back once that the report is not fixed, or officials have decided on it: write a new report of what is left")
	errNotDisputed    = fault.New(NotDisputed, "nobody says that the report is not fixed, or another official has decided")
	errPhotoNeeded    = fault.New(PhotoNeeded, "the city resolves a report only once it has a photo of the finished work: add one first")
)

// Resolutions says what a city asks of its resolutions. The zero value asks nothing.
type Resolutions struct {
	VerdictDays int  // the working days in which a reporter may say whether it is fixed; 0 to ask nobody
	NeedPhoto   bool // whether a report needs a photo of the finished work before
}

// A ChangeKind tells the entries of a history that are about a reporter's word on a
// resolution. All others have none.
type ChangeKind string

// The kinds of such entries.
const (
	Disputed  ChangeKind = "disputed"  // the reporter says that it is not fixed
	Confirmed ChangeKind = "confirmed" // the reporter says that it is
	Upheld    ChangeKind = "kept"      // an official kept it resolved
)

// A Verdict is a reporter's word on whether a resolved report is fixed.
type Verdict struct {
	Fixed   bool
	Text    string // for officials alone
	GivenAt time.Time
	Until   time.Time // until then it could be said, or changed
}

// NewFixVerdict returns what a reporter says at now.
func NewFixVerdict(fixed bool, text string, now time.Time) Verdict {
	return Verdict{Fixed: fixed, Text: strings.TrimSpace(text), GivenAt: stored(now)}
}

// An AskedVerdict is that the reporter is asked for a Verdict, and what they have said.
type AskedVerdict struct {
	Until time.Time
	Fixed *bool // nil until they have said it
	Text  string
}

// A SaidVerdict is one that a reporter has given, whatever they or officials did after it.
type SaidVerdict struct {
	ID       uuid.UUID
	ReportID uuid.UUID // of a duplicate, for officials who read about its original
	Verdict
}

// A DuplicateVerdict is what the reporter of a duplicate said.
type DuplicateVerdict struct {
	ReportID uuid.UUID
	Verdict
}

// Dispute returns the entry for f's history of a reporter's word that it is not fixed.
func (f *Filing) Dispute(now time.Time) Change {
	f.touch(now)
	return Change{From: f.Status, To: f.Status, Kind: Disputed, Version: f.Version, At: f.UpdatedAt}
}

// Retract returns the entry for f's history of a reporter's word that it is fixed by now,
// although it was disputed.
func (f *Filing) Retract(now time.Time) Change {
	f.touch(now)
	return f.Note(Confirmed, f.UpdatedAt)
}

// Note returns an entry of kind for f's history that is announced to nobody: the version
// stays.
func (f *Filing) Note(kind ChangeKind, now time.Time) Change {
	return Change{From: f.Status, To: f.Status, Kind: kind, Version: f.Version, At: stored(now)}
}

// An Uphold is an official's decision to keep a disputed report resolved.
type Uphold struct {
	Note    string // for everybody
	By      Official
	IfMatch Versions
}

// Uphold returns the entry for the history of f, which is disputed or not.
func (f *Filing) Uphold(k Uphold, disputed bool, now time.Time) (Change, error) {
	note := strings.TrimSpace(k.Note)
	switch {
	case !k.IfMatch.Has(f.Version):
		return Change{}, k.IfMatch.stale(f.Version)
	case !disputed:
		return Change{}, errNotDisputed
	case note == "":
		return Change{}, fault.NewInvalid("/note", "must not be blank")
	}
	f.touch(now)
	return Change{From: f.Status, To: f.Status, Kind: Upheld, Note: note, By: k.By.ID, Version: f.Version, At: f.UpdatedAt}, nil
}
