package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

var hider = report.Official{ID: "olga-id", Name: "Olga"}

func (f *fixture) mustHide(id uuid.UUID) {
	f.t.Helper()
	if err := f.moderation.Hide(f.t.Context(), id, "It names somebody", report.Versions{}, hider); err != nil {
		f.t.Fatal(err)
	}
}

// Votes, photos that were looked at, and time go on while a report is hidden.
// Nothing of it is announced until it is shown again.
func TestNothingIsAnnouncedOfAHiddenReport(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, f.withTarget(report.Anonymous))
	ready, refused := f.add(upload(filed, "picture"), annUploads), f.add(upload(filed, "another"), annUploads)
	f.mustHide(filed.ID)
	before := len(f.outbox())

	_, err := f.Vote(t.Context(), filed.ID, bob.ID, report.Upvote)
	wantKind(t, err, fault.NotFound)
	_, err = f.Move(t.Context(), filed.ID, report.Move{To: report.Resolved, By: hider.ID})
	wantKind(t, err, report.Hidden)
	_, _, err = f.photos.Add(t.Context(), upload(filed, "third"), annUploads)
	wantKind(t, err, fault.NotFound)
	wantKind(t, f.photos.Remove(t.Context(), filed.ID, ready.ID, city), report.Hidden)
	f.judge(ready.ID, report.Judgement{Width: 10, Height: 10})
	f.judge(refused.ID, report.Judgement{Reason: report.PhotoDamaged})
	f.late(filed.ID, 2)
	if levels := f.overdue(filed.ID); len(levels) != 0 {
		t.Errorf("it falls overdue while it is hidden: %v", levels)
	}
	if rows := f.outbox()[before:]; len(rows) != 0 {
		t.Errorf("announced while it is hidden: %+v", rows)
	}
	if f.state(ready.ID) != "ready" || f.state(refused.ID) != "refused" {
		t.Error("the verdicts about its photos are lost")
	}

	if err := f.moderation.Unhide(t.Context(), filed.ID, report.Versions{}, hider); err != nil {
		t.Fatal(err)
	}
	if levels := f.overdue(filed.ID); len(levels) != 1 {
		t.Errorf("shown again it falls overdue at %v, want one level", levels)
	}
	rows := f.rowsOf(event.ModeratedKey)
	if len(rows) != 2 {
		t.Fatalf("%d messages tell of it, want 2", len(rows))
	}
	for i, want := range []struct {
		action event.Moderation
		title  string
		note   string
	}{{event.Hidden, report.Reference(filed.ID), "It names somebody"}, {event.ShownAgain, filed.Title, ""}} {
		m, err := event.Decode(event.ModeratedKey, rows[i].Payload)
		if err != nil {
			t.Fatal(err)
		}
		got := m.(*event.ReportModerated)
		if got.Action != want.action || got.ReportTitle != want.title || got.Note != want.note || got.Hidden != (want.note != "") || got.ReportVersion != filed.Version+int64(i)+1 {
			t.Errorf("message %d is %+v, want %+v", i, got, want)
		}
		if to, err := f.keys.Open(filed.ID, rows[i].Headers[event.RecipientHeader]); err != nil || to != ann.ID {
			t.Errorf("message %d is for %q (error %v), want whoever filed it", i, to, err)
		}
		if text := string(rows[i].Payload); strings.Contains(text, "-id") || strings.Contains(text, "Olga") || strings.Contains(text, "Ann") {
			t.Errorf("message %d names somebody: %s", i, text)
		}
	}
}

// mustRestrict shows a report to officials and its reporter alone.
func (f *fixture) mustRestrict(id uuid.UUID) {
	f.t.Helper()
	if err := f.moderation.SetVisibility(f.t.Context(), id, report.ForOfficials, "Names a neighbour", report.Versions{}, hider); err != nil {
		f.t.Fatal(err)
	}
}

// A report is hidden, or restricted to the city, while many vote on it. Each vote that was
// counted was announced before, and none after.
func TestHiddenBesideVotes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for round := range 20 {
		hide := f.mustHide
		if round%2 == 1 {
			hide = f.mustRestrict
		}
		filed := f.file(ann, draft(report.Public))
		var voting sync.WaitGroup
		var mu sync.Mutex
		counted := 0
		half := make(chan struct{})
		for v := range 20 {
			voting.Go(func() {
				_, err := f.Vote(t.Context(), filed.ID, fmt.Sprint("voter", v), report.Upvote)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					counted++
				} else if !errors.Is(err, report.ErrNotFound) {
					t.Errorf("vote: %v", err)
				}
				if v == 10 {
					close(half)
				}
			})
		}
		<-half
		hide(filed.ID)
		voting.Wait()
		var announced int
		hidden := false
		for _, r := range f.outbox() {
			switch {
			case r.Report != filed.ID:
			case r.Key == string(event.ModeratedKey):
				hidden = true
			case hidden:
				t.Errorf("%s of version %d comes after the report was hidden", r.Key, r.Version)
			case r.Key == string(event.VoteReceivedKey):
				announced++
			}
		}
		view, err := f.Get(t.Context(), filed.ID, report.User{Official: true})
		if err != nil || announced != counted || view.Score != int64(counted) || view.Version != filed.Version+int64(counted)+1 {
			t.Errorf("%d votes counted, %d announced, score %d at version %d (error %v)", counted, announced, view.Score, view.Version, err)
		}
	}
}

// A duplicate that is hidden when its original is closed follows once it is shown.
func TestHiddenDuplicateFollowsLater(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runDuplicates()
	original, duplicate := f.file(ann, draft(report.Public)), f.file(bob, draft(report.Public))
	f.mustMark(duplicate.ID, original.ID)
	f.mustHide(duplicate.ID)
	f.mustMove(original.ID, report.Resolved, "Done.")
	f.followed()
	if got := f.status(duplicate.ID); got != report.Pending {
		t.Errorf("hidden it is %s, want %s", got, report.Pending)
	}
	if err := f.moderation.Unhide(t.Context(), duplicate.ID, report.Versions{}, hider); err != nil {
		t.Fatal(err)
	}
	eventually.True(f.t, "it follows", func() bool { return f.status(duplicate.ID) == report.Resolved })
}

// The complaints of an erased person are deleted.
func TestErasedComplaints(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Public))
	for _, who := range []string{kanari.ID, bob.ID} {
		if err := f.moderation.Complain(t.Context(), filed.ID, report.Complaint{Reason: report.Spam, Text: "by " + who}, who); err != nil {
			t.Fatal(err)
		}
	}
	f.erase(f.newEraser(), kanari.ID)
	if n := f.number(`select count(*) from abuse_reports where text = 'by ` + bob.ID + `'`); n != 1 || f.number(`select count(*) from abuse_reports`) != 1 {
		t.Error("want the complaint of the other, and no more")
	}
}

func TestReference(t *testing.T) {
	t.Parallel()
	for range 100 {
		id := uuid.Must(uuid.NewV7())
		suffix, ok := report.ReferenceOf(strings.Split(report.Reference(id), "-"))
		if !ok || !strings.HasSuffix(strings.ReplaceAll(id.String(), "-", ""), suffix) {
			t.Fatalf("%s is called %s, which finds %q", id, report.Reference(id), suffix)
		}
	}
}
