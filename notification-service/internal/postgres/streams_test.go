package postgres_test

import (
	"slices"
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
)

// A new reader has positions to resume from. Notifications to the reader count as
// unread from the first on, those of a shared stream from the reader's arrival on.
func TestViewOfANewReader(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustApply(t, store, messages(2, olga.Own())...)
	mustApply(t, store, messages(3, notification.Officials)...)
	for range 2 { // the second time the reader is known
		view, err := store.Streams.View(t.Context(), olga)
		if err != nil {
			t.Fatal(err)
		}
		if view.Unread != 2 {
			t.Errorf("%d unread, want the own 2", view.Unread)
		}
		if len(view.Heads) != 2 || view.Heads[0].Stream != olga.Own() || view.Heads[0].Seq != 2 ||
			view.Heads[1].Stream != notification.Officials || view.Heads[1].Seq != 3 {
			t.Errorf("heads %+v, want the own stream at 2 and the officials' at 3", view.Heads)
		}
	}
	mustApply(t, store, message(notification.Officials))
	if view, err := store.Streams.View(t.Context(), olga); err != nil || view.Unread != 3 {
		t.Errorf("%d unread (error %v) after another for the officials, want 3", view.Unread, err)
	}
	view, err := store.Streams.View(t.Context(), ann)
	if err != nil || len(view.Heads) != 1 || view.Heads[0].Seq != 0 || view.Heads[0].Epoch == "" {
		t.Errorf("view of a reader without notifications: %+v (error %v), want an epoch and the number 0", view, err)
	}
}

// Two streams never have the same epoch, so that a cursor fits one only.
func TestEpochsDiffer(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	for _, user := range []string{"ann", "bob", "carl"} {
		mustApply(t, store, message(notification.UserStream(user)))
	}
	if n := count(t, pool, `select count(distinct epoch) from streams`); n != 3 {
		t.Errorf("%d epochs of 3 streams", n)
	}
}

func TestHeadsOmitUnknownStreams(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustApply(t, store, messages(2, ann.Own())...)
	heads, err := store.Streams.Heads(t.Context(), []notification.Stream{"user:stranger", ann.Own()})
	if err != nil || len(heads) != 1 || heads[0].Stream != ann.Own() || heads[0].Seq != 2 {
		t.Errorf("heads %+v (error %v), want ann's at 2", heads, err)
	}
}

// Since reads several streams at once, each from its own number on.
func TestSince(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustApply(t, store, messages(5, ann.Own())...)
	mustApply(t, store, messages(4, notification.Officials)...)
	after := func(stream notification.Stream, seq int64) notification.Head {
		return notification.Head{Stream: stream, Position: notification.Position{Seq: seq}}
	}
	for _, tt := range []struct {
		name  string
		heads []notification.Head
		want  []string
	}{
		{"at most the limit of each", []notification.Head{after(ann.Own(), 1), after(notification.Officials, 0)},
			[]string{"role:official:1", "role:official:2", "role:official:3", "user:ann:2", "user:ann:3", "user:ann:4"}},
		{"the end of one", []notification.Head{after(ann.Own(), 4), after(notification.Officials, 4)}, []string{"user:ann:5"}},
		{"an unknown stream", []notification.Head{after("user:stranger", 0)}, nil},
	} {
		got, err := store.Streams.Since(t.Context(), tt.heads, 3)
		if err != nil || !slices.Equal(places(got), tt.want) {
			t.Errorf("%s: got %v (error %v), want %v", tt.name, places(got), err, tt.want)
		}
	}
}
