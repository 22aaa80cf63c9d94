package rabbit

import (
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A MismatchError says that an exchange or a queue exists at the broker with
// other properties than ours. Properties cannot be changed: only deleting it,
// by hand and after emptying it, makes room for the right one.
type MismatchError struct {
	Kind   string // "exchange" or "queue"
	Name   string
	Reason string // the broker's words
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s %q exists with other properties than this version needs, and was left as it is (%s): "+
		"drain and delete it by hand, or use another TOPOLOGY_PREFIX", e.Kind, e.Name, e.Reason)
}

// DeclareExchange makes sure that the durable exchange name of the given kind
// ("topic", "fanout" …) exists. One with other properties is a MismatchError.
func DeclareExchange(conn *amqp.Connection, name, kind string) error {
	return declare(conn, "exchange", name,
		func(ch *amqp.Channel) error {
			return ch.ExchangeDeclarePassive(name, kind, true, false, false, false, nil)
		},
		func(ch *amqp.Channel) error {
			return ch.ExchangeDeclare(name, kind, true, false, false, false, nil)
		})
}

// HasExchange reports whether the durable exchange name of the given kind
// exists.
func HasExchange(conn *amqp.Connection, name, kind string) (bool, error) {
	err := onChannel(conn, func(ch *amqp.Channel) error {
		return ch.ExchangeDeclarePassive(name, kind, true, false, false, false, nil)
	})
	if isCode(err, amqp.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up exchange %q: %w", name, err)
	}
	return true, nil
}

// DeclareQueue makes sure that the durable queue name exists with args. One with
// other properties is a MismatchError.
func DeclareQueue(conn *amqp.Connection, name string, args amqp.Table) error {
	return declare(conn, "queue", name,
		func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclarePassive(name, true, false, false, false, args)
			return err
		},
		func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare(name, true, false, false, false, args)
			return err
		})
}

// HasQueue reports whether the queue name exists, whatever its properties.
func HasQueue(conn *amqp.Connection, name string) (bool, error) {
	err := onChannel(conn, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		return err
	})
	if isCode(err, amqp.NotFound) {
		return false, nil
	}
	if err != nil && !isCode(err, amqp.ResourceLocked) { // another connection's own
		return false, fmt.Errorf("look up queue %q: %w", name, err)
	}
	return true, nil
}

// BindQueue routes what is published to exchange under key into queue.
func BindQueue(conn *amqp.Connection, queue, key, exchange string) error {
	err := onChannel(conn, func(ch *amqp.Channel) error {
		return ch.QueueBind(queue, key, exchange, false, nil)
	})
	if err != nil {
		return fmt.Errorf("bind queue %q to %q by %q: %w", queue, exchange, key, err)
	}
	return nil
}

// UnbindQueue ends what BindQueue began, if it did.
func UnbindQueue(conn *amqp.Connection, queue, key, exchange string) error {
	err := onChannel(conn, func(ch *amqp.Channel) error {
		return ch.QueueUnbind(queue, key, exchange, nil)
	})
	if err != nil {
		return fmt.Errorf("unbind queue %q from %q by %q: %w", queue, exchange, key, err)
	}
	return nil
}

// declare looks first and creates then. Where the operator made the thing and
// gave us no right to configure it, it is enough that it exists.
func declare(conn *amqp.Connection, kind, name string, lookUp, create func(*amqp.Channel) error) error {
	err := onChannel(conn, lookUp)
	exists := err == nil
	if !exists && !isCode(err, amqp.NotFound) {
		return fmt.Errorf("look up %s %q: %w", kind, name, err)
	}
	err = onChannel(conn, create)
	switch {
	case err == nil, exists && isCode(err, amqp.AccessRefused):
		return nil
	case isCode(err, amqp.PreconditionFailed):
		return &MismatchError{Kind: kind, Name: name, Reason: err.Error()}
	default:
		return fmt.Errorf("declare %s %q: %w", kind, name, err)
	}
}

// onChannel gives do a channel of its own: the broker closes the channel on
// which it refuses something.
func onChannel(conn *amqp.Connection, do func(*amqp.Channel) error) error {
	return Ask(conn, func() error {
		ch, err := conn.Channel()
		if err != nil {
			return fmt.Errorf("open channel: %w", err)
		}
		defer ch.Close() // closed already if do failed
		return do(ch)
	})
}

func isCode(err error, code int) bool {
	refusal, ok := errors.AsType[*amqp.Error](err)
	return ok && refusal.Code == code
}
