package consumer

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/cityconnect/cityconnect/platform/event"
)

// A memory is a journal that misses every message that it is asked for.
type memory struct {
	journal
	asked []uuid.UUID
}

func (m *memory) previous(_ context.Context, _ string, ids []uuid.UUID) (lookup, error) {
	m.asked = append(m.asked, ids...)
	return lookup{at: time.Now(), missing: ids}, nil
}

// The messages of a batch are looked up together, without those that are in the batch
// or that another queue gets. One that waits makes the later ones of its report wait;
// none waits for a message of before its group had anything to do.
func TestSplit(t *testing.T) {
	t.Parallel()
	id := func() uuid.UUID { return uuid.Must(uuid.NewV7()) }
	status := func(id, previous uuid.UUID, version int64) *job {
		return &job{d: &amqp.Delivery{}, msg: Message{ID: id.String(), Event: &event.StatusUpdate{
			Subject: event.Subject{ReportVersion: version}, PreviousMessageID: previous, PreviousStatusVersion: version - 1,
		}}}
	}
	early1, early2, filed, first, second, missing := id(), id(), id(), id(), id(), id()
	batch := []*job{
		status(early1, missing, 7), status(first, uuid.Nil, 2), status(early2, early1, 8), status(second, first, 3), status(id(), filed, 2),
	}
	for _, tt := range []struct {
		name  string
		keys  []event.Key
		since time.Duration // from now
		asked []uuid.UUID
		early []int // places in the batch
	}{
		{"statuses alone", []event.Key{event.StatusUpdatedKey}, -time.Hour, []uuid.UUID{missing}, []int{0, 2}},
		{"filings, too", []event.Key{event.ReportCreatedKey, event.StatusUpdatedKey}, -time.Hour, []uuid.UUID{missing, filed}, []int{0, 2, 4}},
		{"a group that begins", []event.Key{event.StatusUpdatedKey}, time.Hour, []uuid.UUID{missing}, nil},
	} {
		m := new(memory)
		h := &handler{keys: tt.keys, store: m, patience: time.Minute, since: func(context.Context) (time.Time, error) {
			return time.Now().Add(tt.since), nil
		}}
		ready, early, _, err := h.split(t.Context(), batch)
		if err != nil || len(ready)+len(early) != len(batch) {
			t.Fatalf("%s: %d ready, %d early (error %v), want %d in all", tt.name, len(ready), len(early), err, len(batch))
		}
		var places []int
		for _, j := range early {
			places = append(places, slices.Index(batch, j))
		}
		if !slices.Equal(places, tt.early) || fmt.Sprint(m.asked) != fmt.Sprint(tt.asked) {
			t.Errorf("%s: asked for %v, early are %v; want %v and %v", tt.name, m.asked, places, tt.asked, tt.early)
		}
	}
}
