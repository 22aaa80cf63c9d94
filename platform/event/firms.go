package event

import "github.com/google/uuid"

// A FirmNoticeKind says why a firm gets a mail.
type FirmNoticeKind string

// The kinds of mails to firms.
const (
	FirmAsked    FirmNoticeKind = "asked"    // to repair
	FirmReminded FirmNoticeKind = "reminded" // half of its time is over
	FirmEnded    FirmNoticeKind = "ended"    // all of it is, and the link with it
)

// FirmNotice asks notification-service to mail a firm that is to repair what a report is
// about. It has nothing of the reporter, and no words of a report that only the city sees:
// then the name of the category takes the place of the title.
type FirmNotice struct {
	Subject
	JobID        uuid.UUID      `json:"job_id"`
	Kind         FirmNoticeKind `json:"kind"`
	Number       string         `json:"number"` // of the report, as people say it
	CategoryName string         `json:"category_name"`
	Address      string         `json:"address,omitempty"` // of the place
	Text         string         `json:"text,omitempty"`    // an official's, for the firm
	EndsOn       string         `json:"ends_on"`           // the last day on which the link opens
	Photos       []uuid.UUID    `json:"photos,omitempty"`  // that everybody sees
	Mailbox      string         `json:"mailbox"`           // the firm's address of mail, sealed for JobID
	Token        string         `json:"token,omitempty"`   // the end of its link, likewise; empty once that has ended
}

// Key returns FirmNoticeKey.
func (*FirmNotice) Key() Key { return FirmNoticeKey }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *FirmNotice) Validate() error {
	return m.check(isID("job_id", m.JobID), oneOf("kind", m.Kind, FirmAsked, FirmReminded, FirmEnded),
		notEmpty("number", m.Number), notEmpty("category_name", m.CategoryName), date("ends_on", m.EndsOn), notEmpty("mailbox", m.Mailbox))
}
