package consumer

import (
	"context"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/notification-service/internal/failure"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/event"
)

// A Message is a delivery that was understood.
type Message struct {
	ID     string
	Effect notification.Effect
}

// Applied is what a batch brought about.
type Applied struct {
	Batch notification.Batch
	Seen  int // messages whose effect stood already
}

// A Store keeps the effects. Its errors are sorted by failure.Classify.
type Store interface {
	// Apply gives each message its effect in one transaction, unless it had
	// it before. The messages have distinct ids. The transaction also closes
	// the dead letters that the messages were, and the notes of Start.
	Apply(ctx context.Context, queue string, batch []Message) (Applied, error)
	// Start notes that a message which was in hand when a process died is
	// started again, and returns how often that happened, this time included.
	Start(ctx context.Context, queue, messageID string) (int, error)
	// Finish forgets the notes of Start: the message came to an end.
	Finish(ctx context.Context, queue, messageID string) error
	// Ping tells whether the database answers at all.
	Ping(ctx context.Context) error
}

// An Announcer tells the live streams what was committed. It must not block
// for long, and may lose what it is told: readers find gaps by themselves.
type Announcer interface {
	Announce(ctx context.Context, batch notification.Batch)
}

// Limits of what the contract allows, checked here because anyone with
// rights at the broker can publish.
const (
	maxIDBytes   = 255
	maxBodyBytes = 256 << 10
)

// A reader understands deliveries.
type reader struct {
	keyring *event.Keyring
}

// read returns the message of d, which came from key's queue. Its errors are
// permanent: the same bytes will never be understood.
func (r reader) read(key event.Key, d *amqp.Delivery) (Message, error) {
	switch {
	case d.MessageId == "":
		return Message{}, refuse("message_id is missing")
	case len(d.MessageId) > maxIDBytes:
		return Message{}, refuse("message_id is too long")
	case len(d.Body) > maxBodyBytes:
		return Message{}, refuse("body is too large")
	case d.Type != "" && d.Type != string(key):
		return Message{}, refuse("message type does not belong in this queue")
	}
	m, err := event.Decode(key, d.Body)
	if err != nil {
		return Message{}, failure.Undecodable(err)
	}
	recipient, err := r.recipient(m, d.Headers)
	if err != nil {
		return Message{}, err
	}
	return Message{ID: d.MessageId, Effect: notification.Of(m, recipient)}, nil
}

// recipient opens the sealed recipient. Without one, the body of a public
// report names its reporter.
func (r reader) recipient(m event.Message, headers amqp.Table) (string, error) {
	switch sealed := headers[event.RecipientHeader].(type) {
	case nil:
		return m.About().ReporterID, nil
	case string:
		return r.open(m.About().ReportID, sealed)
	case []byte:
		return r.open(m.About().ReportID, string(sealed))
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
