// Package event is the contract between the two services: the messages, the
// names of exchanges, queues and routing keys, and the sealed recipient.
//
// Nothing else is shared. A field may be added to a message; none may go and
// none may change its meaning. docs/schemas holds the same contract as JSON
// Schema, and a test keeps the two together.
package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// A Key is the routing key of a message, and its AMQP type property.
type Key string

// The routing keys, one per message type.
const (
	StatusUpdatedKey Key = "report.status.updated"
	ReportCreatedKey Key = "report.created"
	VoteReceivedKey  Key = "report.vote.received"
	ReportOverdueKey Key = "report.overdue"
	ModeratedKey     Key = "report.moderated"
	CorrectedKey     Key = "report.corrected"
	DisputedKey      Key = "report.disputed"
	CommentedKey     Key = "report.commented"
	AskedKey         Key = "report.question.asked"
	RemindedKey      Key = "report.question.reminded"
	AnsweredKey      Key = "report.answered"
	ExpiredKey       Key = "report.question.expired"
	PhotoReadyKey    Key = "report.photo.ready"
	PhotoRefusedKey  Key = "report.photo.refused"
	PhotoUploadedKey Key = "report.photo.uploaded"
	GuestAdoptedKey  Key = "guest.adopted"
	FirmNoticeKey    Key = "firm.notice"
)

// types has every type of message, in the order in which their queues are
// served when all of them wait: what residents wait for comes first. Types may
// share a queue.
var types = []struct {
	key   Key
	queue string // without the prefix
	work  bool   // a task: it notifies nobody
	new   func() Message
}{
	{StatusUpdatedKey, "queue.status_updates", false, func() Message { return new(StatusUpdate) }},
	{ReportCreatedKey, "queue.report_created", false, func() Message { return new(ReportCreated) }},
	{VoteReceivedKey, "queue.vote_received", false, func() Message { return new(VoteReceived) }},
	{ModeratedKey, "queue.moderation", false, func() Message { return new(ReportModerated) }},
	{CorrectedKey, "queue.corrections", false, func() Message { return new(ReportCorrected) }},
	{DisputedKey, "queue.disputes", false, func() Message { return new(ReportDisputed) }},
	{CommentedKey, "queue.comments", false, func() Message { return new(ReportCommented) }},
	{AskedKey, "queue.questions", false, func() Message { return new(QuestionAsked) }},
	{RemindedKey, "queue.questions", false, func() Message { return new(QuestionReminded) }},
	{AnsweredKey, "queue.questions", false, func() Message { return new(ReportAnswered) }},
	{ExpiredKey, "queue.questions", false, func() Message { return new(QuestionExpired) }},
	{ReportOverdueKey, "queue.overdue", false, func() Message { return new(ReportOverdue) }},
	{PhotoReadyKey, "queue.photo_results", false, func() Message { return new(PhotoReady) }},
	{PhotoRefusedKey, "queue.photo_results", false, func() Message { return new(PhotoRefused) }},
	{PhotoUploadedKey, "queue.photo_checks", true, func() Message { return new(PhotoUploaded) }},
	{GuestAdoptedKey, "queue.adoptions", true, func() Message { return new(GuestAdopted) }},
	{FirmNoticeKey, "queue.firms", true, func() Message { return new(FirmNotice) }},
}

// Keys lists the routing keys of messages that notify people, in the order in which
// their queues are served when all of them wait.
func Keys() (keys []Key) {
	for _, t := range types {
		if !t.work {
			keys = append(keys, t.key)
		}
	}
	return keys
}

// AllKeys lists every routing key: those of Keys, and those of tasks that
// report-service leaves for others.
func AllKeys() (keys []Key) {
	for _, t := range types {
		keys = append(keys, t.key)
	}
	return keys
}

// A Message is one of *StatusUpdate, *ReportCreated, *VoteReceived,
// *ReportModerated, *ReportCorrected, *ReportDisputed, *ReportCommented,
// *QuestionAsked, *QuestionReminded, *ReportAnswered, *QuestionExpired,
// *ReportOverdue, *PhotoReady, *PhotoRefused, *PhotoUploaded, *GuestAdopted and *FirmNotice.
type Message interface {
	// Key returns the routing key that the message travels under.
	Key() Key
	// About returns what the message says of its report.
	About() *Subject
	// Validate returns a *FieldError for the first field that breaks the contract.
	Validate() error
}

// A Subject is what every message says of the report that it is about.
type Subject struct {
	ReportID uuid.UUID `json:"report_id"`
	// ReportVersion is the report's version after the change: 1, 2, 3 … A reader
	// drops a message whose version is below the one that it has shown.
	ReportVersion int64  `json:"report_version"`
	ReportTitle   string `json:"report_title"`
	ReporterID    string `json:"reporter_id,omitempty"` // empty when anonymous
	// Private says that only the reporter and officials see the report, so that the
	// message is for nobody else.
	Private   bool  `json:"private,omitempty"`
	Timestamp int64 `json:"timestamp"` // Unix seconds
	// Where the report is, in degrees, as everybody sees it; nil without a place.
	Latitude  *float64 `json:"latitude,omitempty"`
	Longitude *float64 `json:"longitude,omitempty"`
	// Asset is the thing of the city that the report is about, as its layer and code with a
	// slash between them; empty for none.
	Asset string `json:"asset,omitempty"`
	// Department is the code of the one in charge, empty for none, in messages that officials
	// of departments are notified of; nil where the writer does not say, as in a city whose
	// officials work for all of it.
	Department *string `json:"department,omitempty"`
}

