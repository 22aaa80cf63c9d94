package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/rabbit"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

const (
	voteReceived = string(event.VoteReceivedKey)
	extra        = "queue.extra"
)

// An audience says whether a queue is wanted.
type audience struct {
	wanted bool
	err    error
}

func (a *audience) ask(context.Context) (bool, error) { return a.wanted, a.err }

// withExtra adds a group that gets what the queue of votes gets, where a wants it.
func (s *site) withExtra(a *audience, elsewhere bool) {
	s.Topology = New(event.Topology{}, nil, Group{Name: "notifications", Queues: ContractQueues()},
		Group{Name: "extra", Queues: []Queue{{Name: extra, Keys: []event.Key{event.VoteReceivedKey}, Wanted: a.ask}}, Elsewhere: elsewhere})
	s.checker.topology = s.Topology
}

// state says of the extra queue whether it is there, and bound.
func (s *site) state(t *testing.T) string {
	t.Helper()
	queues, err := s.api.ListQueuesIn(s.checker.management.vhost)
	must(t, err)
	for _, q := range queues {
		if q.Name != extra {
			continue
		}
		bindings, err := s.api.ListQueueBindingsBetween(s.checker.management.vhost, s.Names.Exchange(), extra)
		must(t, err)
		return fmt.Sprintf("%d routes", len(bindings))
	}
	return "missing"
}

// A queue gets messages as soon as somebody has a use for them, and not before: its
// reader drops what nobody wants, and the broker need not keep it for that.
func TestQueueIsBoundWhenItIsWanted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		elsewhere bool
		unwanted  string
	}{
		{elsewhere: false, unwanted: "0 routes"}, // its reader subscribes all the same
		{elsewhere: true, unwanted: "missing"},
	} {
		t.Run(fmt.Sprintf("elsewhere %t", tt.elsewhere), func(t *testing.T) {
			t.Parallel()
			s, a := newEmptySite(t), &audience{}
			s.withExtra(a, tt.elsewhere)
			must(t, s.Declare(t.Context(), s.conn))
			s.checker.Check(t.Context())
			if got := s.state(t); got != tt.unwanted {
				t.Errorf("a queue without a use: %s, want %s", got, tt.unwanted)
			}
			if n := s.log.count("topology is incomplete"); n != 0 {
				t.Errorf("the checker misses %d things without a use: %s", n, &s.log.buf)
			}
			a.err = errors.New("the database is away")
			s.checker.Check(t.Context())
			if got := s.state(t); got != tt.unwanted {
				t.Errorf("whether it is wanted is unknown: %s, want as before: %s", got, tt.unwanted)
			}
			*a = audience{wanted: true}
			s.checker.Check(t.Context())
			if got := s.state(t); got != "1 routes" {
				t.Errorf("somebody wants it: %s, want one route", got)
			}
			if got := s.checker.Findings(); len(got) != 0 {
				t.Errorf("still missing after the check: %v", got)
			}
		})
	}
}

// A queue that is about to be needed is bound first.
func TestDemand(t *testing.T) {
	t.Parallel()
	s, a := newSite(t), &audience{}
	s.withExtra(a, true)
	must(t, s.checker.Demand(t.Context(), extra))
	if got := s.state(t); got != "1 routes" {
		t.Errorf("demanded: %s, want one route", got)
	}
	if err := s.checker.Demand(t.Context(), "queue.nobody"); err == nil {
		t.Error("a queue that there is not was demanded without an error")
	}
}

// With the context of a request ends the connection that it waits for.
func TestDemandEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := newEmptySite(t)
	ctx, cancel := context.WithCancel(t.Context())
	connections := func(want int) {
		eventually.NothingMissing(t, fmt.Sprintf("%d connections", want), func() string {
			list, err := s.api.ListVhostConnections(s.checker.management.vhost)
			if err != nil || len(list) != want {
				return fmt.Sprintf("there are %d (error: %v)", len(list), err)
			}
			return ""
		})
	}
	whileDeclaring := func(context.Context) (bool, error) {
		connections(2) // the site's and the checker's
		cancel()
		connections(1)
		return true, nil
	}
	s.checker.topology = New(event.Topology{}, nil, Group{Name: "extra", Queues: []Queue{{Name: extra}, {Name: "queue.other", Wanted: whileDeclaring}}})
	if err := s.checker.Demand(ctx, extra); !errors.Is(err, context.Canceled) {
		t.Errorf("demanded until the context ended: %v, want its error", err)
	}
}

