package report

import (
	"crypto/rand"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// A Connection is a machine of a department, such as its system of work orders. It works on
// the department's reports by its key.
type Connection struct {
	ID         uuid.UUID
	Name       string // officials read it beside its acts
	Department Department
	Private    bool // whether it has reports that only the city sees
	MadeAt     time.Time
	RevokedAt  *time.Time // nil while its key is valid
}

// ConnectionPrefix begins the keys of connections; no token of a person begins so.
const ConnectionPrefix = "ccx_"

// NewConnectionKey returns a key of a connection, which is shown once.
func NewConnectionKey() string { return ConnectionPrefix + rand.Text() }

// ErrNoConnection refuses a request about a connection that does not exist, or with a key
// that is not valid.
var ErrNoConnection = fault.New(fault.NotFound, "there is no such connection")

// User returns c as the author of a request.
func (c Connection) User() User {
	return User{ID: c.ID.String(), Name: c.Name, Scope: ConnectionScope(c.Department.Code, c.Private)}
}

// An ExternalRef is what a report is called in the system of a connection.
type ExternalRef struct {
	Number string
	URL    string // of it there; empty for none
	State  string // there, in that system's words; empty for none
	System string // the name of the connection that said so
	At     time.Time
}

// Check returns what is wrong with r.
func (r *ExternalRef) Check() error {
	r.Number, r.State = strings.TrimSpace(r.Number), strings.TrimSpace(r.State)
	if r.Number == "" {
		return fault.NewInvalid("/number", "must not be blank")
	}
	if u, err := url.Parse(r.URL); r.URL != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil) {
		return fault.NewInvalid("/url", "must be an address that begins with https:// or http://, without a user's name")
	}
	return nil
}

// A ConnectedReport is a report as a connection reads it: with nothing of its reporter, not
// even whether everybody reads their name.
type ConnectedReport struct {
	Report
	Photos   []uuid.UUID // ready ones, oldest first
	External *ExternalRef
}

// A ConnectedQuery says which of its reports a connection lists, the oldest first.
type ConnectedQuery struct {
	Statuses    []Status
	ChangedFrom time.Time // changed or assigned since; zero for no bound
	Unnumbered  bool      // only those without an ExternalRef
	After       *Cursor
	Limit       int
}

// Filter returns the conditions that lists of officials have, too.
func (q ConnectedQuery) Filter() Filter {
	return Filter{Statuses: q.Statuses, Order: Oldest, Official: true}
}
