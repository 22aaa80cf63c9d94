package consumer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// A recorder is an effect and a journal that notes what it is asked for.
type recorder struct {
	journal
	calls []string
}

func (s *recorder) Read(Message) (any, error) { return nil, nil }

func (s *recorder) Apply(_ context.Context, _ string, batch []Message) (int, error) {
	ids := make([]string, len(batch))
	for i, m := range batch {
		ids[i] = m.ID
	}
	s.calls = append(s.calls, strings.Join(ids, " "))
	return 0, nil
}

func (s *recorder) start(_ context.Context, _, id string) (int, error) {
	s.calls = append(s.calls, "start "+id)
	return 1, nil
}

func (s *recorder) giveBack(_ context.Context, _, id string) error {
	s.calls = append(s.calls, "give back "+id)
	return nil
}

func (s *recorder) await(_ context.Context, _ string, ids []string) error {
	s.calls = append(s.calls, "await "+strings.Join(ids, " "))
	return nil
}

func (s *recorder) finish(_ context.Context, _, id string) error {
	s.calls = append(s.calls, "finish "+id)
	return nil
}

func (s *recorder) ping(context.Context) error { return nil }

func (s *recorder) writable(context.Context) error { return nil }

// A message that was delivered before is older, and the versions of a report give the
// order of its changes.
func TestHandleKeepsTheOrderOfChanges(t *testing.T) {
	t.Parallel()
	x, y := uuid.New(), uuid.New()
	tag := uint64(0)
	change := func(report uuid.UUID, name string, version int64, redelivered bool) *job {
		tag++
		return &job{
			d: &amqp.Delivery{DeliveryTag: tag, Redelivered: redelivered},
			msg: Message{
				ID:    fmt.Sprint(name, version),
				Event: &event.VoteReceived{Subject: event.Subject{ReportID: report, ReportVersion: version}},
			},
		}
	}
	store := new(recorder)
	h := &handler{
		queue: "q", effect: store, store: store, breaker: testBreaker(), timeout: time.Minute,
		stats: new(queueStats), metrics: newMetrics(prometheus.NewRegistry()), log: zerolog.Nop(),
	}
	log := &ackLog{t: t, done: make(map[uint64]bool)}
	h.acks = ackTracker{acknowledger: log, handled: &h.stats.handled, acked: h.metrics.acked.WithLabelValues("q")}
	batch := []*job{
		change(x, "x", 9, false), change(y, "y", 4, false), change(x, "x", 7, false), change(y, "y", 5, false), change(x, "x", 8, false),
		change(x, "x", 6, true), change(y, "y", 3, true), change(x, "x", 5, true),
	}
	for _, j := range batch {
		log.open, log.done[j.d.DeliveryTag] = append(log.open, j.d.DeliveryTag), true
	}
	h.handle(t.Context(), batch)
	want := []string{"start x5", "x5", "start y3", "y3", "start x6", "x6", "x7 y4 x8 y5 x9"}
	if !slices.Equal(store.calls, want) {
		t.Errorf("the store is asked for %q, want %q", store.calls, want)
	}
	if len(log.open) != 0 {
		t.Errorf("%d deliveries are not acknowledged", len(log.open))
	}
}

// An undecided effect returns an error, after what the test does first.
type undecided struct {
	*recorder
	err    error
	before func()
}

func (e undecided) Apply(ctx context.Context, queue string, batch []Message) (int, error) {
	_, _ = e.recorder.Apply(ctx, queue, batch)
	e.before()
	return 0, e.err
}

// newUndecided returns a handler of one redelivered message, whose effect returns err.
func newUndecided(t *testing.T, err error, before func()) (*handler, *recorder, *job, *ackLog) {
	t.Helper()
	store := new(recorder)
	queues := []topology.Queue{{Name: "q", Keys: []event.Key{event.VoteReceivedKey}}}
	h := &handler{
		queue: "q", effect: undecided{store, err, before}, store: store, breaker: testBreaker(), timeout: time.Minute,
		topology: topology.New(event.Topology{}, []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}, topology.Group{Name: "g", Queues: queues}),
		stats:    new(queueStats), metrics: newMetrics(prometheus.NewRegistry()), log: zerolog.Nop(),
	}
	log := &ackLog{t: t, done: map[uint64]bool{1: true}, open: []uint64{1}}
	h.acks = ackTracker{acknowledger: log, handled: &h.stats.handled, acked: h.metrics.acked.WithLabelValues("q")}
	j := &job{
		d:   &amqp.Delivery{DeliveryTag: 1, Redelivered: true, Exchange: "x", RoutingKey: "k", MessageId: "m"},
		msg: Message{ID: "m", Event: &event.VoteReceived{Subject: event.Subject{ReportID: uuid.New(), ReportVersion: 1}}},
	}
	return h, store, j, log
}

// A worker that is stopped gives back what it has in hand, and that it began is not held
// against the message: the process has not died of it.
func TestStartOfWhatIsGivenBackDoesNotCount(t *testing.T) {
	t.Parallel()
	work, stop := context.WithCancel(t.Context())
	h, store, j, log := newUndecided(t, &failure.Error{Class: failure.Away, Text: "the worker stops"}, stop)
	h.handle(work, []*job{j})
	if want := []string{"start m", "m", "await m", "give back m"}; !slices.Equal(store.calls, want) {
		t.Errorf("the store is asked for %q, want %q", store.calls, want)
	}
	if len(log.open) != 1 {
		t.Error("it is acknowledged, want it to go back to the queue")
	}
}

// A forwardLog takes what is published.
type forwardLog struct {
	exchange, key string
	msg           amqp.Publishing
}

func (f *forwardLog) Forward(_ context.Context, exchange, key string, msg amqp.Publishing) error {
	f.exchange, f.key, f.msg = exchange, key, msg
	return nil
}

// A message whose turn has not come waits for some seconds, without an attempt, and
// without a start that counts.
func TestMessageWhoseTurnHasNotComeWaits(t *testing.T) {
	t.Parallel()
	h, store, j, log := newUndecided(t, &failure.Error{Class: failure.Postponed, Text: "others are at work"}, func() {})
	published := new(forwardLog)
	h.forwarder = published
	h.handle(t.Context(), []*job{j})
	h.forwarding.Wait()
	h.acks.flush()
	if want := []string{"start m", "m", "await m"}; !slices.Equal(store.calls, want) {
		t.Errorf("the store is asked for %q, want %q", store.calls, want)
	}
	if want := h.topology.RetryExchange(5 * time.Second); published.exchange != want || published.key != "q" || published.msg.MessageId != "m" {
		t.Errorf("published to %s under %s: %+v; want %s, q", published.exchange, published.key, published.msg, want)
	}
	headers := published.msg.Headers
	if failure.Retries(headers) != 0 || headers[failure.OriginalExchangeHeader] != "x" || headers[failure.OriginalRoutingKeyHeader] != "k" {
		t.Errorf("headers %v, want no attempt, and where it came from", headers)
	}
	if len(log.open) != 0 {
		t.Error("the original is not acknowledged")
	}
}
