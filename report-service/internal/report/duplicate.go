package report

import (
	"slices"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// A Relation is what a report has to do with others.
type Relation struct {
	ID            uuid.UUID
	Status        Status
	Original      *uuid.UUID // of which it is a duplicate; nil for none
	HasDuplicates bool
}

// CheckDuplicate decides whether a report may be a duplicate of an original,
// which is uuid.Nil to make it none. Known has both, as far as they exist.
// There are no chains: an original is no duplicate, so that each duplicate has
// one end to follow. Changed is false when it is so already; closed reports
// whether the original is closed.
func CheckDuplicate(id, original uuid.UUID, known []Relation) (changed, closed bool, err error) {
	relation := func(id uuid.UUID) *Relation {
		i := slices.IndexFunc(known, func(r Relation) bool { return r.ID == id })
		if i < 0 {
			return nil
		}
		return &known[i]
	}
	duplicate := relation(id)
	switch {
	case duplicate == nil:
		return false, false, ErrNotFound
	case original == uuid.Nil:
		return duplicate.Original != nil, false, nil
	case original == id:
		return false, false, fault.NewInvalid("/original", "a report is no duplicate of itself")
	case duplicate.Original != nil && *duplicate.Original == original:
		return false, false, nil
	}
	of := relation(original)
	switch {
	case of == nil:
		return false, false, fault.NewInvalid("/original", "there is no such report")
	case of.Original != nil:
		return false, false, fault.NewInvalid("/original", "that report is a duplicate itself: name its original")
	case duplicate.HasDuplicates:
		return false, false, fault.New(fault.Conflict, "the report has duplicates itself: give them another original first")
	}
	return true, of.Status.Closed(), nil
}

// A Template is what officials write often.
type Template struct {
	ID     int32
	Title  string // for the list of templates
	Text   string
	Status Status // to which it goes with; empty for any
}
