package report

import (
	"slices"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// A Relation is how a report relates to others.
type Relation struct {
	ID            uuid.UUID
	Status        Status
	Original      *uuid.UUID // of which it is a duplicate; nil for none
	HasDuplicates bool
	Private       bool // whether only its reporter and officials see it
}

// CheckDuplicate decides whether a report may become a duplicate of an
// original, or none if original is uuid.Nil. Known has both, as far as they
// exist. There are no chains: an original is not a duplicate itself, so that
// each duplicate follows one report. Changed is false if nothing changes;
// closed reports whether the original is closed.
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
		return false, false, fault.NewInvalid("/original", "must be another report")
	case duplicate.Original != nil && *duplicate.Original == original:
		return false, false, nil
	}
	of := relation(original)
	switch {
	case of == nil:
		return false, false, fault.NewInvalid("/original", "there is no such report")
	case of.Original != nil:
		return false, false, fault.NewInvalid("/original", "must not be a duplicate itself: name its original")
	case of.Private: // what closes it is for its reporter, and would reach that of the duplicate
		return false, false, fault.NewInvalid("/original", "must be a report that everybody sees")
	case duplicate.HasDuplicates:
		return false, false, fault.New(fault.Conflict, "the report has duplicates itself: give them another original first")
	}
	return true, of.Status.Closed(), nil
}

// A Template is a text that officials write often.
type Template struct {
	ID     int32
	Title  string // for the list of templates
	Text   string
	Status Status // for which it is meant; empty for any
}
