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

// A Status is how far the work on a report is.
type Status string

// The statuses of a report.
const (
	Pending    Status = "pending"
	InProgress Status = "in_progress"
	Resolved   Status = "resolved"
	Rejected   Status = "rejected"
)

// Privacy says whether the reporter of a report is named.
type Privacy string

// The privacy levels. Of an Anonymous report no message names the reporter.
const (
	Public    Privacy = "public"
	Anonymous Privacy = "anonymous"
)

// VoteType is the direction of a vote.
type VoteType string

// The directions of a vote.
const (
	Upvote   VoteType = "upvote"
	Downvote VoteType = "downvote"
)

// PhotoReason says why a photo is not shown.
type PhotoReason string

// The reasons for which photos are refused.
const (
	PhotoUnsupported PhotoReason = "unsupported" // no picture, or of a format that is not taken
	PhotoTooLarge    PhotoReason = "too_large"   // more pixels than are taken
	PhotoDamaged     PhotoReason = "damaged"     // it ends early, or cannot be read
	PhotoInfected    PhotoReason = "infected"    // the virus scanner found something
	PhotoUnsuitable  PhotoReason = "unsuitable"  // an official decided so
	PhotoFailed      PhotoReason = "failed"      // the fault is ours; another attempt may succeed
)

// A Moderation is a decision about the public parts of a report, by an official unless
// it is NameHidden or Withdrawn.
type Moderation string

// The moderations.
const (
	Hidden     Moderation = "hidden"
	ShownAgain Moderation = "shown"    // after it was hidden
	Redacted   Moderation = "redacted" // there are other words in the place of some
	// NameHidden is the reporter's own decision: the report is anonymous from now on.
	NameHidden Moderation = "name_hidden"
	// Withdrawn is the reporter's own decision, too: the report is hidden for ever.
	Withdrawn Moderation = "withdrawn"
	// Restricted shows the report to officials and its reporter alone. For everybody else
	// it is Hidden.
	Restricted Moderation = "private"
)

// A Message is one of *StatusUpdate, *ReportCreated, *VoteReceived,
// *ReportModerated, *ReportCorrected, *ReportDisputed, *ReportCommented,
// *QuestionAsked, *QuestionReminded, *ReportAnswered, *QuestionExpired,
// *ReportOverdue, *PhotoReady, *PhotoRefused, *PhotoUploaded and *GuestAdopted.
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
}

// About returns s. The messages embed a Subject and have it from there.
func (s *Subject) About() *Subject { return s }

// StatusUpdate says that an official moved a report to another status, or replied
// to everybody without moving it.
type StatusUpdate struct {
	Subject
	NewStatus  Status `json:"new_status"`
	Reply      bool   `json:"reply,omitempty"`       // NewStatus is what the report had before, and Note the reply
	Note       string `json:"note,omitempty"`        // the official's explanation
	CategoryID int32  `json:"category_id,omitempty"` // 0 from a writer that does not send it
	// The message that has the status of the report before this one, and the version
	// of the report there; at version 1 it is the ReportCreated. Both are zero if the
	// writer does not know.
	PreviousMessageID     uuid.UUID `json:"previous_message_id,omitzero"`
	PreviousStatusVersion int64     `json:"previous_status_version,omitempty"`
	// VerdictUntil is until when the reporter of a report that is resolved now may say
	// whether it is fixed, in Unix seconds; 0 if nobody asks.
	VerdictUntil int64 `json:"verdict_until,omitempty"`
}

// ReportCreated says that a resident filed a report.
type ReportCreated struct {
	Subject
	CategoryID   int32   `json:"category_id"`
	CategoryName string  `json:"category_name"`
	ReporterName string  `json:"reporter_name,omitempty"` // empty when anonymous
	PrivacyLevel Privacy `json:"privacy_level"`
}

// VoteReceived says that a resident voted on a report, or changed the vote.
type VoteReceived struct {
	Subject
	VoterID  string   `json:"voter_id"`
	VoteType VoteType `json:"vote_type"`
	NewScore *int64   `json:"new_score"` // upvotes less downvotes; never nil in a valid message
	// CategoryID is 0 from a writer that does not send it.
	CategoryID int32 `json:"category_id,omitempty"`
}

// ReportModerated says that an official has hidden a report, shown it again,
// restricted it or redacted words of it, or that its reporter has hidden the name or withdrawn it. The
// contents of messages of lower versions must no longer be shown to anybody, whenever
// they come. It has the whole state, so that the one with
// the highest version is enough.
type ReportModerated struct {
	// The title is the present one; that of a hidden report is its reference
	// number, which is made of its id.
	Subject
	CategoryID int32      `json:"category_id"`
	Action     Moderation `json:"action"`
	Hidden     bool       `json:"hidden"` // whether the report is hidden now
	// RedactedNotes are the versions of the report at which it was moved with a
	// note that is another now, or none.
	RedactedNotes []int64 `json:"redacted_notes"`
	Note          string  `json:"note,omitempty"` // why it is hidden, for its reporter alone
}

