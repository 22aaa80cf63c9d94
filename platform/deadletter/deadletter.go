// Package deadletter keeps the messages that could not be handled until an
// operator has decided about them.
//
// An Archiver moves them from the dead-letter queues, where they would expire
// after a day, into the database. Operators look at them in groups, send them
// again with a Replayer, edit, discard and export them. A dead letter is
// resolved by the transaction that gives its message the effect, and by
// nothing else: sending it again is not success.
//
// It promises that no answer names a reporter or a voter: whatever a
// message holds, such fields are masked and the sealed recipient stays sealed.
package deadletter

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// Stale is the kind of a change to a note that is at another version.
const Stale fault.Kind = "stale"

// State is the state of a dead letter.
type State string

// The states of a dead letter:
//
//	archived ──► Open ──(taken by a replay)──► Replaying ──(its message has its effect)──► Resolved
//	              │ ▲                              │
//	              │ └──────(it fails again)────────┘
//	              │ └──(an operator restores it)──┐
//	              └──(an operator gives it up, or edits it: the edited one is new)──► Discarded
const (
	Open      State = "open"
	Replaying State = "replaying"
	Resolved  State = "resolved"
	Discarded State = "discarded"
)

// Failures that a client may see.
var (
	ErrNotFound error = fault.New(fault.NotFound, "no such dead letter")
	ErrNoReplay error = fault.New(fault.NotFound, "no such replay")
	ErrNotOpen  error = fault.New(fault.Conflict, "the dead letter is not open")
	ErrNothing  error = fault.New(fault.Conflict, "no open dead letter matches")
	// ErrNotDiscarded is the refusal to restore anything but what can be replayed safely.
	ErrNotDiscarded error = fault.New(fault.Conflict, "only a dead letter that was discarded in the last 29 days, and not by an edit, can be restored")
	ErrOpenAgain    error = fault.New(fault.Conflict, "the message has failed again; its newer dead letter is open")

	ErrNoGroup error = fault.New(fault.NotFound, "no dead letter failed there for this reason")
	ErrStale   error = fault.New(Stale, "somebody else has changed the note; read it again")

	ErrEnded error = fault.New(fault.Conflict, "the replay has ended")
	// ErrTaking is the refusal of a replay while another has not taken all of its dead
	// letters: which are left for this one is not known yet.
	ErrTaking error = fault.New(fault.Conflict, "another replay is still taking its dead letters; try again once it has, or cancel it")
)

// Properties are the AMQP properties that a replay gives back.
type Properties struct {
	ContentType string    `json:"content_type,omitempty"`
	AppID       string    `json:"app_id,omitempty"`
	Timestamp   time.Time `json:"timestamp,omitzero"`
}

// Publishing returns a persistent message with these properties.
func (p Properties) Publishing(id, kind string, body []byte, headers amqp.Table) amqp.Publishing {
	return amqp.Publishing{
		MessageId: id, Type: kind, Body: body, Headers: headers, DeliveryMode: amqp.Persistent,
		ContentType: p.ContentType, AppId: p.AppID, Timestamp: p.Timestamp,
	}
}

// A Letter is a dead letter as it comes to the archive.
type Letter struct {
	Queue         string
	MessageID     string
	Type          string
	Body          []byte
	Properties    Properties
	Headers       json.RawMessage
	Class         string
	Error         string
	Group         string // Error without what differs from message to message
	Retries       int
	RetryReason   string
	FirstFailedAt time.Time
	FailedAt      time.Time
	Replay        *uuid.UUID // the replay that had sent it
}

// An Entry is a dead letter in the archive, as operators see it.
type Entry struct {
	ID            int64
	Queue         string
	MessageID     string
	Type          string
	Class         string
	Error         string
	Group         string
	Deaths        int
	FirstFailedAt time.Time
	FailedAt      time.Time
	ArchivedAt    time.Time
	State         State
	ClosedAt      *time.Time
	CloseReason   string
	ParentID      *int64
	ReplayID      *uuid.UUID
	Properties    Properties
	Headers       json.RawMessage
	Body          []byte
	Note          *Note // on its group
}

// An Attempt is one time that a dead letter came to the archive.
type Attempt struct {
	FailedAt    time.Time
	Retries     int
	RetryReason string
	Class       string
	Error       string
	ReplayID    *uuid.UUID
}

// A Group is what failed for the same reason.
type Group struct {
	Queue  string
	Class  string
	Group  string
	Open   int
	Oldest time.Time
	Newest time.Time
	Sample int64
	Note   *Note
}

// A Stat counts the dead letters of a queue.
type Stat struct {
	Queue     string
	Open      int
	Replaying int
	Resolved  int
	Discarded int
	OldestAt  *time.Time
}

// A Selection picks dead letters. Empty fields pick all. Replays and the audit
// log keep it as JSON.
type Selection struct {
	IDs       []int64 `json:"ids,omitempty"`
	Queue     string  `json:"queue,omitempty"`
	Class     string  `json:"error_class,omitempty"`
	Group     string  `json:"error_group,omitempty"`
	Type      string  `json:"type,omitempty"`
	State     State   `json:"state,omitempty"`
	MessageID string  `json:"message_id,omitempty"`
	Replay    string  `json:"replay_id,omitempty"`

	// Text is part of an error, or all of a number, message id, report id or trace id.
	// Otherwise no content of messages is searched: people who are masked in them
	// must not be found by it.
	Text string `json:"text,omitempty"`
	// From and To bound when it failed, To not included; the zero times bound
	// nothing.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
}
