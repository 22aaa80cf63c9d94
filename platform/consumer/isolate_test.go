package consumer

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/delay"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// An eachRecorder notes what it is asked for, and fails for one message; lost ends the
// first attempt one by one.
type eachRecorder struct {
	bad  string
	lost func() error

	mu    sync.Mutex
	calls []string
}

func (e *eachRecorder) Read(Message) (any, error) { return nil, nil }

func (e *eachRecorder) note(call string, batch []Message) (bad int) {
	ids := make([]string, len(batch))
	bad = -1
	for i, m := range batch {
		if ids[i] = m.ID; m.ID == e.bad {
			bad = i
		}
	}
	slices.Sort(ids)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, call+" "+strings.Join(ids, " "))
	return bad
}

var errData = &pgconn.PgError{Code: "22012"}

func (e *eachRecorder) Apply(_ context.Context, _ string, batch []Message) (int, error) {
	if e.note("all", batch) >= 0 {
		return 0, errData
	}
	return 0, nil
}

func (e *eachRecorder) ApplyEach(_ context.Context, _ string, batch []Message, failed func(int, error)) ([]bool, error) {
	bad := e.note("each", batch)
	applied := slices.Repeat([]bool{true}, len(batch))
	if bad >= 0 {
		applied[bad] = false
		failed(bad, errData)
	}
	if lost := e.lost; lost != nil {
		e.lost = nil
		return nil, lost()
	}
	return applied, nil
}

// A lot parks all messages.
type lot struct{ parked []string }

func (l *lot) Park(_ context.Context, _ string, messages []delay.Message, _ bool) (map[string]delay.Outcome, error) {
	outcomes := make(map[string]delay.Outcome)
	for _, m := range messages {
		l.parked = append(l.parked, m.ID)
		outcomes[m.ID] = delay.Parked
	}
	return outcomes, nil
}

// A message that fails by itself is out of the way at once, also if the others are not
// committed then; one that follows it waits, though all are in the same batch.
func TestIsolateOneByOne(t *testing.T) {
	t.Parallel()
	a, b, c, d := uuid.Must(uuid.NewV7()).String(), uuid.Must(uuid.NewV7()).String(), uuid.Must(uuid.NewV7()).String(), uuid.Must(uuid.NewV7()).String()
	list := func(call string, ids ...string) string { slices.Sort(ids); return call + " " + strings.Join(ids, " ") }
	for _, tt := range []struct {
		name  string
		lost  func() error
		calls []string
	}{
		{"committed", nil, []string{list("all", a, b, c, d), list("each", a, c, d)}},
		{"connection lost", func() error { return &pgconn.PgError{Code: "08006"} },
			[]string{list("all", a, b, c, d), list("each", a, c, d), list("each", c, d)}},
		{"panic", func() error { panic("lost") }, []string{list("all", a, b, c, d), list("each", a, c, d), list("all", c), list("all", d)}},
	} {
		effect, letters, lot := &eachRecorder{bad: a, lost: tt.lost}, new(forwardLog), new(lot)
		queues := []topology.Queue{{Name: "q", Keys: []event.Key{event.StatusUpdatedKey}}}
		h := &handler{
			queue: "q", keys: queues[0].Keys, effect: effect, store: &missing{}, parker: lot, forwarder: letters, patience: time.Minute,
			breaker: testBreaker(), timeout: time.Minute, topology: topology.New(event.Topology{}, nil, topology.Group{Name: "g", Queues: queues}),
			stats: new(queueStats), metrics: newMetrics(prometheus.NewRegistry()), log: zerolog.Nop(),
		}
		log := &ackLog{t: t, done: make(map[uint64]bool)}
		h.acks = ackTracker{acknowledger: log, handled: &h.stats.handled, acked: h.metrics.acked.WithLabelValues("q")}
		report := uuid.New()
		var batch []*job
		for i, id := range []string{a, b, c, d} {
			m := &event.StatusUpdate{Subject: event.Subject{ReportID: uuid.New(), ReportVersion: 2}}
			if id == a || id == b {
				m.ReportID, m.ReportVersion = report, int64(2+i)
			}
			if id == b {
				m.PreviousMessageID, m.PreviousStatusVersion = uuid.MustParse(a), 2
			}
			batch = append(batch, &job{d: &amqp.Delivery{DeliveryTag: uint64(i + 1), MessageId: id}, msg: Message{ID: id, Event: m}})
			log.open, log.done[uint64(i+1)] = append(log.open, uint64(i+1)), true
		}
		h.handle(t.Context(), batch)
		h.forwarding.Wait()
		h.acks.flush()
		slices.Sort(effect.calls) // those of messages alone come in any order
		slices.Sort(tt.calls)
		if !slices.Equal(effect.calls, tt.calls) {
			t.Errorf("%s: the effect is asked for %q, want %q", tt.name, effect.calls, tt.calls)
		}
		if letters.msg.MessageId != a || letters.exchange != h.topology.Names.DeadLetterExchange() {
			t.Errorf("%s: %s is published to %s, want the failing one to the dead letters", tt.name, letters.msg.MessageId, letters.exchange)
		}
		if !slices.Equal(lot.parked, []string{b}) {
			t.Errorf("%s: parked are %v, want the one that follows it", tt.name, lot.parked)
		}
		if len(log.open) != 0 {
			t.Errorf("%s: %d deliveries are not acknowledged", tt.name, len(log.open))
		}
	}
}

// A missing journal knows no message.
type missing struct{ memory }

func (m *missing) ping(context.Context) error { return nil }

func (m *missing) writable(context.Context) error { return nil }
