package webhook

import (
	"context"
	"time"

	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// An EventStore writes the events that are to be sent to endpoints.
type EventStore interface {
	// Expand writes a delivery of each event for each endpoint that asked for it, in
	// one transaction, unless its message was seen before. The ids of the
	// messages are distinct. It returns how many were seen, and the lanes in
	// which something is due now.
	Expand(ctx context.Context, queue string, events []Event) (seen int, lanes []string, err error)
}

// Endpoints reports whether there are any, and since when.
type Endpoints interface {
	Any(ctx context.Context) (bool, error)
	// Since returns when the oldest one was registered.
	Since(ctx context.Context) (time.Time, error)
}

// Group returns the group of consumers whose effect is that events are to be sent to
// endpoints, or without an effect, for a process that only looks after the queue. The
// queue gets no messages before there are endpoints.
func Group(endpoints Endpoints, effect consumer.Effect) consumer.Group {
	return consumer.Group{
		Name: "webhooks", Queues: []topology.Queue{{Name: Queue, Keys: Types(), Wanted: endpoints.Any}},
		Effect: effect, Since: endpoints.Since, Bulk: true,
	}
}

// NewEffect returns the effect of a message, which is a delivery for each endpoint
// that asked for its event. After each commit, wake gets the lanes in which something
// is due.
func NewEffect(store EventStore, wake func(lanes []string)) consumer.Effect {
	return consumer.Typed(expansion{store, wake})
}

// An expansion is the effect of a message: a delivery for each endpoint that
// asked for its event.
type expansion struct {
	store EventStore
	wake  func(lanes []string)
}

// Read makes an Event of the message and its trace: nothing else of it goes further.
// The sealed recipient in its headers stays where it is.
func (expansion) Read(m consumer.Message) (Event, error) {
	e, err := EventOf(m.ID, m.Event)
	if err != nil {
		return Event{}, failure.Refuse("no webhook for messages of this type")
	}
	e.TraceID = event.TraceID(m.Headers[event.TraceHeader])
	return e, nil
}

// Apply writes the deliveries of a batch.
func (x expansion) Apply(ctx context.Context, queue string, batch []consumer.Parsed[Event]) (seen int, err error) {
	events := make([]Event, len(batch))
	for i, m := range batch {
		events[i] = m.Value
	}
	seen, lanes, err := x.store.Expand(ctx, queue, events)
	if err == nil && len(lanes) > 0 {
		x.wake(lanes)
	}
	return seen, err
}
