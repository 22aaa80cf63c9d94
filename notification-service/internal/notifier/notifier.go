// Package notifier is the effect of the group "notifications": messages become
// notifications in the streams of those whom they concern.
package notifier

import (
	"context"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// An Announcer passes committed notifications to the live streams. It must not
// block, and may lose some of them: readers find gaps by themselves.
type Announcer interface {
	Announce(batch notification.Batch)
}

// A Notifier writes notifications, and announces them once they are committed.
type Notifier struct {
	effects   *postgres.Effects
	announcer Announcer
	keyring   *event.Keyring // opens recipients
}

// groupName is also that of the metrics and policies.
const groupName = "notifications"

// New returns a Notifier on effects.
func New(effects *postgres.Effects, announcer Announcer, keyring *event.Keyring) *Notifier {
	return &Notifier{effects, announcer, keyring}
}

// Group is the group of consumers whose effect n is. It reads the queues of the
// contract.
func (n *Notifier) Group() consumer.Group {
	return consumer.Group{Name: groupName, Queues: topology.ContractQueues(), Effect: consumer.Typed(n)}
}

// Queues are those of the group, for a process that does not read them.
func Queues() topology.Group {
	return topology.Group{Name: groupName, Queues: topology.ContractQueues(), Elsewhere: true}
}

// Read returns the effect of m. It refuses a message whose recipient is missing or
// does not open.
func (n *Notifier) Read(m consumer.Message) (*notification.Effect, error) {
	recipient, err := recipient(n.keyring, m.Event.About().ReportID, m.Headers)
	if err != nil {
		return nil, err
	}
	effect := notification.Of(m.Event, recipient)
	effect.Feed.TraceID = event.TraceID(m.Headers[event.TraceHeader])
	return effect, nil
}

// recipient opens the sealed recipient, which report-service adds to every
// message. A name in the body is not trusted: everyone with rights at the broker
// can write a body.
func recipient(keys *event.Keyring, report uuid.UUID, headers amqp.Table) (string, error) {
	var sealed string
	switch header := headers[event.RecipientHeader].(type) {
	case nil:
		return "", failure.Refuse("recipient header is missing")
	case string:
		sealed = header
	case []byte:
		sealed = string(header)
	default:
		return "", failure.Refuse("recipient header is not a string")
	}
	recipient, err := keys.Open(report, sealed)
	if err != nil {
		return "", &failure.Error{Class: failure.Permanent, Text: "recipient does not open", Err: err}
	}
	return recipient, nil
}

// Apply writes the notifications of the batch in one statement, and announces
// them.
func (n *Notifier) Apply(ctx context.Context, queue string, batch []postgres.Message) (seen int, err error) {
	applied, err := n.effects.Apply(ctx, queue, batch)
	if err != nil {
		return 0, err
	}
	n.announce(applied.Batch)
	return applied.Seen, nil
}

// ApplyEach writes the notifications of a batch that Apply has failed for, in a statement
// for each message, announces what it has written, and returns of which messages.
func (n *Notifier) ApplyEach(ctx context.Context, queue string, batch []postgres.Message, failed func(i int, err error)) (applied []bool, err error) {
	applied, effects, err := n.effects.ApplyEach(ctx, queue, batch, failed)
	if err != nil {
		return nil, err
	}
	n.announce(effects)
	return applied, nil
}

func (n *Notifier) announce(batch notification.Batch) {
	if len(batch.Feed) > 0 || len(batch.Notifications) > 0 || len(batch.Moderated) > 0 {
		n.announcer.Announce(batch)
	}
}
