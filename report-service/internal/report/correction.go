package report

import (
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// A Correction is an official's request to put a report into another category, or to
// another place. Nil fields stay as they are.
type Correction struct {
	Category *Category
	Unusable error // why no report may be put into Category; it may be in it already
	Position *Position
	Area     Area // that has Position
	Address  *string
	Reason   string   // for everybody
	By       Official // who asks for it
	IfMatch  Versions // the versions at which it may happen
}

// A Replaced is what something was and what it is.
type Replaced[T any] struct {
	From T `json:"from"`
	To   T `json:"to"`
}

// A Corrected says what a correction changed; nil fields stayed as they were.
type Corrected struct {
	Category *Replaced[int32]     `json:"category,omitempty"`
	Position *Replaced[*Position] `json:"position,omitempty"` // from nil, if there was none
	Address  *Replaced[string]    `json:"address,omitempty"`
}

// Correct corrects f and returns the entry for its history; ok is false if f is as c
// asks already. The status stays, also that of a closed report: what it is about and
// where it is remains on the map and in the figures.
func (f *Filing) Correct(c Correction, now time.Time) (entry Change, ok bool, err error) {
	reason := strings.TrimSpace(c.Reason)
	switch {
	case c.Category == nil && c.Position == nil && c.Address == nil:
		return Change{}, false, fault.NewInvalid("/category_id", "must correct a category, a place or an address")
	case reason == "":
		return Change{}, false, fault.NewInvalid("/reason", "must not be blank")
	case !c.IfMatch.Has(f.Version):
		return Change{}, false, c.IfMatch.stale(f.Version)
	}
	var corrected Corrected
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
	if corrected == (Corrected{}) {
		return Change{}, false, nil
	}
	f.touch(now)
	return Change{
		From: f.Status, To: f.Status, Note: reason, By: c.By.ID, Corrected: &corrected, Version: f.Version, At: f.UpdatedAt,
	}, true, nil
}
