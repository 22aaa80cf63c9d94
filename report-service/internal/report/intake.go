package report

import (
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
)

// A Source says how a report came to the city for which an official filed it.
type Source string

// The sources.
const (
	Counter    Source = "counter"
	Telephone  Source = "telephone"
	Letter     Source = "letter"
	Inspection Source = "inspection" // an official noticed it
)

// An Intake is how a report came that an official filed for somebody. Officials alone see
// it.
type Intake struct {
	Source Source
	By     Official // who entered it
	// Caller is the report's reporter, sealed for notification-service, which keeps their
	// address. It is not set while the report is filed.
	Caller string
}

// NewIntake returns how a report came that by files for somebody. Only officials may, and
// nobody's name is beside it.
func NewIntake(source Source, privacy Privacy, by User) (*Intake, error) {
	switch {
	case !by.Official:
		return nil, fault.NewInvalid("/source", "must be left out: only officials file for somebody else")
	case privacy != Anonymous:
		return nil, fault.NewInvalid("/privacy_level", "must be anonymous for a report that is filed for somebody else")
	}
	return &Intake{Source: source, By: by.AsOfficial()}, nil
}

// NewCaller returns the reporter of a report that an official files for somebody.
func NewCaller() Reporter { return Reporter{ID: event.NewCaller()} }

// ForCaller reports whether an official filed f for somebody.
func (f *Filing) ForCaller() bool { return event.IsCaller(f.Reporter.ID) }
