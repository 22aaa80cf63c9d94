package webhook

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/event"
)

// Queue is the queue of webhooks, without the prefix of the topology. It gets
// the messages of Types.
const Queue = "queue.webhooks"

// Types lists the events that endpoints may ask for: those that are public.
func Types() []event.Key {
	return slices.DeleteFunc(event.Keys(), notification.IsPrivate)
}

// An Event is what endpoints are sent: a message of the broker without any
// person in it.
type Event struct {
	MessageID     string // of the message, and the header webhook-id
	Type          string // the routing key of the message
	ReportID      uuid.UUID
	ReportVersion int64
	CategoryID    int32     // 0 when the message does not say
	Position      *Position // nil when the message does not say
	// The category and place that a correction has replaced, or else nothing: an
	// endpoint that was sent the report there is sent the correction, too.
	PreviousCategoryID int32
	PreviousPosition   *Position
	Private            bool   // only for endpoints with PrivateScope
	Body               []byte // a Payload: the bytes that are sent, and signed
	TraceID            string // of the request that caused it; "" if it is not known
}

// A Position is a place on earth, in degrees.
type Position struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

// A Payload is the body of a request, as Standard Webhooks lays it out.
type Payload struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"` // when it happened
	Data      any       `json:"data"`      // a ReportCreated, StatusUpdated, VoteReceived, ReportModerated, ReportCorrected,
	// ReportDisputed, ReportCommented, ReportOverdue, PhotoReady or Test
}

// Report is what the data of each event has of its report. None of it is
// hidden, unless it is Private: the page shows it to everybody, also of an anonymous report.
type Report struct {
	ReportID uuid.UUID `json:"report_id"`
	// ReportVersion counts the changes of the report. Events may come in
	// another order: one below a version that the receiver has seen is old.
	ReportVersion int64     `json:"report_version"`
	ReportTitle   string    `json:"report_title"`
	CategoryID    int32     `json:"category_id,omitempty"`
	Position      *Position `json:"position,omitempty"`
	Asset         string    `json:"asset,omitempty"`   // the thing of the city that it is about, as layer/code
	Private       bool      `json:"private,omitempty"` // only its reporter and officials see it
}

// ReportCreated is the data of report.created.
type ReportCreated struct {
	Report
	CategoryName string       `json:"category_name"`
	Status       event.Status `json:"status"`
}

// StatusUpdated is the data of report.status.updated.
type StatusUpdated struct {
	Report
	Status event.Status `json:"status"`
	Note   string       `json:"note,omitempty"`  // the official's explanation
	Reply  bool         `json:"reply,omitempty"` // the official replied, and the status is what it was
}

// VoteReceived is the data of report.vote.received. It does not say which way
// the vote was: the score does, as it does for everybody.
type VoteReceived struct {
	Report
	Score int64 `json:"score"`
}

// ReportModerated is the data of report.moderated. For a hidden report it has the
// reference number instead of a title, and no place; why it is hidden is for its
// reporter alone.
type ReportModerated struct {
	Report
	Action event.Moderation `json:"action"`
	Hidden bool             `json:"hidden"`
}

// ReportCorrected is the data of report.corrected: the report is in another category,
// or at another place. It goes to the endpoints that get the report's events from now
// on, and to those that got them until now.
type ReportCorrected struct {
	Report
	CategoryName       string    `json:"category_name"`
	PreviousCategoryID int32     `json:"previous_category_id,omitempty"` // if the category is another
	PreviousPosition   *Position `json:"previous_position,omitempty"`    // if the place is another, and there was one
	Note               string    `json:"note,omitempty"`                 // the official's reason
}

// ReportDisputed is the data of report.disputed. Neither who says it nor what else they
// say is in it: that is for officials alone.
type ReportDisputed struct {
	Report
	CategoryName string `json:"category_name"`
	Retracted    bool   `json:"retracted,omitempty"` // it is no longer disputed
}

// ReportCommented is the data of report.commented: the comments on the report have
// changed. Their text is at /reports/{report_id}/comments of the city's address.
type ReportCommented struct{ Report }

// ReportOverdue is the data of report.overdue.
type ReportOverdue struct {
	Report
	CategoryName string    `json:"category_name"`
	DueAt        time.Time `json:"due_at"`
	Level        int32     `json:"level"` // 1 once the time is over, 2 once it is over twice
}

