package report

import (
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// A Correction is an official's request to put a report into another category, or to
// another place, or its reporter's to change its words or its place. Nil fields stay as
// they are.
type Correction struct {
	Title       *string // this and the description are for the reporter alone
	Description *string

	Category *Category
	Unusable error // why no report may be put into Category; it may be in it already
	Position *Position
	Area     Area   // that has Position
	Asset    *Asset // the zero value for none
	Address  *string
	Reason   string   // an official's, for everybody
	By       Official // who asks for it, or the reporter
	Official bool     // whether they are an official
	IfMatch  Versions // the versions at which it may happen
}

// ErrRedacted refuses to bring words back that officials have taken out.
var ErrRedacted = fault.New(NotPending, "officials have redacted the report: its words stay")

// Own reports whether it is a reporter's of their own report. An official's with a reason
// is an official's.
func (c Correction) Own(f *Filing) bool {
	return c.By.ID == f.Reporter.ID && (!c.Official || c.Reason == "")
}

// A Replaced is what something was and what it is.
type Replaced[T any] struct {
	From T `json:"from"`
	To   T `json:"to"`
}

// A Corrected says what a correction changed; nil fields stayed as they were. Of a
// reporter's it says neither what was nor what is: they may have written too much.
type Corrected struct {
	ByReporter bool `json:"by_reporter,omitempty"`
	Words      bool `json:"words,omitempty"` // of a reporter's: the title or the description
	Place      bool `json:"place,omitempty"` // of a reporter's: the position, the address or the thing

	Category *Replaced[int32]     `json:"category,omitempty"`
	Position *Replaced[*Position] `json:"position,omitempty"` // from nil, if there was none
	Address  *Replaced[string]    `json:"address,omitempty"`
	Asset    *Replaced[string]    `json:"asset,omitempty"` // the keys
}

// Moved reports whether the place, its address or the thing there is another.
func (c *Corrected) Moved() bool {
	return c.Place || c.Position != nil || c.Address != nil || c.Asset != nil
}

// mayCorrect says why c must not be done to f.
func (f *Filing) mayCorrect(c Correction, own bool) error {
	switch {
	case c.Category == nil && c.Position == nil && c.Address == nil && c.Asset == nil && c.Title == nil && c.Description == nil:
		return fault.NewInvalid("/category_id", "must correct a category, a place, an address, a thing or words")
	case !own && (c.Title != nil || c.Description != nil):
		return fault.NewInvalid("/title", "must stay: only the reporter corrects the words")
	case !own && strings.TrimSpace(c.Reason) == "":
		return fault.NewInvalid("/reason", "must not be blank")
	case own && (c.Reason != "" || c.Category != nil):
		return fault.NewInvalid("/category_id", "must stay, without a reason: a reporter corrects words and the place")
	case own && c.Title != nil && strings.TrimSpace(*c.Title) == "":
		return fault.NewInvalid("/title", "must not be blank")
	case !c.IfMatch.Has(f.Version):
		return c.IfMatch.stale(f.Version)
	case own && f.Status != Pending:
		return fault.New(NotPending, "the report is "+string(f.Status)+": its reporter can correct only a pending one")
	}
	return nil
}

// Correct corrects f and returns the entry for its history; ok is false if f is as c
// asks already. The status stays, also that of a closed report: what it is about and
// where it is remains on the map and in the figures.
func (f *Filing) Correct(c Correction, now time.Time) (entry Change, ok bool, err error) {
	own, reason := c.Own(f), strings.TrimSpace(c.Reason)
	if err := f.mayCorrect(c, own); err != nil {
		return Change{}, false, err
	}
	var corrected Corrected
	for text, to := range map[*string]*string{&f.Title: c.Title, &f.Description: c.Description} {
		if to != nil && strings.TrimSpace(*to) != *text {
			*text, corrected.Words = strings.TrimSpace(*to), true
		}
	}
	if c.Category != nil && c.Category.ID != f.Category.ID {
		if c.Unusable != nil {
			return Change{}, false, c.Unusable
		}
		corrected.Category = &Replaced[int32]{f.Category.ID, c.Category.ID}
		f.Category = *c.Category
	}
	if c.Position != nil && (f.Position == nil || *c.Position != *f.Position) {
		corrected.Position = &Replaced[*Position]{f.Position, c.Position}
		f.Position, f.Area = c.Position, c.Area
	}
	if c.Address != nil {
		if address := strings.TrimSpace(*c.Address); address != f.Address {
			corrected.Address = &Replaced[string]{f.Address, address}
			f.Address = address
		}
	}
	if c.Asset != nil && c.Asset.ID != f.Asset.ID {
		corrected.Asset = &Replaced[string]{f.Asset.Key, c.Asset.Key}
		f.Asset = *c.Asset
	}
	if corrected == (Corrected{}) {
		return Change{}, false, nil
	}
	f.touch(now)
	entry = Change{From: f.Status, To: f.Status, Note: reason, By: c.By.ID, Corrected: &corrected, Version: f.Version, At: f.UpdatedAt}
	if own { // the history does not say who that is
		entry.By, corrected = "", Corrected{ByReporter: true, Words: corrected.Words, Place: corrected.Moved()}
	}
	return entry, true, nil
}
