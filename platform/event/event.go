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
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// A Key is the routing key of a message, and its AMQP type property.
type Key string

// The routing keys, one per message type.
const (
	StatusUpdatedKey Key = "report.status.updated"
	ReportCreatedKey Key = "report.created"
	VoteReceivedKey  Key = "report.vote.received"
)

// Keys lists every routing key in the order in which their queues are served
// when all of them wait: what residents wait for comes first.
func Keys() []Key { return []Key{StatusUpdatedKey, ReportCreatedKey, VoteReceivedKey} }

// Status is where a report stands.
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

// A Message is one of *StatusUpdate, *ReportCreated and *VoteReceived.
type Message interface {
	// Key returns the routing key that the message travels under.
	Key() Key
	// Report returns the report that the message is about and the report's
	// version after the change: 1, 2, 3 … A reader drops a message whose
	// version is below the one that it has shown.
	Report() (id uuid.UUID, version int64)
	// Validate reports the first field that breaks the contract.
	Validate() error
}

// StatusUpdate tells that an official moved a report to another status.
type StatusUpdate struct {
	ReportID      uuid.UUID `json:"report_id"`
	ReportVersion int64     `json:"report_version"`
	ReportTitle   string    `json:"report_title"`
	NewStatus     Status    `json:"new_status"`
	ReporterID    string    `json:"reporter_id,omitempty"` // empty when anonymous
	Note          string    `json:"note,omitempty"`        // the official's explanation
	Timestamp     int64     `json:"timestamp"`             // Unix seconds
}

// ReportCreated tells that a resident filed a report.
type ReportCreated struct {
	ReportID      uuid.UUID `json:"report_id"`
	ReportVersion int64     `json:"report_version"`
	ReportTitle   string    `json:"report_title"`
	CategoryID    int32     `json:"category_id"`
	CategoryName  string    `json:"category_name"`
	ReporterID    string    `json:"reporter_id,omitempty"`   // empty when anonymous
	ReporterName  string    `json:"reporter_name,omitempty"` // empty when anonymous
	PrivacyLevel  Privacy   `json:"privacy_level"`
	Timestamp     int64     `json:"timestamp"` // Unix seconds
}

// VoteReceived tells that a resident voted on a report, or changed the vote.
type VoteReceived struct {
	ReportID      uuid.UUID `json:"report_id"`
	ReportVersion int64     `json:"report_version"`
	ReportTitle   string    `json:"report_title"`
	ReporterID    string    `json:"reporter_id,omitempty"` // empty when anonymous
	VoterID       string    `json:"voter_id"`
	VoteType      VoteType  `json:"vote_type"`
	NewScore      *int64    `json:"new_score"` // upvotes less downvotes; never nil in a valid message
	Timestamp     int64     `json:"timestamp"` // Unix seconds
}

// Key returns StatusUpdatedKey.
func (*StatusUpdate) Key() Key { return StatusUpdatedKey }

// Key returns ReportCreatedKey.
func (*ReportCreated) Key() Key { return ReportCreatedKey }

// Key returns VoteReceivedKey.
func (*VoteReceived) Key() Key { return VoteReceivedKey }

// Report returns the report's id and version.
func (m *StatusUpdate) Report() (uuid.UUID, int64) { return m.ReportID, m.ReportVersion }

// Report returns the report's id and version.
func (m *ReportCreated) Report() (uuid.UUID, int64) { return m.ReportID, m.ReportVersion }

// Report returns the report's id and version.
func (m *VoteReceived) Report() (uuid.UUID, int64) { return m.ReportID, m.ReportVersion }

// Decode reads the body of a message that travelled under key. It refuses
// what breaks the contract and ignores fields that it does not know, so that
// a newer writer and an older reader can work together.
func Decode(key Key, body []byte) (Message, error) {
	var m Message
	switch key {
	case StatusUpdatedKey:
		m = new(StatusUpdate)
	case ReportCreatedKey:
		m = new(ReportCreated)
	case VoteReceivedKey:
		m = new(VoteReceived)
	default:
		return nil, fmt.Errorf("unknown message type %q", key)
	}
	// Unmarshal takes a bare null for "no change"; the contract wants an object.
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, fmt.Errorf("%s: body is not a JSON object", key)
	}
	if err := json.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return m, nil
}

// Validate reports the first field that breaks the contract.
func (m *StatusUpdate) Validate() error {
	if err := validateCommon(m.ReportID, m.ReportVersion, m.ReportTitle, m.Timestamp); err != nil {
		return err
	}
	return oneOf("new_status", m.NewStatus, Pending, InProgress, Resolved, Rejected)
}

// Validate reports the first field that breaks the contract. A message that
// is marked anonymous and names its reporter is refused: it must not travel.
func (m *ReportCreated) Validate() error {
	if err := validateCommon(m.ReportID, m.ReportVersion, m.ReportTitle, m.Timestamp); err != nil {
		return err
	}
	if m.CategoryID <= 0 {
		return fmt.Errorf("category_id: want a positive number, got %d", m.CategoryID)
	}
	if m.CategoryName == "" {
		return fmt.Errorf("category_name: missing")
	}
	if m.PrivacyLevel == Anonymous && (m.ReporterID != "" || m.ReporterName != "") {
		return fmt.Errorf("reporter_id: must be left out when privacy_level is anonymous")
	}
	return oneOf("privacy_level", m.PrivacyLevel, Public, Anonymous)
}

// Validate reports the first field that breaks the contract.
func (m *VoteReceived) Validate() error {
	if err := validateCommon(m.ReportID, m.ReportVersion, m.ReportTitle, m.Timestamp); err != nil {
		return err
	}
	if m.VoterID == "" {
		return fmt.Errorf("voter_id: missing")
	}
	if m.NewScore == nil {
		return fmt.Errorf("new_score: missing")
	}
	return oneOf("vote_type", m.VoteType, Upvote, Downvote)
}

func validateCommon(id uuid.UUID, version int64, title string, timestamp int64) error {
	switch {
	case id == uuid.Nil:
		return fmt.Errorf("report_id: missing")
	case version < 0: // 0 stands for a writer that does not count versions
		return fmt.Errorf("report_version: want 1 or more, got %d", version)
	case title == "":
		return fmt.Errorf("report_title: missing")
	case timestamp <= 0:
		return fmt.Errorf("timestamp: want Unix seconds, got %d", timestamp)
	}
	return nil
}

func oneOf[T ~string](field string, got T, want ...T) error {
	names := make([]string, len(want))
	for i, w := range want {
		if got == w {
			return nil
		}
		names[i] = string(w)
	}
	// What stands there instead is not repeated: errors reach logs and dead letters.
	return fmt.Errorf("%s: want one of %s", field, strings.Join(names, ", "))
}