// ReportCorrected says that an official has put a report into another category, or
// to another place.
type ReportCorrected struct {
	Subject             // with the present place
	CategoryID   int32  `json:"category_id"` // the present one, as the place
	CategoryName string `json:"category_name"`
	Note         string `json:"note,omitempty"`        // the official's reason, for everybody
	PlaceMoved   bool   `json:"place_moved,omitempty"` // whether the place or the address is another
	// Values before the correction; empty for those that stayed, or were empty.
	PreviousCategoryID int32    `json:"previous_category_id,omitempty"`
	PreviousLatitude   *float64 `json:"previous_latitude,omitempty"`
	PreviousLongitude  *float64 `json:"previous_longitude,omitempty"`
}

// ReportDisputed says that a reporter finds a resolved report not to be fixed, or no
// longer does. It is for officials, and has neither who said it nor what else they said.
// report-service never names the reporter in it.
type ReportDisputed struct {
	Subject
	CategoryID   int32  `json:"category_id"`
	CategoryName string `json:"category_name"`
	Retracted    bool   `json:"retracted,omitempty"` // the reporter says by now that it is fixed
}

// ReportCommented says that the comments on a report have changed: a resident has
// written one, or officials have hidden one or shown it again. It has neither the
// author nor the text: readers fetch the comments that they may see. The version is that
// of the report, which does not change by it. report-service never names the
// reporter in it.
type ReportCommented struct {
	Subject
	CategoryID int32 `json:"category_id"`
}

// QuestionAsked says that an official has asked the reporter something. It does not
// have the text, which the reporter and officials read at the report. The version is
// that of the report, which does not change by it, nor by the messages below.
type QuestionAsked struct {
	Subject
	QuestionID uuid.UUID `json:"question_id"`
	EndsOn     string    `json:"ends_on"` // the last day for an answer, such as 2026-12-11
}

// QuestionReminded says that half of the time for an answer is over, and that there
// is none.
type QuestionReminded struct {
	Subject
	QuestionID uuid.UUID `json:"question_id"`
	EndsOn     string    `json:"ends_on"`
}

// ReportAnswered says that the reporter has answered a question. It is for officials,
// has neither the text nor a name, and report-service never names the reporter in it.
// Its sealed recipient is the official who asked.
type ReportAnswered struct {
	Subject
	QuestionID uuid.UUID `json:"question_id"`
}

// QuestionExpired says that the time for an answer is over, and that there is none.
// It is for the same readers as ReportAnswered.
type QuestionExpired struct {
	Subject
	QuestionID uuid.UUID `json:"question_id"`
}

// ReportOverdue says that the city has not finished its work on a report in the
// time that it set itself. It is for officials, and report-service never names the
// reporter in it. The version is that of the report, which does not change by it.
type ReportOverdue struct {
	Subject
	CategoryID   int32  `json:"category_id"`
	CategoryName string `json:"category_name"`
	DueAt        int64  `json:"due_at"` // Unix seconds
	// Level is 1 once the time is over, 2 once it is over twice, and so on.
	Level int32 `json:"level"`
}

// PhotoReady says that everybody may see a photo of a report. It does not name the
// uploader.
type PhotoReady struct {
	Subject
	PhotoID    uuid.UUID `json:"photo_id"`
	CategoryID int32     `json:"category_id,omitempty"`
}

// PhotoRefused says to the reporter that a photo of the report is not shown. It
// changes nothing that others see, so that ReportVersion is the present one.
type PhotoRefused struct {
	Subject
	PhotoID uuid.UUID   `json:"photo_id"`
	Reason  PhotoReason `json:"reason"`
}

// PhotoUploaded asks the photo worker to process an upload. Nobody sees
// the photo yet, so that ReportVersion is the present one.
type PhotoUploaded struct {
	Subject
	PhotoID uuid.UUID `json:"photo_id"`
}

// AdoptionTitle stands in the place of a report's title in a GuestAdopted.
const AdoptionTitle = "A guest's reports"

// GuestAdopted asks notification-service to make an account's what it has of a guest. The
// account is the sealed recipient. It is about no report: ReportID is an id of its own.
type GuestAdopted struct {
	Subject
	Guest string `json:"guest"` // the guest's id, sealed for ReportID as the recipient is
}

// Key returns StatusUpdatedKey.
func (*StatusUpdate) Key() Key { return StatusUpdatedKey }