// A message that the second of two queues takes is not returned to its publisher, and
// is lost to the first, unless that is bound before.
func TestNoQueueIsBoundBeforeTheFirst(t *testing.T) {
	t.Parallel()
	s, a := newEmptySite(t), &audience{wanted: true}
	s.withExtra(a, false)
	other, err := amqp.Dial(s.checker.rabbit.URL)
	must(t, err)
	defer func() { _ = other.Close() }()
	ch, err := other.Channel()
	must(t, err)
	// Exclusive: nobody else can declare it, or bind it.
	_, err = ch.QueueDeclare(s.Names.Queue(event.VoteReceivedKey), false, false, true, false, nil)
	must(t, err)
	if err := s.Declare(t.Context(), s.conn); err == nil {
		t.Error("no error, though a queue could not be declared")
	}
	if got := s.state(t); got != "0 routes" {
		t.Errorf("the queue behind one that is not bound: %s, want none", got)
	}
	must(t, other.Close())
	eventually.NothingMissing(t, "everything is declared", func() string {
		if err := s.Declare(t.Context(), s.conn); err != nil {
			return err.Error()
		}
		return ""
	})
	if got := s.state(t); got != "1 routes" {
		t.Errorf("the queue behind one that is bound: %s, want one route", got)
	}
}

// Messages that the broker takes while queues are made reach all of them.
func TestNewQueuesMissNothing(t *testing.T) {
	t.Parallel()
	s := newEmptySite(t)
	s.withExtra(&audience{wanted: true}, false)
	must(t, rabbit.DeclareExchange(s.conn, s.Names.Exchange(), amqp.ExchangeTopic))
	conn, err := amqp.Dial(s.checker.rabbit.URL)
	must(t, err)
	defer func() { _ = conn.Close() }()
	publisher, err := rabbit.NewPublisher(conn, 64)
	must(t, err)
	var taken []string
	declared := make(chan error, 1)
	// Whatever was published before it began is returned.
	go func() { declared <- s.Declare(t.Context(), s.conn) }()
	for done := false; !done || len(taken) == 0; { // a new queue may refuse once more: it has no leader yet
		select {
		case err := <-declared:
			must(t, err)
			done = true
		default:
		}
		id := uuid.NewString()
		if publisher.PublishWait(t.Context(), s.Names.Exchange(), voteReceived, amqp.Publishing{MessageId: id, DeliveryMode: amqp.Persistent}) == nil {
			taken = append(taken, id)
		}
	}
	for _, queue := range []string{s.Names.Queue(event.VoteReceivedKey), extra} {
		missed := slices.Clone(taken)
		for {
			d, ok, err := s.ch.Get(queue, true)
			must(t, err)
			if !ok {
				break
			}
			missed = slices.DeleteFunc(missed, func(id string) bool { return id == d.MessageId })
		}
		if len(missed) > 0 {
			t.Errorf("%s misses %d of %d messages that the broker took", queue, len(missed), len(taken))
		}
	}
}

// A process that dies while it makes queues leaves the gate closed, and the next
// one opens it.
func TestGateOfADeadProcessIsOpened(t *testing.T) {
	t.Parallel()
	s := newEmptySite(t)
	s.withExtra(&audience{wanted: true}, false)
	must(t, s.Declare(t.Context(), s.conn))
	publisher, err := rabbit.NewPublisher(s.conn, 1)
	must(t, err)
	publish := func() error {
		return publisher.PublishWait(t.Context(), s.Names.Exchange(), voteReceived, amqp.Publishing{DeliveryMode: amqp.Persistent})
	}
	d := rabbit.NewDeclarer(s.conn)
	defer d.Close()
	must(t, newGate(s.Names.Gate(), s.Names.Exchange(), s.needed(t.Context()).routes).bind(d))
	if err := publish(); !errors.Is(err, rabbit.ErrNacked) {
		t.Errorf("while the gate is closed: %v, want a nack", err)
	}
	must(t, s.Declare(t.Context(), s.conn))
	if err := publish(); err != nil {
		t.Errorf("after all was declared: %v, want none", err)
	}
}
