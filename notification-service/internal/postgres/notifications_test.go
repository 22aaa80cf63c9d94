package postgres_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/fault"
)

// The pages of a list have each notification once, newest first, also where two
// streams are merged and notifications arrive between two pages.
func TestListPages(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	for range 7 {
		mustApply(t, store, message(olga.Own()), message(notification.Officials))
		mustApply(t, store, message(notification.Officials))
	}
	if _, err := store.Streams.View(t.Context(), olga); err != nil {
		t.Fatal(err)
	}
	var got []string
	var cursor notification.Cursor
	for {
		page, err := store.Streams.List(t.Context(), olga, cursor, false, 4)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			got = append(got, places([]notification.Notification{item.Notification})...)
		}
		if cursor = page.Next; cursor == nil {
			break
		}
		mustApply(t, store, message(olga.Own()), message(notification.Officials)) // newer than all pages
	}
	var want []string
	for n := 7; n > 0; n-- {
		want = append(want, fmt.Sprintf("user:olga:%d", n))
	}
	for n := 14; n > 0; n-- {
		want = append(want, fmt.Sprintf("role:official:%d", n))
	}
	for stream, prefix := range map[string]string{"her own": "user:", "the officials'": "role:"} {
		of := func(list []string) []string {
			return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s[:5] != prefix })
		}
		if !slices.Equal(of(got), of(want)) {
			t.Errorf("%s notifications came as %v, want %v", stream, of(got), of(want))
		}
	}
}

// A cursor of other streams, or of an earlier life of these, is refused.
func TestListRefusesOtherCursors(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustApply(t, store, message(ann.Own()))
	view, err := store.Streams.View(t.Context(), ann)
	if err != nil {
		t.Fatal(err)
	}
	own := view.Heads[0].Position
	for name, cursor := range map[string]notification.Cursor{
		"of an official":    {own, own},
		"of another stream": {{Epoch: "another", Seq: 1}},
		"of no stream":      {},
	} {
		if _, err := store.Streams.List(t.Context(), ann, cursor, false, 10); fault.KindOf(err) != fault.Invalid {
			t.Errorf("a cursor %s: error %v, want an invalid one", name, err)
		}
		if _, err := store.Streams.MarkAll(t.Context(), ann, cursor); fault.KindOf(err) != fault.Invalid {
			t.Errorf("marking up to a cursor %s: error %v, want an invalid one", name, err)
		}
	}
}

// The unread count, the marks of the items and the list of the unread agree,
// whatever was marked in whatever order.
func TestMarks(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	applied := mustApply(t, store, messages(5, ann.Own())...)
	ids := make([]uuid.UUID, 5)
	for i, n := range applied.Batch.Notifications {
		ids[i] = n.ID
	}
	upTo := func(seq int64) notification.Cursor {
		return notification.Cursor{{Epoch: applied.Batch.Notifications[0].Epoch, Seq: seq}}
	}
	mark := func(i int, read bool) func() error {
		return func() error {
			item, err := store.Streams.Mark(t.Context(), ann, ids[i-1], read)
			if err == nil && (item.ID != ids[i-1] || item.Read != read) {
				t.Errorf("Mark(%d, %t) returned %+v", i, read, item)
			}
			return err
		}
	}
	markAll := func(c notification.Cursor) func() error {
		return func() error { _, err := store.Streams.MarkAll(t.Context(), ann, c); return err }
	}
	for _, step := range []struct {
		name   string
		do     func() error
		unread []int64
	}{
		{"nothing", func() error { return nil }, []int64{5, 4, 3, 2, 1}},
		{"one as read", mark(4, true), []int64{5, 3, 2, 1}},
		{"the same again", mark(4, true), []int64{5, 3, 2, 1}},
		{"all up to 3", markAll(upTo(3)), []int64{5}},
		{"one of them as read", mark(1, true), []int64{5}},
		{"one of them as unread", mark(2, false), []int64{5, 2}},
		{"all up to 1: a mark never goes down", markAll(upTo(1)), []int64{5, 2}},
		{"beyond the last", markAll(upTo(100)), nil},
		{"one as unread", mark(5, false), []int64{5}},
		{"all", markAll(nil), nil},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		unread, err := store.Streams.List(t.Context(), ann, nil, true, 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, item := range unread.Items {
			got = append(got, item.Seq)
			if item.Read {
				t.Errorf("after %s: number %d is among the unread and read", step.name, item.Seq)
			}
		}
		if !slices.Equal(got, step.unread) || unread.View.Unread != int64(len(step.unread)) {
			t.Errorf("after %s: %v unread and the count %d, want %v", step.name, got, unread.View.Unread, step.unread)
		}
	}
}

// Two readers of the officials' stream have marks of their own.
func TestMarksAreTheReaders(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	otto := notification.Reader{UserID: "otto", Official: true}
	for _, r := range []notification.Reader{olga, otto} {
		if _, err := store.Streams.View(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	n := mustApply(t, store, message(notification.Officials)).Batch.Notifications[0]
	if _, err := store.Streams.Mark(t.Context(), olga, n.ID, true); err != nil {
		t.Fatal(err)
	}
	for reader, want := range map[notification.Reader]int64{olga: 0, otto: 1} {
		if view, err := store.Streams.View(t.Context(), reader); err != nil || view.Unread != want {
			t.Errorf("%s has %d unread (error %v), want %d", reader.UserID, view.Unread, err, want)
		}
	}
	if _, err := store.Streams.Mark(t.Context(), ann, n.ID, true); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a resident marks a notification of the officials: error %v, want not found", err)
	}
}
