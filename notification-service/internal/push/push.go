// Package push shows residents on their devices what happened, while no page is
// open there: Web Push (RFC 8030), encrypted for the browser (RFC 8291) and
// signed (RFC 8292). It is a channel of the ledger.
//
// It promises:
//
//   - A device gets nothing until its owner asked for it there.
//   - A push says no more than a mail about the same event; for an anonymous report
//     it says that there is news, and only if its reporter chose so. The vendor of
//     the browser, whose service passes it on, cannot read it.
//   - A notification read on the page is not pushed. The text of a push is read when it
//     is sent.
//   - A push that is sent twice is shown once: the later one takes the place of
//     the other.
//   - It connects to no servers but the push services that the configuration names.
package push

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
)

// Channel is the channel of the ledger whose deliveries are pushes. The lane of
// each is the host of the device's push service, the target the id of a Device;
// kind and message id are those of a mail about the same notification.
const Channel = "push"

// Times and limits that no operator needs to change.
const (
	// ReadFirst is how long a notification has to be read on the page before it
	// is pushed.
	ReadFirst = 30 * time.Second
	// Lifetime is for how long a push is tried, and kept by the push service for a
	// device that is off: later it would not be news.
	Lifetime = 24 * time.Hour
	// MaxDevices is how many devices a reader has.
	MaxDevices = 20
	// UnusedFor is how long a device is kept that nothing was sent to.
	UnusedFor = 365 * 24 * time.Hour
)

// DefaultKinds are the kinds that a reader's devices get until the reader chooses
// others.
var DefaultKinds = []string{string(event.StatusUpdatedKey), string(event.AskedKey), string(event.RemindedKey)}

// A Device is a browser that asked for notifications.
type Device struct {
	ID         uuid.UUID
	Endpoint   string // sealed, see Keys
	Keys       string // sealed
	Lane       string
	Language   wording.Language
	Label      string // its name for its owner, such as "Firefox, Android"
	CreatedAt  time.Time
	LastUsedAt *time.Time // when the push service took something for it, to the hour
}

// A Draft is what a delivery is about at the moment of sending.
type Draft struct {
	Device Device
	Item   wording.Item
	Now    time.Time     // by the database
	Quiet  *ledger.Quiet // of the reader's contact, if there is one
	Zone   string        // likewise
}

// Reasons not to send a push that waits, beside those of package ledger.
var (
	// ErrNoDevice: the device is removed.
	ErrNoDevice = errors.New("the device has been removed")
	// errHost: its push service is not one of those that the configuration names.
	errHost = errors.New("the push service is no longer allowed")
)

// ErrTooManyDevices says that the reader has the maximum of devices.
var ErrTooManyDevices error = fault.New(fault.Conflict, fmt.Sprintf("you have %d devices already; remove one first", MaxDevices))
