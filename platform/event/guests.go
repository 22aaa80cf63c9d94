package event

// AdoptionTitle stands in the place of a report's title in a GuestAdopted.
const AdoptionTitle = "A guest's reports"

// GuestAdopted asks notification-service to make an account's what it has of a guest. The
// account is the sealed recipient. It is about no report: ReportID is an id of its own.
type GuestAdopted struct {
	Subject
	Guest string `json:"guest"` // the guest's id, sealed for ReportID as the recipient is
}

// Key returns GuestAdoptedKey.
func (*GuestAdopted) Key() Key { return GuestAdoptedKey }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *GuestAdopted) Validate() error { return m.check(rule{m.Guest != "", "guest", "a sealed id"}) }
