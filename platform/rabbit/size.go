package rabbit

import (
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// MaxHeaders is what the headers of a message may take, encoded. The broker
	// closes the whole connection on a header frame above its frame size, after
	// publish returned success; and consumers add headers of their own.
	MaxHeaders = 16 << 10
	// MaxBody is what the body of a message may take. The broker would take
	// more and then close the channel of who exceeds its own limit.
	MaxBody = 1 << 20
	// maxShort is AMQP's limit of a short string.
	maxShort = 255
)

// ErrUnpublishable says that the message itself cannot be published: it is
// too large or cannot be encoded. It did not reach the socket, and trying
// again does not help.
var ErrUnpublishable = errors.New("unpublishable message")

// CheckSize returns an ErrUnpublishable that names the fault unless msg can be sent.
func CheckSize(msg amqp.Publishing) error {
	if len(msg.Body) > MaxBody {
		return fmt.Errorf("%w: body of %d bytes, at most %d", ErrUnpublishable, len(msg.Body), MaxBody)
	}
	if err := msg.Headers.Validate(); err != nil {
		return fmt.Errorf("%w: headers: %w", ErrUnpublishable, err)
	}
	if size := encodedSize(msg.Headers); size > MaxHeaders {
		return fmt.Errorf("%w: headers of %d bytes, at most %d", ErrUnpublishable, size, MaxHeaders)
	}
	return checkShort(
		short{"content_type", msg.ContentType}, short{"content_encoding", msg.ContentEncoding},
		short{"correlation_id", msg.CorrelationId}, short{"reply_to", msg.ReplyTo},
		short{"expiration", msg.Expiration}, short{"message_id", msg.MessageId},
		short{"type", msg.Type}, short{"user_id", msg.UserId}, short{"app_id", msg.AppId},
	)
}

// A short is a property that AMQP carries as a short string.
type short struct{ name, value string }

func checkShort(properties ...short) error {
	for _, p := range properties {
		if len(p.value) > maxShort {
			return fmt.Errorf("%w: %s of %d bytes, at most %d", ErrUnpublishable, p.name, len(p.value), maxShort)
		}
	}
	return nil
}

// encodedSize is what a header value takes on the wire, type byte and length
// included.
func encodedSize(value any) int {
	const typeAndLength = 5
	switch v := value.(type) {
	case amqp.Table:
		size := typeAndLength
		for key, item := range v {
			size += 1 + len(key) + encodedSize(item)
		}
		return size
	case []any:
		size := typeAndLength
		for _, item := range v {
			size += encodedSize(item)
		}
		return size
	case string:
		return typeAndLength + len(v)
	case []byte:
		return typeAndLength + len(v)
	default:
		return 1 + 8 // the largest of the fixed types
	}
}