// About returns s. The messages embed a Subject and have it from there.
func (s *Subject) About() *Subject { return s }

// Previous returns the message that a reader must have before m, so that the last
// status that it has of a report is the present one. There may be none, or the writer
// may not know.
func Previous(m Message) (id uuid.UUID, key Key, ok bool) {
	s, isStatus := m.(*StatusUpdate)
	switch {
	case !isStatus || s.PreviousMessageID == uuid.Nil:
		return uuid.Nil, "", false
	case s.PreviousStatusVersion == 1:
		return s.PreviousMessageID, ReportCreatedKey, true
	default:
		return s.PreviousMessageID, StatusUpdatedKey, true
	}
}

// A FieldError says which field of a message breaks the contract, and what it must
// be. It never shows the value: errors reach logs and dead letters.
type FieldError struct {
	Field string // as it is named in JSON
	Must  string // follows "must be", such as "a positive number"
}

// Error returns the field and what it must be.
func (e *FieldError) Error() string { return e.Field + ": must be " + e.Must }

// Decode reads the body of a message that travelled under key. It refuses
// what breaks the contract and ignores fields that it does not know, so that
// a newer writer and an older reader can work together. Its error wraps a
// *json.SyntaxError or a *FieldError where there is one, and does not quote
// the body.
func Decode(key Key, body []byte) (Message, error) {
	m := newMessage(key)
	if m == nil {
		return nil, fmt.Errorf("unknown message type %q", key)
	}
	// Unmarshal takes a bare null for "no change"; the contract requires an object.
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, fmt.Errorf("%s: body is not a JSON object", key)
	}
	err := unmarshal(body, m)
	if err == nil {
		err = m.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return m, nil
}

// unmarshal returns a *json.SyntaxError or a *FieldError.
func unmarshal(body []byte, m Message) error {
	err := json.Unmarshal(body, m)
	if _, ok := errors.AsType[*json.SyntaxError](err); ok || err == nil {
		return err
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &FieldError{Field: wrong.Field[strings.LastIndex(wrong.Field, ".")+1:], Must: "of another type"}
	}
	// The fields that read their text themselves, and whose errors quote it.
	var about struct {
		ReportID uuid.UUID `json:"report_id"`
	}
	var photo struct {
		ID uuid.UUID `json:"photo_id"`
	}
	var question struct {
		ID uuid.UUID `json:"question_id"`
	}
	var job struct {
		ID uuid.UUID `json:"job_id"`
	}
	var photos struct {
		IDs []uuid.UUID `json:"photos"`
	}
	switch {
	case json.Unmarshal(body, &about) != nil:
		return &FieldError{"report_id", "a UUID"}
	case json.Unmarshal(body, &photo) != nil:
		return &FieldError{"photo_id", "a UUID"}
	case json.Unmarshal(body, &question) != nil:
		return &FieldError{"question_id", "a UUID"}
	case json.Unmarshal(body, &job) != nil:
		return &FieldError{"job_id", "a UUID"}
	case json.Unmarshal(body, &photos) != nil:
		return &FieldError{"photos", "a list of UUIDs"}
	}
	return &FieldError{"previous_message_id", "a UUID"}
}

// newMessage returns an empty message of key's type, or nil if there is none.
func newMessage(key Key) Message {
	for _, t := range types {
		if t.key == key {
			return t.new()
		}
	}
	return nil
}

// A rule is what a field of a message must be, and whether it is.
type rule struct {
	ok          bool
	field, must string
}

// check returns a *FieldError for the first field of a message that breaks the contract:
// those of s, and then those of rules.
func (s *Subject) check(rules ...rule) error {
	err := firstBroken(
		rule{s.ReportID != uuid.Nil, "report_id", "the id of a report"},
		rule{s.ReportVersion >= 0, "report_version", "1 or more"}, // 0 is that of a writer that does not count versions
		notEmpty("report_title", s.ReportTitle),
		rule{s.Timestamp > 0, "timestamp", "Unix seconds"},
		degrees("latitude", s.Latitude, 90),
		degrees("longitude", s.Longitude, 180),
	)
	if err == nil {
		err = firstBroken(rules...)
	}
	return err
}

// firstBroken returns a *FieldError for the first of rules that does not hold.
func firstBroken(rules ...rule) error {
	for _, r := range rules {
		if !r.ok {
			return &FieldError{r.field, r.must}
		}
	}
	return nil
}

func positive(field string, n int32) rule { return rule{n > 0, field, "a positive number"} }

func notNegative[N int32 | int64](field string, n N) rule {
	return rule{n >= 0, field, "a positive number"}
}

func notEmpty(field, text string) rule { return rule{text != "", field, "a text that is not empty"} }

func isID(field string, id uuid.UUID) rule { return rule{id != uuid.Nil, field, "a UUID"} }

func date(field, day string) rule {
	_, err := time.Parse(time.DateOnly, day)
	return rule{err == nil, field, "a date such as 2026-12-11"}
}

// degrees are at most so many to each side; nil is without a place.
func degrees(field string, d *float64, most float64) rule {
	if d == nil || *d >= -most && *d <= most {
		return rule{ok: true}
	}
	return rule{false, field, fmt.Sprintf("degrees from -%g to %g", most, most)}
}

func oneOf[T ~string](field string, got T, allowed ...T) rule {
	if slices.Contains(allowed, got) {
		return rule{ok: true}
	}
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	return rule{false, field, "one of " + strings.Join(names, ", ")}
}
