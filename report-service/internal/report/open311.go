package report

import (
	"crypto/rand"
	"crypto/sha256"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// An Application is a program of others that files reports by Open311.
type Application struct {
	ID        uuid.UUID
	Name      string // officials read it on the reports
	MadeAt    time.Time
	RevokedAt *time.Time // nil while its key is valid
	Reports   int64      // that it has filed
}

// ErrNoApplication refuses a request about an application that does not exist, or with a
// key that is not valid.
var ErrNoApplication = fault.New(fault.NotFound, "there is no such key")

// keyPrefix says what a key is for, wherever it is found.
const keyPrefix = "o311_"

// NewKey returns a key of an application, which is shown once.
func NewKey() string { return keyPrefix + rand.Text() }

// HashKey returns what is kept of a key.
func HashKey(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

// A RequestQuery says which of the reports that everybody sees Open311 lists, and in which
// part of the list. The newest are the first.
type RequestQuery struct {
	IDs           []uuid.UUID // these alone; nil for all
	Filter        Filter
	ChangedFrom   time.Time // zero for no bound
	Near          *Position // nil for everywhere
	Radius        float64   // around it, in metres
	Limit, Offset int
}

// A ServiceRequest is a report as Open311 shows it.
type ServiceRequest struct {
	Report
	Note   string      // the last that officials said
	Photos []uuid.UUID // ready ones, oldest first
}

// An UpdateQuery says which updates Open311 lists, the oldest first.
type UpdateQuery struct {
	IDs           []uuid.UUID // of these reports alone; nil for all
	From, To      time.Time   // from one on, before the other; zero for no bound
	Limit, Offset int
}

// A RequestUpdate is an entry of a report's history as Open311 shows it.
type RequestUpdate struct {
	ReportID uuid.UUID
	Version  int64 // of the report; each entry has another
	Status   Status
	Note     string
	At       time.Time
}