// Key returns ReportCreatedKey.
func (*ReportCreated) Key() Key { return ReportCreatedKey }

// Key returns VoteReceivedKey.
func (*VoteReceived) Key() Key { return VoteReceivedKey }

// Key returns ModeratedKey.
func (*ReportModerated) Key() Key { return ModeratedKey }

// Key returns CorrectedKey.
func (*ReportCorrected) Key() Key { return CorrectedKey }

// Key returns DisputedKey.
func (*ReportDisputed) Key() Key { return DisputedKey }

// Key returns CommentedKey.
func (*ReportCommented) Key() Key { return CommentedKey }

// Key returns AskedKey.
func (*QuestionAsked) Key() Key { return AskedKey }

// Key returns RemindedKey.
func (*QuestionReminded) Key() Key { return RemindedKey }

// Key returns AnsweredKey.
func (*ReportAnswered) Key() Key { return AnsweredKey }

// Key returns ExpiredKey.
func (*QuestionExpired) Key() Key { return ExpiredKey }

// Key returns ReportOverdueKey.
func (*ReportOverdue) Key() Key { return ReportOverdueKey }

// Key returns PhotoReadyKey.
func (*PhotoReady) Key() Key { return PhotoReadyKey }

// Key returns PhotoRefusedKey.
func (*PhotoRefused) Key() Key { return PhotoRefusedKey }

// Key returns PhotoUploadedKey.
func (*PhotoUploaded) Key() Key { return PhotoUploadedKey }

// Key returns GuestAdoptedKey.
func (*GuestAdopted) Key() Key { return GuestAdoptedKey }

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
	switch {
	case json.Unmarshal(body, &about) != nil:
		return &FieldError{"report_id", "a UUID"}
	case json.Unmarshal(body, &photo) != nil:
		return &FieldError{"photo_id", "a UUID"}
	case json.Unmarshal(body, &question) != nil:
		return &FieldError{"question_id", "a UUID"}
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

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *StatusUpdate) Validate() error {
	if err := m.Subject.validate(); err != nil {
		return err
	}
	switch {
	case m.CategoryID < 0:
		return &FieldError{"category_id", "a positive number"}
	case m.PreviousStatusVersion < 0:
		return &FieldError{"previous_status_version", "a positive number"}
	case m.VerdictUntil < 0:
		return &FieldError{"verdict_until", "a positive number"}
	}
	return oneOf("new_status", m.NewStatus, Pending, InProgress, Resolved, Rejected)
}

// Validate returns a *FieldError for the first field that breaks the contract.
// A message that is marked anonymous and names its reporter is refused: it
// must not travel.
func (m *ReportCreated) Validate() error {
	if err := m.Subject.validate(); err != nil {
		return err
	}
	switch {
	case m.CategoryID <= 0:
		return &FieldError{"category_id", "a positive number"}
	case m.CategoryName == "":
		return &FieldError{"category_name", "a text that is not empty"}
	case m.PrivacyLevel == Anonymous && m.ReporterID != "":
		return &FieldError{"reporter_id", "empty when privacy_level is anonymous"}
	case m.PrivacyLevel == Anonymous && m.ReporterName != "":
		return &FieldError{"reporter_name", "empty when privacy_level is anonymous"}
	}
	return oneOf("privacy_level", m.PrivacyLevel, Public, Anonymous)
}

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *VoteReceived) Validate() error {
	if err := m.Subject.validate(); err != nil {
		return err
	}
	switch {
	case m.VoterID == "":
		return &FieldError{"voter_id", "the id of a user"}
	case m.NewScore == nil:
		return &FieldError{"new_score", "a number"}
	case m.CategoryID < 0:
		return &FieldError{"category_id", "a positive number"}
	}
	return oneOf("vote_type", m.VoteType, Upvote, Downvote)
}

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *ReportModerated) Validate() error {
	if err := m.Subject.validate(); err != nil {
		return err
	}
	switch {
	case m.CategoryID <= 0:
		return &FieldError{"category_id", "a positive number"}
	case slices.ContainsFunc(m.RedactedNotes, func(version int64) bool { return version < 1 }):
		return &FieldError{"redacted_notes", "a positive number"}
	}
	return oneOf("action", m.Action, Hidden, ShownAgain, Redacted, NameHidden, Withdrawn, Restricted)
}

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *ReportCorrected) Validate() error {
	if err := m.Subject.validate(); err != nil {
		return err
	}
	switch {
	case m.CategoryID <= 0:
		return &FieldError{"category_id", "a positive number"}
	case m.CategoryName == "":
		return &FieldError{"category_name", "a text that is not empty"}
	case m.PreviousCategoryID < 0:
		return &FieldError{"previous_category_id", "a positive number"}
	case m.PreviousLatitude != nil && (*m.PreviousLatitude < -90 || *m.PreviousLatitude > 90):
		return &FieldError{"previous_latitude", "degrees from -90 to 90"}
	case m.PreviousLongitude != nil && (*m.PreviousLongitude < -180 || *m.PreviousLongitude > 180):
		return &FieldError{"previous_longitude", "degrees from -180 to 180"}
	}
	return nil
}

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *ReportDisputed) Validate() error {
	if err := m.Subject.validate(); err != nil {
		return err
	}
	switch {
	case m.CategoryID <= 0:
		return &FieldError{"category_id", "a positive number"}
	case m.CategoryName == "":
		return &FieldError{"category_name", "a text that is not empty"}
	}
	return nil
}

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *ReportCommented) Validate() error {
	if err := m.Subject.validate(); err != nil {
		return err
	}
	if m.CategoryID <= 0 {
		return &FieldError{"category_id", "a positive number"}
	}
	return nil
}

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *QuestionAsked) Validate() error { return m.validQuestion(m.QuestionID, &m.EndsOn) }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *QuestionReminded) Validate() error { return m.validQuestion(m.QuestionID, &m.EndsOn) }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *ReportAnswered) Validate() error { return m.validQuestion(m.QuestionID, nil) }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *QuestionExpired) Validate() error { return m.validQuestion(m.QuestionID, nil) }