// PhotoReady is the data of report.photo.ready. The picture is at
// /photos/{photo_id}/2048.jpg, 1024.jpg and 320.jpg of the city's address.
type PhotoReady struct {
	Report
	PhotoID uuid.UUID `json:"photo_id"`
}

// Test is the data of webhook.test.
type Test struct {
	Text string `json:"text"`
}

// EventOf returns the event of m, which came under the message id. The event has the
// fields of its data type, and nothing else of m.
func EventOf(id string, m event.Message) (Event, error) {
	about := m.About()
	report := Report{ReportID: about.ReportID, ReportVersion: about.ReportVersion, ReportTitle: about.ReportTitle, Private: about.Private, Asset: about.Asset}
	if about.Latitude != nil && about.Longitude != nil {
		report.Position = &Position{Latitude: *about.Latitude, Longitude: *about.Longitude}
	}
	position := report.Position // decides who gets it
	var previousCategory int32
	var previousPosition *Position
	var data any
	switch m := m.(type) {
	case *event.ReportCreated:
		report.CategoryID = m.CategoryID
		data = ReportCreated{Report: report, CategoryName: m.CategoryName, Status: event.Pending}
	case *event.StatusUpdate:
		report.CategoryID = m.CategoryID
		data = StatusUpdated{Report: report, Status: m.NewStatus, Note: m.Note, Reply: m.Reply}
	case *event.VoteReceived:
		report.CategoryID = m.CategoryID
		data = VoteReceived{Report: report, Score: *m.NewScore}
	case *event.ReportModerated:
		report.CategoryID = m.CategoryID
		if m.Hidden {
			report.Position, report.Asset = nil, ""
		}
		action := m.Action
		if action == event.Restricted { // to those who could see it until now it is hidden
			action, report.Private = event.Hidden, false
		}
		data = ReportModerated{Report: report, Action: action, Hidden: m.Hidden}
	case *event.ReportCorrected:
		report.CategoryID = m.CategoryID
		previousCategory = m.PreviousCategoryID
		if m.PreviousLatitude != nil && m.PreviousLongitude != nil {
			previousPosition = &Position{Latitude: *m.PreviousLatitude, Longitude: *m.PreviousLongitude}
		}
		data = ReportCorrected{
			Report: report, CategoryName: m.CategoryName, Note: m.Note,
			PreviousCategoryID: previousCategory, PreviousPosition: previousPosition,
		}
	case *event.ReportDisputed:
		report.CategoryID = m.CategoryID
		data = ReportDisputed{Report: report, CategoryName: m.CategoryName, Retracted: m.Retracted}
	case *event.ReportCommented:
		report.CategoryID = m.CategoryID
		data = ReportCommented{Report: report}
	case *event.ReportOverdue:
		report.CategoryID = m.CategoryID
		data = ReportOverdue{Report: report, CategoryName: m.CategoryName, DueAt: time.Unix(m.DueAt, 0).UTC(), Level: m.Level}
	case *event.PhotoReady:
		report.CategoryID = m.CategoryID
		data = PhotoReady{Report: report, PhotoID: m.PhotoID}
	default:
		return Event{}, fmt.Errorf("no webhook for messages of type %q", m.Key())
	}
	body, err := json.Marshal(Payload{Type: string(m.Key()), Timestamp: time.Unix(about.Timestamp, 0).UTC(), Data: data})
	if err != nil {
		return Event{}, fmt.Errorf("encode payload: %w", err)
	}
	return Event{
		MessageID: id, Type: string(m.Key()), ReportID: report.ReportID, ReportVersion: report.ReportVersion,
		CategoryID: report.CategoryID, Position: position, Private: report.Private, Body: body,
		PreviousCategoryID: previousCategory, PreviousPosition: previousPosition,
	}, nil
}

// NewTest returns an event with which an operator tries an endpoint out.
func NewTest() (Event, error) {
	body, err := json.Marshal(Payload{
		Type: TestType, Timestamp: time.Now().UTC().Truncate(time.Second),
		Data: Test{"A test of this endpoint, sent by an operator of CityConnect."},
	})
	if err != nil {
		return Event{}, fmt.Errorf("encode payload: %w", err)
	}
	return Event{MessageID: uuid.NewString(), Type: TestType, Body: body}, nil
}
