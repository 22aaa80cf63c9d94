package event

import (
	"slices"

	"github.com/google/uuid"
)

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

// A Moderation is a decision about the public parts of a report, by an official unless
// it is NameHidden, Withdrawn or WordsRemoved.
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
	// WordsRemoved is nobody's decision: the report was closed long ago, and has its
	// reference instead of a title from now on.
	WordsRemoved Moderation = "words_removed"
)

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

// Key returns StatusUpdatedKey.
func (*StatusUpdate) Key() Key { return StatusUpdatedKey }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *StatusUpdate) Validate() error {
	return m.check(
		notNegative("category_id", m.CategoryID),
		notNegative("previous_status_version", m.PreviousStatusVersion),
		notNegative("verdict_until", m.VerdictUntil),
		oneOf("new_status", m.NewStatus, Pending, InProgress, Resolved, Rejected),
	)
}

// ReportCreated says that a resident filed a report.
type ReportCreated struct {
	Subject
	CategoryID   int32   `json:"category_id"`
	CategoryName string  `json:"category_name"`
	ReporterName string  `json:"reporter_name,omitempty"` // empty when anonymous
	PrivacyLevel Privacy `json:"privacy_level"`
}

// Key returns ReportCreatedKey.
func (*ReportCreated) Key() Key { return ReportCreatedKey }

// Validate returns a *FieldError for the first field that breaks the contract.
// A message that is marked anonymous and names its reporter is refused: it
// must not travel.
func (m *ReportCreated) Validate() error {
	return m.check(
		positive("category_id", m.CategoryID),
		notEmpty("category_name", m.CategoryName),
		rule{m.PrivacyLevel != Anonymous || m.ReporterID == "", "reporter_id", "empty when privacy_level is anonymous"},
		rule{m.PrivacyLevel != Anonymous || m.ReporterName == "", "reporter_name", "empty when privacy_level is anonymous"},
		oneOf("privacy_level", m.PrivacyLevel, Public, Anonymous),
	)
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

// Key returns VoteReceivedKey.
func (*VoteReceived) Key() Key { return VoteReceivedKey }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *VoteReceived) Validate() error {
	return m.check(
		rule{m.VoterID != "", "voter_id", "the id of a user"},
		rule{m.NewScore != nil, "new_score", "a number"},
		notNegative("category_id", m.CategoryID),
		oneOf("vote_type", m.VoteType, Upvote, Downvote),
	)
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

// Key returns ModeratedKey.
func (*ReportModerated) Key() Key { return ModeratedKey }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *ReportModerated) Validate() error {
	return m.check(
		positive("category_id", m.CategoryID),
		rule{!slices.ContainsFunc(m.RedactedNotes, func(version int64) bool { return version < 1 }), "redacted_notes", "a positive number"},
		oneOf("action", m.Action, Hidden, ShownAgain, Redacted, NameHidden, Withdrawn, Restricted, WordsRemoved),
	)
}

// ReportCorrected says that an official has put a report into another category, or
// to another place, or that its reporter has changed its words or its place.
type ReportCorrected struct {
	Subject             // with the present place
	CategoryID   int32  `json:"category_id"` // the present one, as the place
	CategoryName string `json:"category_name"`
	Note         string `json:"note,omitempty"`        // the official's reason, for everybody
	PlaceMoved   bool   `json:"place_moved,omitempty"` // whether the place or the address is another
	ByReporter   bool   `json:"by_reporter,omitempty"` // whether the reporter did it, who gets no notification of it
	// Values before the correction; empty for those that stayed, or were empty.
	PreviousCategoryID int32    `json:"previous_category_id,omitempty"`
	PreviousLatitude   *float64 `json:"previous_latitude,omitempty"`
	PreviousLongitude  *float64 `json:"previous_longitude,omitempty"`
}

// Key returns CorrectedKey.
func (*ReportCorrected) Key() Key { return CorrectedKey }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *ReportCorrected) Validate() error {
	return m.check(
		positive("category_id", m.CategoryID),
		notEmpty("category_name", m.CategoryName),
		notNegative("previous_category_id", m.PreviousCategoryID),
		degrees("previous_latitude", m.PreviousLatitude, 90),
		degrees("previous_longitude", m.PreviousLongitude, 180),
	)
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

// Key returns DisputedKey.
func (*ReportDisputed) Key() Key { return DisputedKey }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *ReportDisputed) Validate() error {
	return m.check(positive("category_id", m.CategoryID), notEmpty("category_name", m.CategoryName))
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

// Key returns CommentedKey.
func (*ReportCommented) Key() Key { return CommentedKey }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *ReportCommented) Validate() error { return m.check(positive("category_id", m.CategoryID)) }

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

// Key returns ReportOverdueKey.
func (*ReportOverdue) Key() Key { return ReportOverdueKey }

// Validate returns a *FieldError for the first field that breaks the contract.
func (m *ReportOverdue) Validate() error {
	return m.check(
		positive("category_id", m.CategoryID),
		notEmpty("category_name", m.CategoryName),
		rule{m.DueAt > 0, "due_at", "Unix seconds"},
		rule{m.Level > 0, "level", "1 or more"},
	)
}
