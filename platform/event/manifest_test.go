package event_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
)

func newManifest(ids ...uuid.UUID) event.Manifest {
	at := time.Date(2026, 11, 27, 12, 0, 0, 123_456_000, time.UTC)
	return event.Manifest{
		Epoch: 2, Number: 7, From: at, Until: at.Add(time.Minute),
		Messages: map[event.Key]event.IDs{event.VoteReceivedKey: event.NewIDs(ids)},
	}
}

func encode(t *testing.T, m event.Manifest) []byte {
	t.Helper()
	body, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// A manifest comes out as it went in, with its ids in order, and the largest one is
// below what consumers take as a body.
func TestManifestRoundTrip(t *testing.T) {
	t.Parallel()
	ids := make([]uuid.UUID, event.MaxManifestIDs)
	for i := range ids {
		ids[i] = uuid.New()
	}
	m := newManifest(ids...)
	body := encode(t, m)
	if len(body) > 200<<10 {
		t.Errorf("the largest manifest has %d bytes, want 200 KiB at most", len(body))
	}
	got, err := event.DecodeManifest(body)
	if err != nil {
		t.Fatal(err)
	}
	if schema := compile(t, schemas+"/manifest.json"); !accepts(t, schema, body) {
		t.Error("docs/schemas/manifest.json does not accept it")
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	if !slices.Equal(got.Messages[event.VoteReceivedKey].All(), ids) {
		t.Error("the ids differ")
	}
	if got.Epoch != m.Epoch || got.Number != m.Number || !got.From.Equal(m.From) || !got.Until.Equal(m.Until) || !got.LostBefore.IsZero() {
		t.Errorf("got %+v, want %+v", got, m)
	}
}

func TestManifestThatBreaksTheContractIsRefused(t *testing.T) {
	t.Parallel()
	id := uuid.New()
	for name, change := range map[string]func(m *event.Manifest){
		"negative epoch":   func(m *event.Manifest) { m.Epoch = -1 },
		"no number":        func(m *event.Manifest) { m.Number = 0 },
		"no beginning":     func(m *event.Manifest) { m.From = time.Time{} },
		"no time":          func(m *event.Manifest) { m.Until = m.From },
		"no messages":      func(m *event.Manifest) { m.Messages = nil },
		"half an id":       func(m *event.Manifest) { m.Messages[event.VoteReceivedKey] = event.IDs(id[:8]) },
		"an id twice":      func(m *event.Manifest) { m.Messages[event.VoteReceivedKey] = append(id[:], id[:]...) },
		"more than it may": func(m *event.Manifest) { m.Messages[event.ReportCreatedKey] = event.NewIDs(manyIDs()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newManifest(uuid.New())
			change(&m)
			if _, err := event.DecodeManifest(encode(t, m)); err == nil {
				t.Error("it was taken")
			}
		})
	}
}

func manyIDs() []uuid.UUID {
	ids := make([]uuid.UUID, event.MaxManifestIDs)
	for i := range ids {
		ids[i] = uuid.New()
	}
	return ids
}
