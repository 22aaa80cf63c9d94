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
