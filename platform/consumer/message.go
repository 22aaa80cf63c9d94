package consumer

import (
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/delay"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
)

// Limits of what the contract allows, checked here because anyone with
// rights at the broker can publish.
const (
	maxIDBytes   = 255
	maxBodyBytes = 256 << 10
)

// A reader understands the deliveries of a queue that gets messages of keys.
type reader struct {
	keys   []event.Key
	effect Effect
}

// read returns the job of d.
func (r reader) read(d *amqp.Delivery) *job {
	j := &job{d: d}
	if j.notBefore, j.err = delay.NotBefore(d.Headers); j.err == nil {
		j.msg, j.err = r.message(d)
	}
	return j
}

// message returns the message of d. Its errors are permanent: the same bytes
// will never be understood.
func (r reader) message(d *amqp.Delivery) (Message, error) {
	key := event.Key(d.Type)
	if key == "" { // of another program; who reads one kind only knows it
		key = r.keys[0]
	}
	switch {
	case d.MessageId == "":
		return Message{}, failure.Refuse("message_id is missing")
	case len(d.MessageId) > maxIDBytes:
		return Message{}, failure.Refuse("message_id is too long")
	case len(d.Body) > maxBodyBytes:
		return Message{}, failure.Refuse("body is too large")
	case d.Type == "" && len(r.keys) > 1:
		return Message{}, failure.Refuse("message type is missing")
	case !slices.Contains(r.keys, key):
		return Message{}, failure.Refuse("message type does not belong in this queue")
	}
	e, err := event.Decode(key, d.Body)
	if err != nil {
		return Message{}, failure.Undecodable(err)
	}
	m := Message{ID: d.MessageId, Event: e, Body: d.Body, Headers: d.Headers}
	m.Value, err = r.effect.Read(m)
	return m, err
}