// validQuestion checks what the messages about questions have in common, and the
// last day for an answer unless it is nil.
func (s *Subject) validQuestion(id uuid.UUID, endsOn *string) error {
	if err := s.validate(); err != nil {
		return err
	}
	if id == uuid.Nil {
		return &FieldError{"question_id", "a UUID"}
	}
	if endsOn != nil {
		if _, err := time.Parse(time.DateOnly, *endsOn); err != nil {
			return &FieldError{"ends_on", "a date such as 2026-12-11"}
		}
	}
	return nil
}

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *ReportOverdue) Validate() error {
	if err := m.Subject.validate(); err != nil {
		return err
	}
	switch {
	case m.CategoryID <= 0:
		return &FieldError{"category_id", "a positive number"}
	case m.CategoryName == "":
		return &FieldError{"category_name", "a text that is not empty"}
	case m.DueAt <= 0:
		return &FieldError{"due_at", "Unix seconds"}
	case m.Level <= 0:
		return &FieldError{"level", "1 or more"}
	}
	return nil
}

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *PhotoReady) Validate() error {
	if err := m.Subject.validate(); err != nil {
		return err
	}
	if m.CategoryID < 0 {
		return &FieldError{"category_id", "a positive number"}
	}
	return validPhoto(m.PhotoID)
}

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *PhotoRefused) Validate() error {
	if err := m.Subject.validate(); err != nil {
		return err
	}
	if err := validPhoto(m.PhotoID); err != nil {
		return err
	}
	return oneOf("reason", m.Reason, PhotoUnsupported, PhotoTooLarge, PhotoDamaged, PhotoInfected, PhotoUnsuitable, PhotoFailed)
}

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *PhotoUploaded) Validate() error {
	if err := m.Subject.validate(); err != nil {
		return err
	}
	return validPhoto(m.PhotoID)
}

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *GuestAdopted) Validate() error {
	if err := m.Subject.validate(); err != nil {
		return err
	}
	if m.Guest == "" {
		return &FieldError{"guest", "a sealed id"}
	}
	return nil
}

func validPhoto(id uuid.UUID) error {
	if id == uuid.Nil {
		return &FieldError{"photo_id", "a UUID"}
	}
	return nil
}

func (s *Subject) validate() error {
	switch {
	case s.ReportID == uuid.Nil:
		return &FieldError{"report_id", "the id of a report"}
	case s.ReportVersion < 0: // 0 is that of a writer that does not count versions
		return &FieldError{"report_version", "1 or more"}
	case s.ReportTitle == "":
		return &FieldError{"report_title", "a text that is not empty"}
	case s.Timestamp <= 0:
		return &FieldError{"timestamp", "Unix seconds"}
	case s.Latitude != nil && (*s.Latitude < -90 || *s.Latitude > 90):
		return &FieldError{"latitude", "degrees from -90 to 90"}
	case s.Longitude != nil && (*s.Longitude < -180 || *s.Longitude > 180):
		return &FieldError{"longitude", "degrees from -180 to 180"}
	}
	return nil
}

func oneOf[T ~string](field string, got T, want ...T) error {
	if slices.Contains(want, got) {
		return nil
	}
	names := make([]string, len(want))
	for i, w := range want {
		names[i] = string(w)
	}
	return &FieldError{field, "one of " + strings.Join(names, ", ")}
}
