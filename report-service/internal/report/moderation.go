package report

import (
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// Hidden is the kind of a change that a hidden report does not allow.
const Hidden fault.Kind = "hidden"

// ErrHidden refuses an official's change to a hidden report. Others get
// ErrNotFound.
var ErrHidden = fault.New(Hidden, "the report is hidden: show it again first")

// ErrWithdrawn refuses an official's change to a report that its reporter has withdrawn.
var ErrWithdrawn = fault.New(Hidden, "the report was withdrawn by its reporter, and stays so")

// Hide hides f from everybody but officials and its reporter, who is notified
// of the reason; ok is false if it is hidden already.
func (f *Filing) Hide(reason string, ifMatch Versions, now time.Time) (ok bool, err error) {
	reason = strings.TrimSpace(reason)
	switch {
	case reason == "":
		return false, fault.NewInvalid("/reason", "must not be blank")
	case f.Private() && reason == PrivateReason: // the database could not tell them apart
		return false, fault.NewInvalid("/reason", "must say why it is hidden")
	case !ifMatch.Has(f.Version):
		return false, ifMatch.stale(f.Version)
	case f.HiddenReason != "":
		return false, nil
	}
	f.HiddenReason = reason
	f.touch(now)
	return true, nil
}

// Unhide shows f to everybody again; ok is false if it is shown already. A report that
// was withdrawn stays so.
func (f *Filing) Unhide(ifMatch Versions, now time.Time) (ok bool, err error) {
	switch {
	case !ifMatch.Has(f.Version):
		return false, ifMatch.stale(f.Version)
	case f.HiddenReason == "":
		return false, nil
	case f.WithdrawnAt != nil:
		return false, fault.New(Hidden, "the reporter has withdrawn the report")
	}
	f.HiddenReason = ""
	f.touch(now)
	return true, nil
}

// A Rewording is an official's request to replace words that nobody is to read.
// Nil fields stay as they are.
type Rewording struct {
	Title       *string
	Description *string
	Notes       map[int64]string // by the version of the entry of the history
	Reason      string           // for officials
	IfMatch     Versions
}

// Redact puts the words of r into f. The caller writes the notes, which are not
// part of f.
func (f *Filing) Redact(r Rewording, now time.Time) error {
	switch {
	case r.Title == nil && r.Description == nil && len(r.Notes) == 0:
		return fault.NewInvalid("/title", "must replace a title, a description or notes")
	case r.Title != nil && strings.TrimSpace(*r.Title) == "":
		return fault.NewInvalid("/title", "must not be blank")
	case strings.TrimSpace(r.Reason) == "":
		return fault.NewInvalid("/reason", "must not be blank")
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
	PersonalData AbuseReason = "personal_data" // it contains somebody's private data
	Offensive    AbuseReason = "offensive"
	Spam         AbuseReason = "spam"
	OtherAbuse   AbuseReason = "other"
)

// A Complaint is a report of abuse. Its author is not kept.
type Complaint struct {
	Reason AbuseReason
	Text   string
	At     time.Time
}

// A FlaggedReport is a report about which people have complained.
type FlaggedReport struct {
	Task
	Complaints []Complaint // not settled by an official, oldest first
}
