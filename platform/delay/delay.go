// Package delay keeps messages that must not be handled before a time.
//
// A publisher may say in the header x-not-before until when a message waits. A
// consumer that gets it earlier parks it: the message becomes a row, and the
// delivery is acknowledged. A Releaser in each replica publishes due messages to
// their own queues, under the same ids. So nothing waits in the broker, where a
// message with a long wait would hold up others. Waiting messages can be listed,
// released early and cancelled, and outlive the broker.
//
// Each time is judged by the database's clock. A message is never released
// before it, unless an operator does so.
package delay

import (
	"encoding/json"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/fault"
)

// Limits of parked messages.
const (
	// slack is how far ahead a time may be and still be taken for now: parking
	// and releasing would take as long.
	slack = 250 * time.Millisecond
	// MaxAhead is how far ahead a time may be.
	MaxAhead = 366 * 24 * time.Hour
)

// Failures that a client may see.
var (
	ErrNotFound error = fault.New(fault.NotFound, "no such message waits")
	ErrHandled  error = fault.New(fault.Conflict, "the message has had its effect")
)

// A Config is what an operator may set by environment.
type Config struct {
	Max         int `env:"DELAY_MAX" envDefault:"10000000"`
	ReleaseRate int `envDefault:"5000"` // per second and replica
}

// Validate returns everything that is wrong with c.
func (c Config) Validate() []config.Fault {
	var faults config.Faults
	faults.Check(c.Max >= 0, "DELAY_MAX", "0 or more messages, such as 10000000")
	return faults
}

// NotBefore returns the time that the headers of a message name, or the zero
// time if there is none. Its error is permanent.
func NotBefore(headers amqp.Table) (time.Time, error) {
	var milliseconds int64
	switch n := headers[event.NotBeforeHeader].(type) {
	case nil:
		return time.Time{}, nil
	case int32:
		milliseconds = int64(n)
	case int64:
		milliseconds = n
	case string:
		var err error
		if milliseconds, err = strconv.ParseInt(n, 10, 64); err != nil {
			milliseconds = -1
		}
	default:
		milliseconds = -1
	}
	if milliseconds < 0 || milliseconds > maxMilliseconds {
		return time.Time{}, failure.Refuse(event.NotBeforeHeader + " is not a time: must be Unix milliseconds")
	}
	return time.UnixMilli(milliseconds), nil
}

// maxMilliseconds is the last day of the year 9999, which PostgreSQL and JSON
// have words for.
const maxMilliseconds = 253_402_300_799_000

// A Message is one that is to wait.
type Message struct {
	ID         string
	Type       string
	DueAt      time.Time
	Body       []byte
	Properties deadletter.Properties
	Headers    json.RawMessage
}

// NewMessage returns the delivery d as it is to wait until due.
func NewMessage(d *amqp.Delivery, due time.Time) Message {
	return Message{
		ID: d.MessageId, Type: d.Type, DueAt: due, Body: d.Body,
		Properties: deadletter.PropertiesOf(d), Headers: deadletter.EncodeHeaders(failure.Strip(d.Headers)),
	}
}

// An Outcome is what became of a message that was to be parked.
type Outcome string

// The outcomes of parking.
const (
	Due    Outcome = "due"    // its time has come: it is to be handled
	Parked Outcome = "parked" // it waits, or has had its effect before
	Far    Outcome = "far"    // its time is more than MaxAhead ahead
	Full   Outcome = "full"   // too many wait
)

// An Entry is a message that waits, as operators see it.
type Entry struct {
	Queue      string
	MessageID  string
	Type       string
	DueAt      time.Time
	ParkedAt   time.Time
	Properties deadletter.Properties
	Headers    json.RawMessage
	Body       []byte
}

// A Position is where an Entry stands in a list.
type Position struct {
	DueAt     time.Time
	Queue     string
	MessageID string
}

// A Selection picks entries. Empty fields pick all.
type Selection struct {
	Queue    string
	From, To time.Time // of the time that they wait for; To is excluded
}
