package topology

import (
	"errors"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/rabbit"
)

// A gate keeps messages out of the exchange while the queues that share them are
// made. They cannot all be bound at once, and what one of them took before the
// others were bound would be gone for those.
//
// It is a queue that is full with no message in it. While it is bound, the broker
// refuses (nacks) every message that is routed to it. The publisher sends the message
// again, and the queues that did get it recognise it by its id.
//
// The queue is never deleted: the broker confirms a message that a queue takes
// with it. So the gate of a process that died stays closed until another one has
// declared everything.
type gate struct {
	queue, exchange string
	keys            []string // of the messages that several queues get
	first           []string // of these queues, those that are bound before the others
}

func newGate(queue, exchange string, routes []bindingSpec) gate {
	g := gate{queue: queue, exchange: exchange}
	first := make(map[string]string)
	for _, r := range routes {
		if queue, shared := first[r.key]; shared {
			g.keys = append(g.keys, r.key)
			if !slices.Contains(g.first, queue) {
				g.first = append(g.first, queue)
			}
		} else {
			first[r.key] = r.queue
		}
	}
	return g
}

// close closes the gate if the broker is new. Where the first queues exist, they
// get messages already: new queues beside them get messages as soon as they are bound.
func (g gate) close(d *rabbit.Declarer) error {
	for _, queue := range g.first {
		exists, err := d.HasQueue(queue)
		if err != nil {
			return err
		}
		if !exists {
			return g.bind(d)
		}
	}
	return nil
}

func (g gate) bind(d *rabbit.Declarer) error {
	if err := d.Queue(g.queue, amqp.Table{
		"x-queue-type": "classic", "x-max-length": 0, "x-overflow": "reject-publish",
	}); err != nil {
		return err
	}
	for _, key := range g.keys {
		if err := d.Bind(g.queue, key, g.exchange); err != nil {
			return err
		}
	}
	return nil
}

// open opens the gate, no matter which process closed it.
func (g gate) open(d *rabbit.Declarer) error {
	if len(g.keys) == 0 {
		return nil
	}
	exists, err := d.HasQueue(g.queue)
	if err != nil || !exists {
		return err
	}
	var faults []error
	for _, key := range g.keys {
		faults = append(faults, d.Unbind(g.queue, key, g.exchange))
	}
	return errors.Join(faults...)
}
