package report

import (
	"crypto/rand"
	"fmt"
	"net/mail"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// A Firm repairs for a department. It has no account: it works on one report by a link.
type Firm struct {
	ID      uuid.UUID
	Name    string
	Address string // of mail
}

// CheckFirms returns what is wrong with firms as the complete list of a department.
func CheckFirms(firms []Firm) error {
	ids, names := make(map[uuid.UUID]bool), make(map[string]bool)
	for i, f := range firms {
		at := fmt.Sprintf("/firms/%d/", i)
		address, err := mail.ParseAddress(f.Address)
		switch {
		case f.Name == "":
			return fault.NewInvalid(at+"name", "must not be blank")
		case names[f.Name]:
			return fault.NewInvalid(at+"name", "is already used by another firm")
		case f.ID != uuid.Nil && ids[f.ID]:
			return fault.NewInvalid(at+"id", "is already used by another firm")
		case err != nil || address.Address != f.Address:
			return fault.NewInvalid(at+"address", "must be an address of mail such as office@firm.example")
		}
		ids[f.ID], names[f.Name] = true, true
	}
	return nil
}

// JobDays is for how many days a link opens a report: a fortnight, since repairs that take
// longer are planned, and a link that lies in a mailbox should not.
const JobDays = 14

// JobPrefix begins the links of firms; neither a token nor a connection's key begins so.
const JobPrefix = "ccj_"

// NewJobToken returns what the link of a job ends with.
func NewJobToken() string { return JobPrefix + rand.Text() }

// ErrNoJob refuses a request with a link that opens nothing, or no longer does.
var ErrNoJob = fault.New(fault.NotFound, "the link has ended, or is incomplete")

// A JobState is what a firm said last about a report; empty before it said something.
type JobState string

// The states. Each is said in an act for officials, who alone set the status.
const (
	JobAccepted JobState = "accepted"
	JobDone     JobState = "done"
	JobRefused  JobState = "cannot"
)

// Act returns the kind of the act in which a firm says s.
func (s JobState) Act() ActKind { return ActKind("firm_" + string(s)) }

// A Job is a report that a firm is asked to repair.
type Job struct {
	ID         uuid.UUID
	Firm       Firm
	Department Department
	Text       string // an official's, for the firm
	SentAt     time.Time
	EndsAt     time.Time
	Ended      bool
	Said       JobState
	SaidText   string
}

// User returns the firm as the author of requests about the one report.
func (j Job) User(reportID uuid.UUID) User {
	return User{ID: j.Firm.ID.String(), Name: j.Firm.Name, Scope: Scope{codes: j.Department.Code, connection: true, private: true, job: j.ID, report: reportID}}
}
