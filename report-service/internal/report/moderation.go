package report

import (
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// Hidden is the kind of a change that a hidden report does not take.
const Hidden fault.Kind = "hidden"

// ErrHidden refuses what an official wants to do to a report that is hidden.
// Others are told that there is no such report.
var ErrHidden = fault.New(Hidden, "the report is hidden: show it again first")

// Hide hides f from everybody but officials and whoever filed it, who is told
// the reason; ok is false when it is hidden already.
func (f *Filing) Hide(reason string, ifMatch Versions, now time.Time) (ok bool, err error) {
	reason = strings.TrimSpace(reason)
	switch {
	case reason == "":
		return false, fault.NewInvalid("/reason", "want more than white space")
	case !ifMatch.Has(f.Version):
		return false, ifMatch.stale(f.Version)
	case f.HiddenReason != "":
		return false, nil
	}
	f.HiddenReason = reason
	f.touch(now)
	return true, nil
}

// Unhide shows f to everybody again; ok is false when it is shown already.
func (f *Filing) Unhide(ifMatch Versions, now time.Time) (ok bool, err error) {
	switch {
	case !ifMatch.Has(f.Version):
		return false, ifMatch.stale(f.Version)
	case f.HiddenReason == "":
		return false, nil
	}
	f.HiddenReason = ""
	f.touch(now)
	return true, nil
}

// A Rewording is an official's request to put other words in the place of those
// that nobody is to read. What is nil stays.
type Rewording struct {
	Title       *string
	Description *string
	Notes       map[int64]string // by the version of the entry of the history
	Reason      string           // for officials
	IfMatch     Versions
}

// Redact puts the words of r into f. The notes are not its own: the caller
// writes those.
func (f *Filing) Redact(r Rewording, now time.Time) error {
	switch {
	case r.Title == nil && r.Description == nil && len(r.Notes) == 0:
		return fault.NewInvalid("/title", "want a title, a description or notes to put in the place of what is there")
	case r.Title != nil && strings.TrimSpace(*r.Title) == "":
		return fault.NewInvalid("/title", "want more than white space")
	case strings.TrimSpace(r.Reason) == "":
		return fault.NewInvalid("/reason", "want more than white space")
	case !r.IfMatch.Has(f.Version):
		return r.IfMatch.stale(f.Version)
	}
	if r.Title != nil {
		f.Title = strings.TrimSpace(*r.Title)
	}
	f.touch(now)
	return nil
}

// An AbuseReason says what is wrong with a report.
type AbuseReason string

// The reasons.
const (
	PersonalData AbuseReason = "personal_data" // it has what is private to somebody
	Offensive    AbuseReason = "offensive"
	Spam         AbuseReason = "spam"
	OtherAbuse   AbuseReason = "other"
)

// A Complaint is what a resident says is wrong with a report. Who said it is not
// kept.
type Complaint struct {
	Reason AbuseReason
	Text   string
	At     time.Time
}

// A FlaggedReport is a report about which residents have complained.
type FlaggedReport struct {
	Task
	Complaints []Complaint // those that no official has settled, oldest first
}
