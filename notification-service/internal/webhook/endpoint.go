// Package webhook sends events to other systems of the city, over HTTP and
// signed as Standard Webhooks asks (github.com/standard-webhooks). No person is
// in its payloads: they are types of their own, and a message from the
// broker is never passed on.
package webhook

import (
	"time"

	"github.com/google/uuid"
)

// Channel is the channel of the ledger whose deliveries are webhooks. Lane and
// target of each are the id of its endpoint.
const Channel = "webhook"

// TestType is the type of the event that an operator has sent to try an
// endpoint out. It passes every filter.
const TestType = "webhook.test"

// A State says whether an endpoint is sent anything.
type State string

// The states of an endpoint:
//
//	            operator, 410 Gone, failing for DisableAfter
//	Enabled ──────────────────────────────────────────────────────────► Disabled
//	   ▲                                                                   │
//	   └───────── operator: send held deliveries, or cancel ◄──────────────┘
//
// The events of a disabled endpoint are held for it. At half of DisableAfter
// operators are warned.
const (
	Enabled  State = "enabled"
	Disabled State = "disabled"
)

// A Reason says why an endpoint is disabled.
type Reason string

// The reasons. An enabled endpoint has none.
const (
	NoReason   Reason = ""
	ByOperator Reason = "operator"
	Failing    Reason = "failing" // nothing but failures for too long
	Gone       Reason = "gone"    // it answered 410
)

// An Order says which deliveries of an endpoint wait for others.
type Order string

// The orders.
const (
	// OrderReport lets an event wait, for at most an hour, while an earlier one
	// of its report is not delivered.
	OrderReport Order = "report"
	// OrderNone sends deliveries as they are due.
	OrderNone Order = "none"
)

// Limits of the deliveries held for a disabled endpoint. Beyond either, the oldest is
// cancelled and counted in the endpoint's HeldDropped.
const (
	MaxHeld    = 100_000
	MaxHeldFor = 7 * 24 * time.Hour
)

// Lifetime is for how long after it was made, or sent again by an operator, a
// delivery is tried at the most.
const Lifetime = 7 * 24 * time.Hour

// An Area is the part of the earth between two meridians and two parallels,
// in degrees: west, south, east, north, as GeoJSON orders a bounding box.
type Area [4]float64

// PrivateScope is the scope of endpoints that are also sent what is about reports that
// only the city sees.
const PrivateScope = "private"

// A Filter picks events. Empty fields pick all.
type Filter struct {
	Types      []string
	Categories []int32
	Area       *Area
}

// An Endpoint is a URL that events are sent to.
type Endpoint struct {
	ID          uuid.UUID
	URL         string
	Description string
	Filter      Filter
	Scopes      []string // what it is sent besides what everybody may see
	State       State
	StateSince  time.Time
	StateReason Reason
	DisableAt   *time.Time // while it has failed for half of the time or longer: the next failure from then on disables it
	Secrets     Secrets
	Order       Order
	InFlight    int   // requests at once, over all workers: 1 to 16
	HeldDropped int64 // events beyond the limit of held ones
	Version     int64 // counts the changes that operators made
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Secrets sign requests to an endpoint. Each is sealed by the keyring with the
// endpoint's id; open, it has the form "whsec_<base64 of 32 bytes>".
type Secrets struct {
	Sealed        string
	Since         time.Time
	Previous      *string    // signs beside the other, nil without a rotation
	PreviousUntil *time.Time // when Previous signs no more
}
