package webhook

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
)

// Stale is the kind of a change for which the endpoint is at another version.
const Stale fault.Kind = "stale"

// Failures that a client may see.
var (
	ErrNotFound   error = fault.New(fault.NotFound, "no such endpoint")
	ErrNoDelivery error = fault.New(fault.NotFound, "no such delivery")
	ErrEnabled    error = fault.New(fault.Conflict, "the endpoint is enabled")
	ErrDisabled   error = fault.New(fault.Conflict, "the endpoint is disabled")
	ErrTooMany    error = fault.New(fault.Conflict, fmt.Sprintf("there are %d endpoints already", MaxEndpoints))
	// ErrTooManyMissed is the refusal of a recovery that would be too large.
	ErrTooManyMissed error = fault.New(fault.Conflict, fmt.Sprintf("more than %d events were never sent; recover a shorter time", MaxRecovered))
)

// NewStale returns the refusal of a change to an endpoint that is at version.
func NewStale(version int64) error {
	return fault.New(Stale, fmt.Sprintf("the endpoint is at version %d by now", version))
}

// MaxEndpoints is how many there may be: each event is expanded for all of them.
const MaxEndpoints = 1000

// MaxRecovered is how many events that were never sent one recovery sends.
const MaxRecovered = 100_000

// A Summary counts the deliveries to an endpoint of the last 24 hours, the latest 1,000
// at most, by outcome, and those that wait now.
type Summary struct {
	Succeeded     int64
	Failed        int64
	P95           *time.Duration // of the attempts that succeeded
	Waiting       int64
	Held          int64
	OldestWaiting *time.Time
	OpenUntil     *time.Time // its circuit is open
}

// A Past is how the attempts to send something to an endpoint went, in steps of time.
// Steps without an attempt have no point.
type Past struct {
	Since  time.Time
	Step   time.Duration
	Points []Point
}

// A Point counts the attempts of the step that begins at At.
type Point struct {
	At        time.Time
	Succeeded int64
	Failed    int64
	P95       *time.Duration // of those that succeeded
}

// A DeliveryState is how far a delivery is.
type DeliveryState string

// A Record is a delivery as operators see it.
type Record struct {
	ID            int64
	Endpoint      uuid.UUID
	MessageID     string // the header webhook-id
	Type          string
	ReportID      *uuid.UUID
	ReportVersion int64
	Body          []byte
	State         DeliveryState
	DueAt         time.Time
	Attempts      int
	LastClass     string
	LastStatus    *int
	LastError     string
	CreatedAt     time.Time
	DoneAt        *time.Time
}

// An AttemptRecord is one request and its answer.
type AttemptRecord struct {
	N        int
	At       time.Time
	Duration time.Duration
	Status   *int
	Class    string
	Error    string
	Response string // the first KiB
}

// A RecordQuery picks deliveries of an endpoint. Empty fields pick all.
type RecordQuery struct {
	State  DeliveryState
	Type   string
	Before int64 // ids below; 0 begins at the newest
	Limit  int
}

// A Window is the time of events that an operator has sent again.
type Window struct{ Since, Until time.Time }

// A Recovery counts what a recovery sends.
type Recovery struct {
	Resent  int64 // deliveries that wait again
	Created int64 // deliveries of events that the endpoint was never sent
}

// EventOfData returns the event of a message whose effect was d: it is the one
// that EventOf returns of the message, as far as the effect tells.
func EventOfData(id string, d *notification.Data) (Event, error) {
	subject := event.Subject{
		ReportID: d.ReportID, ReportVersion: d.ReportVersion, ReportTitle: d.ReportTitle, Private: d.Private, Timestamp: d.HappenedAt.Unix(),
	}
	switch {
	case d.Type == event.ReportCreatedKey:
		return EventOf(id, &event.ReportCreated{Subject: subject, CategoryID: d.CategoryID, CategoryName: d.CategoryName})
	case d.Type == event.StatusUpdatedKey:
		return EventOf(id, &event.StatusUpdate{Subject: subject, NewStatus: d.Status, Note: d.Note, Reply: d.Reply})
	case d.Type == event.VoteReceivedKey && d.Score != nil:
		return EventOf(id, &event.VoteReceived{Subject: subject, NewScore: d.Score})
	case d.Type == event.ReportOverdueKey && d.DueAt != nil:
		return EventOf(id, &event.ReportOverdue{
			Subject: subject, CategoryID: d.CategoryID, CategoryName: d.CategoryName, DueAt: d.DueAt.Unix(), Level: d.OverdueLevel,
		})
	case d.Type == event.ModeratedKey:
		return EventOf(id, &event.ReportModerated{Subject: subject, Action: d.Action, Hidden: d.Hidden, CategoryID: d.CategoryID})
	case d.Type == event.CorrectedKey:
		return EventOf(id, &event.ReportCorrected{
			Subject: subject, CategoryID: d.CategoryID, CategoryName: d.CategoryName, Note: d.Note,
			PreviousCategoryID: d.CategoryWas, PlaceMoved: d.PlaceMoved,
		})
	case d.Type == event.DisputedKey:
		return EventOf(id, &event.ReportDisputed{
			Subject: subject, CategoryID: d.CategoryID, CategoryName: d.CategoryName, Retracted: d.Retracted,
		})
	case d.Type == event.CommentedKey:
		return EventOf(id, &event.ReportCommented{Subject: subject, CategoryID: d.CategoryID})
	case d.Type == event.PhotoReadyKey:
		return EventOf(id, &event.PhotoReady{Subject: subject, PhotoID: d.PhotoID, CategoryID: d.CategoryID})
	}
	return Event{}, fmt.Errorf("no webhook for notifications of type %q", d.Type)
}
