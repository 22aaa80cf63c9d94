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

// A Declarer makes exchanges, queues and bindings, all on one channel: one of its
// own for each would be three questions to the broker instead of one. It is not
// for concurrent use.
type Declarer struct {
	conn *amqp.Connection
	ch   *amqp.Channel // nil until it is needed, and after a refusal
}

// NewDeclarer returns a Declarer on conn. Its caller closes it.
func NewDeclarer(conn *amqp.Connection) *Declarer { return &Declarer{conn: conn} }

// Close closes the channel, and not the connection.
func (d *Declarer) Close() {
	if d.ch != nil {
		_ = Ask(d.conn, d.ch.Close) // closed already if the broker refused something
		d.ch = nil
	}
}

// Exchange makes sure that the durable exchange name of the given kind ("topic",
// "fanout" …) exists. One with other properties is a MismatchError.
func (d *Declarer) Exchange(name, kind string) error {
	return d.declare("exchange", name,
		func(ch *amqp.Channel) error {
			return ch.ExchangeDeclare(name, kind, true, false, false, false, nil)
		},
		func(ch *amqp.Channel) error {
			return ch.ExchangeDeclarePassive(name, kind, true, false, false, false, nil)
		})
}

// Queue makes sure that the durable queue name exists with args. One with other
// properties is a MismatchError.
func (d *Declarer) Queue(name string, args amqp.Table) error {
	return d.declare("queue", name,
		func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare(name, true, false, false, false, args)
			return err
		},
		func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclarePassive(name, true, false, false, false, args)
			return err
		})
}

// HasExchange reports whether the durable exchange name of the given kind exists.
func (d *Declarer) HasExchange(name, kind string) (bool, error) {
	return d.has("exchange", name, func(ch *amqp.Channel) error {
		return ch.ExchangeDeclarePassive(name, kind, true, false, false, false, nil)
	})
}

// HasQueue reports whether the queue name exists, whatever its properties.
func (d *Declarer) HasQueue(name string) (bool, error) {
	return d.has("queue", name, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		return err
	})
}

// Bind routes messages published to exchange under key into queue.
func (d *Declarer) Bind(queue, key, exchange string) error {
	err := d.ask(func(ch *amqp.Channel) error {
		return ch.QueueBind(queue, key, exchange, false, nil)
	})
	if err != nil {
		return fmt.Errorf("bind queue %q to %q by %q: %w", queue, exchange, key, err)
	}
	return nil
}

// Unbind ends what Bind began, if it did.
func (d *Declarer) Unbind(queue, key, exchange string) error {
	err := d.ask(func(ch *amqp.Channel) error {
		return ch.QueueUnbind(queue, key, exchange, nil)
	})
	if err != nil {
		return fmt.Errorf("unbind queue %q from %q by %q: %w", queue, exchange, key, err)
	}
	return nil
}

// declare creates a thing that is missing. Where the operator made it and gave us no
// right to configure it, it is enough that it exists.
func (d *Declarer) declare(kind, name string, create, lookUp func(*amqp.Channel) error) error {
	err := d.ask(create)
	if isCode(err, amqp.AccessRefused) && d.ask(lookUp) == nil {
		return nil
	}
	if isCode(err, amqp.PreconditionFailed) {
		return &MismatchError{Kind: kind, Name: name, Reason: err.Error()}
	}
	if err != nil {
		return fmt.Errorf("declare %s %q: %w", kind, name, err)
	}
	return nil
}

func (d *Declarer) has(kind, name string, lookUp func(*amqp.Channel) error) (bool, error) {
	err := d.ask(lookUp)
	switch {
	case err == nil, isCode(err, amqp.ResourceLocked): // another connection's own
		return true, nil
	case isCode(err, amqp.NotFound):
		return false, nil
	}
	return false, fmt.Errorf("look up %s %q: %w", kind, name, err)
}

// ask sends a request to the broker, which closes the channel on which it refuses
// something.
func (d *Declarer) ask(question func(*amqp.Channel) error) error {
	return Ask(d.conn, func() error {
		if d.ch == nil {
			ch, err := d.conn.Channel()
			if err != nil {
				return fmt.Errorf("open channel: %w", err)
			}
			d.ch = ch
		}
		err := question(d.ch)
		if err != nil {
			d.Close()
		}
		return err
	})
}

// DeclareExchange is Declarer.Exchange for a single one.
func DeclareExchange(conn *amqp.Connection, name, kind string) error {
	d := NewDeclarer(conn)
	defer d.Close()
	return d.Exchange(name, kind)
}

// DeclareQueue is Declarer.Queue for a single one.
func DeclareQueue(conn *amqp.Connection, name string, args amqp.Table) error {
	d := NewDeclarer(conn)
	defer d.Close()
	return d.Queue(name, args)
}

// BindQueue is Declarer.Bind for a single one.
func BindQueue(conn *amqp.Connection, queue, key, exchange string) error {
	d := NewDeclarer(conn)
	defer d.Close()
	return d.Bind(queue, key, exchange)
}

func isCode(err error, code int) bool {
	refusal, ok := errors.AsType[*amqp.Error](err)
	return ok && refusal.Code == code
}
