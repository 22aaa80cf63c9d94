package deadletter_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cityconnect/cityconnect/platform/deadletter"
)

var votesFailed = deadletter.Cause{Queue: votes, Class: "permanent", Group: "permanent"}

// A note is shown with its group and with each of its letters. Whoever writes on another
// version than the present one is refused, and the audit has no text.
func TestNote(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustArchive(t, store, letter(votes, "a", "permanent", 1), letter(votes, "b", "permanent", 2), letter(votes, "c", "timeout", 3))
	first, err := store.SetNote(t.Context(), "pavel", votesFailed, 0, "the broker was moved")
	if err != nil || first.Text != "the broker was moved" || first.Author != "pavel" || first.WrittenAt.IsZero() {
		t.Fatalf("the first note %+v (error %v)", first, err)
	}
	second, err := store.SetNote(t.Context(), "olga", votesFailed, first.Version, "wait until Monday")
	if err != nil || second.Version == first.Version {
		t.Fatalf("the second note %+v (error %v)", second, err)
	}
	for what, act := range map[string]func() error{
		"a first note": func() error { _, err := store.SetNote(t.Context(), "pavel", votesFailed, 0, "x"); return err },
		"an old version": func() error {
			_, err := store.SetNote(t.Context(), "pavel", votesFailed, first.Version, "x")
			return err
		},
		"an old removal":  func() error { return store.RemoveNote(t.Context(), "pavel", votesFailed, first.Version) },
		"a removal of it": func() error { return store.RemoveNote(t.Context(), "pavel", votesFailed, 0) },
	} {
		if err := act(); !errors.Is(err, deadletter.ErrStale) {
			t.Errorf("%s: error %v, want ErrStale", what, err)
		}
	}
	unknown := deadletter.Cause{Queue: votes, Class: "permanent", Group: "never seen"}
	if _, err := store.SetNote(t.Context(), "pavel", unknown, 0, "x"); !errors.Is(err, deadletter.ErrNoGroup) {
		t.Errorf("a note on no letter: error %v, want ErrNoGroup", err)
	}
	wantNoted(t, store, &second)
	if err := store.RemoveNote(t.Context(), "pavel", votesFailed, second.Version); err != nil {
		t.Fatal(err)
	}
	wantNoted(t, store, nil)
	if _, err := store.SetNote(t.Context(), "pavel", votesFailed, second.Version, "x"); !errors.Is(err, deadletter.ErrStale) {
		t.Errorf("a change to a note that was removed: error %v, want ErrStale", err)
	}
	if got := actions(t, store); !slices.Equal(got, []string{"pavel note_removed", "olga note", "pavel note"}) {
		t.Errorf("audit %v", got)
	}
	log, err := store.AuditLog(t.Context(), 0, 1)
	if err != nil || strings.Contains(string(log[0].Detail), "Monday") || *log[0].Queue != votes {
		t.Errorf("audit entry %+v (error %v), want the group without the text", log, err)
	}
}

// wantNoted checks the note that is shown with the group, and its letters alone.
func wantNoted(t *testing.T, store *deadletter.Store, want *deadletter.Note) {
	t.Helper()
	groups, err := store.Groups(t.Context(), deadletter.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what, group string, got *deadletter.Note) {
		t.Helper()
		if want == nil || group != votesFailed.Group {
			if got != nil {
				t.Errorf("%s has the note %+v, want none", what, got)
			}
		} else if got == nil || got.Text != want.Text || got.Version != want.Version || !got.WrittenAt.Equal(want.WrittenAt) {
			t.Errorf("%s has the note %+v, want %+v", what, got, want)
		}
	}
	for _, g := range groups {
		check("group "+g.Group, g.Group, g.Note)
	}
	for _, e := range entries(t, store, deadletter.Selection{}) {
		check("letter "+e.MessageID, e.Group, e.Note)
	}
}

// Of two who write at the same time, one is refused.
func TestNotesAtTheSameTime(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	mustArchive(t, store, letter(votes, "a", "permanent", 1))
	var version int64
	for range 5 {
		results := make(chan error, 2)
		var wg sync.WaitGroup
		for _, who := range []string{"olga", "pavel"} {
			wg.Go(func() {
				_, err := store.SetNote(t.Context(), who, votesFailed, version, "by "+who)
				results <- err
			})
		}
		wg.Wait()
		if a, b := <-results, <-results; (a == nil) == (b == nil) || !errors.Is(errors.Join(a, b), deadletter.ErrStale) {
			t.Fatalf("two at version %d: %v and %v, want one refused", version, a, b)
		}
		version = entries(t, store, deadletter.Selection{})[0].Note.Version
	}
}
