// Package open311 sends reports to the systems of departments by Open311 GeoReport v2, and
// brings numbers and statuses back, as mySociety's open311-adapter and other cities speak it.
// It reads reports, and writes what came back, with the key of a connection of the
// department: report-service decides what the department may see and do.
//
// It promises that no report is sent twice by itself. That a report is being sent is written
// down before anything leaves; what may have arrived is searched for, and where the target
// cannot be searched an operator decides. Nothing of a person is sent.
package open311

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
)

// Channel is the channel of the ledger whose deliveries are requests of Open311. Lane and
// target of each are the id of its Target, and its message id is that of the report.
const Channel = "open311"

const (
	sealedSize  = 128 // what keys are padded to before they are sealed
	connections = "ccx_"
)

// A Target is the system of a department.
type Target struct {
	ID            uuid.UUID
	Name          string
	URL           string // without a slash at its end
	Jurisdiction  string
	Key           string           // sealed in a store
	UpdateKey     string           // with which the target takes updates, likewise; empty if it takes none
	ConnectionKey string           // of report-service, likewise
	Services      map[int32]string // by category; reports of others are not sent
	Statuses      map[string]string
	Repeats       bool // it answers the same form with the same number
	Enabled       bool
	CreatedAt     time.Time
	PolledAt      *time.Time
	ReadTo        time.Time
	FetchedTo     time.Time
	Problem       string
	ProblemSince  *time.Time
	Now           time.Time // by the clock of the store
}

// agreed are the statuses of reports that agree with those of updates.
var agreed = map[string][]string{
	"open": {"pending", "in_progress"}, "confirmed": {"pending", "in_progress"},
	"in_progress": {"in_progress"}, "action_scheduled": {"in_progress"},
	"fixed": {"resolved"}, "closed": {"resolved", "rejected"},
	"no_further_action": {"rejected"}, "not_councils_responsibility": {"rejected"}, "duplicate": {"rejected"},
}

// extended are the statuses of updates by those of reports.
var extended = map[string]string{"pending": "open", "in_progress": "in_progress", "resolved": "fixed", "rejected": "no_further_action"}

// wordsOnly is the status of an update from which a report gets the words alone.
const wordsOnly = "internal_referral"

// status returns the status of Open311 that a word of the target means, and the statuses
// of reports that agree with it: none with a word that is in neither table, nil with one
// that says nothing of the status.
func (t *Target) status(word string) (status string, with []string) {
	word = cmp.Or(plain(word), wordsOnly)
	if means, ok := t.Statuses[word]; ok {
		word = means
	}
	if with, ok := agreed[word]; ok || word == wordsOnly {
		return word, with
	}
	return wordsOnly, []string{}
}

// plain returns a status as the tables have it.
func plain(word string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(word)), " ", "_")
}

// Check tidies t and returns what is wrong with it beyond what the OpenAPI document says. An
// address is checked only if it differs from known.
func (t *Target) Check(rules webhook.Rules, known string) error {
	t.Name, t.URL = strings.TrimSpace(t.Name), strings.TrimRight(webhook.CleanURL(t.URL), "/")
	if t.Name == "" {
		return fault.NewInvalid("/name", "must not be blank")
	}
	if t.URL != known {
		if err := rules.CheckURL(t.URL); err != nil {
			return fault.NewInvalid("/url", err.Error())
		}
	}
	if strings.ContainsAny(t.URL, "?#") {
		return fault.NewInvalid("/url", "must be the address below which requests.xml is, without a query")
	}
	if !strings.HasPrefix(t.ConnectionKey, connections) {
		return fault.NewInvalid("/connection_key", "must be the key of a connection of the department, which begins with "+connections)
	}
	statuses := make(map[string]string, len(t.Statuses))
	for word, means := range t.Statuses {
		statuses[plain(word)] = means
	}
	t.Statuses = statuses
	return nil
}

// keys are those of t, which are hidden in its row.
func (t *Target) keys() []*string { return []*string{&t.Key, &t.UpdateKey, &t.ConnectionKey} }

// Seal hides the keys of t for its row.
func (t *Target) Seal(ring *event.Keyring) {
	for _, key := range t.keys() {
		*key = ring.SealPadded(t.ID, *key, sealedSize)
	}
}

// Open is the reverse of Seal.
func (t *Target) Open(ring *event.Keyring) (err error) {
	for _, key := range t.keys() {
		if *key, err = ring.Open(t.ID, *key); err != nil {
			return fmt.Errorf("open a key of the target: %w", err)
		}
	}
	return nil
}

// A Request is what is known of a report in a target.
type Request struct {
	SentAt        *time.Time // when it was last about to be sent
	Age           time.Duration
	Hash          []byte // of the form that was sent
	Token, Number string
	Unknown       bool
}

// ErrNoTarget refuses what is about a target, or a request, that does not exist.
var ErrNoTarget = fault.New(fault.NotFound, "there is no such target")

// ErrNotUndecided refuses to decide what needs no decision.
var ErrNotUndecided = fault.New(fault.Conflict, "the report has a number, or is still being sent")

// A Kind says how the two sides differ about a report.
type Kind string

// The kinds.
const (
	NoNumber      Kind = "no_number"      // it should have one
	OtherStatus   Kind = "other_status"   // for an hour or longer
	MissingNumber Kind = "missing_number" // the target does not know it
)

// A Difference is a report about which the two sides differ.
type Difference struct {
	Target      uuid.UUID
	Report      uuid.UUID
	Kind        Kind
	Since       time.Time
	Number      string
	Status      string // ours
	TheirStatus string
	Undecided   bool   // an operator may say that it arrived, or send it again
	Unknown     bool   // the target may have it
	Class       string // of the last attempt to send it
	Error       string
}
