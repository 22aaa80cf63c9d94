package consumer

import (
	"context"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
)

// A Message is a delivery that was understood.
type Message struct {
	ID     string
	Effect notification.Effect
}

// Applied is what a batch brought about.
type Applied struct {
	Batch notification.Batch
	Seen  int // messages that had their effect before
}

// A Store keeps the effects. failure.Classify sorts its errors.
type Store interface {
	// Apply gives each message its effect in one transaction, unless it had
	// it before. The messages have distinct ids. The transaction also closes
	// the dead letters that the messages were, and the notes of Start.
	Apply(ctx context.Context, queue string, batch []Message) (Applied, error)
	// Start notes that a message which was in hand when a process died is
	// started again, and returns how often that happened, this time included.
	Start(ctx context.Context, queue, messageID string) (int, error)
	// Finish deletes the notes of Start: the message came to an end.
	Finish(ctx context.Context, queue, messageID string) error
	// Ping returns nil if the database answers.
	Ping(ctx context.Context) error
}

// An Announcer passes what was committed to the live streams. It must not
// block, and may lose what it is given: readers find gaps by themselves.
type Announcer interface {
	Announce(batch notification.Batch)
}

// Limits of what the contract allows, checked here because anyone with
// rights at the broker can publish.
const (
	maxIDBytes   = 255
	maxBodyBytes = 256 << 10
)

// A reader understands the deliveries of key's queue.
type reader struct {
	key     event.Key
	keyring *event.Keyring
}

// read returns the message of d. Its errors are permanent: the same bytes will
// never be understood.
func (r reader) read(d *amqp.Delivery) (Message, error) {
	switch {
	case d.MessageId == "":
		return Message{}, refuse("message_id is missing")
	case len(d.MessageId) > maxIDBytes:
		return Message{}, refuse("message_id is too long")
	case len(d.Body) > maxBodyBytes:
		return Message{}, refuse("body is too large")
	case d.Type != "" && d.Type != string(r.key):
		return Message{}, refuse("message type does not belong in this queue")
	}
	m, err := event.Decode(r.key, d.Body)
	if err != nil {
		return Message{}, failure.Undecodable(err)
	}
	recipient, err := r.recipient(m, d.Headers)
	if err != nil {
		return Message{}, err
	}
	return Message{ID: d.MessageId, Effect: notification.Of(m, recipient)}, nil
}

// recipient opens the sealed recipient, which report-service adds to every
// message. Whoever is named in the body is not believed: everyone with rights at
// the broker can write a body.
func (r reader) recipient(m event.Message, headers amqp.Table) (string, error) {
	report := m.About().ReportID
	switch sealed := headers[event.RecipientHeader].(type) {
	case nil:
		return "", refuse("recipient header is missing")
	case string:
		return r.open(report, sealed)
	case []byte:
		return r.open(report, string(sealed))
	}
	return "", refuse("recipient header is not a string")
}

func (r reader) open(report uuid.UUID, sealed string) (string, error) {
	recipient, err := r.keyring.Open(report, sealed)
	if err != nil {
		return "", &failure.Error{Class: failure.Permanent, Text: "recipient does not open", Err: err}
	}
	return recipient, nil
}

func refuse(text string) error { return &failure.Error{Class: failure.Permanent, Text: text} }
