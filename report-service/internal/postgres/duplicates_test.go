package postgres_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

var olga = report.Official{ID: "olga", Name: "Olga"}

// runDuplicates moves duplicates after their originals until the test ends.
func (f *fixture) runDuplicates() {
	f.t.Helper()
	ctx, end := context.WithCancel(context.WithoutCancel(f.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- f.duplicates.Run(ctx, zerolog.New(zerolog.NewTestWriter(f.t))) }()
	f.t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			f.t.Errorf("RunDuplicates: %v", err)
		}
	})
}

// status returns the status of a report.
func (f *fixture) status(id uuid.UUID) report.Status {
	f.t.Helper()
	view, err := f.Get(f.t.Context(), id, report.User{Official: true})
	if err != nil {
		f.t.Fatal(err)
	}
	return view.Status
}

func (f *fixture) mustMove(id uuid.UUID, to report.Status, note string) {
	f.t.Helper()
	if _, err := f.Move(f.t.Context(), id, report.Move{To: to, Note: note, By: olga.ID}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) mustMark(id, original uuid.UUID) {
	f.t.Helper()
	if err := f.duplicates.Set(f.t.Context(), id, original, olga); err != nil {
		f.t.Fatal(err)
	}
}

// followed waits until all duplicates have followed.
func (f *fixture) followed() {
	f.t.Helper()
	eventually.True(f.t, "the duplicates have followed", func() bool {
		var left int
		return f.pool.QueryRow(f.t.Context(), `select count(*) from duplicate_ends`).Scan(&left) == nil && left == 0
	})
}

// The duplicates end with their original, each with an event of its own for its
// reporter. None of the events names other reports or reporters.
func TestDuplicatesEndWithTheOriginal(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.runDuplicates()
	original, anonymous := f.file(ann, draft(report.Public)).ID, f.file(bob, draft(report.Anonymous)).ID
	rejected, other := f.file(bob, draft(report.Public)).ID, f.file(bob, draft(report.Public)).ID
	f.mustMark(anonymous, original)
	f.mustMark(rejected, original)
	f.mustMove(rejected, report.Rejected, "for a reason of its own")
	f.mustMove(original, report.InProgress, "")
	before := len(f.outbox())
	f.mustMove(original, report.Resolved, "The lamp is new")
	f.followed()
	for id, want := range map[uuid.UUID]report.Status{anonymous: report.Resolved, rejected: report.Rejected, other: report.Pending} {
		if got := f.status(id); got != want {
			t.Errorf("status %s, want %s", got, want)
		}
	}
	rows := f.outbox()[before:]
	if len(rows) != 2 {
		t.Fatalf("%d events, want one for the original and one for the duplicate", len(rows))
	}
	end := rows[1]
	if recipient, err := f.keys.Open(end.Report, end.Headers[event.RecipientHeader]); err != nil || recipient != bob.ID || end.Report != anonymous {
		t.Errorf("the event about %s is for %q (error %v), want it to reach who filed the duplicate", end.Report, recipient, err)
	}
	if !bytes.Contains(end.Payload, []byte("The lamp is new")) {
		t.Errorf("the event has not the note of the original: %s", end.Payload)
	}
	for _, secret := range []string{bob.ID, bob.Name, ann.ID, ann.Name, original.String()} {
		if strings.Contains(string(end.Payload), secret) {
			t.Errorf("the event tells %q: %s", secret, end.Payload)
		}
	}
}

// A replica dies between the end of the original and that of its duplicates:
// the next one continues, and nobody is notified twice.
func TestDuplicatesEndAfterACrash(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	original := f.file(ann, draft(report.Public)).ID
	var duplicates []uuid.UUID
	for range 3 {
		id := f.file(bob, draft(report.Anonymous)).ID
		f.mustMark(id, original)
		duplicates = append(duplicates, id)
	}
	f.mustMove(original, report.Resolved, "Done") // nothing runs that has them follow
	f.mustMove(duplicates[0], report.Resolved, "Done")
	before := len(f.outbox())
	f.replica().runDuplicates()
	f.replica().runDuplicates()
	f.followed()
	for _, id := range duplicates {
		if got := f.status(id); got != report.Resolved {
			t.Errorf("a duplicate is %s, want resolved", got)
		}
	}
	if got := len(f.outbox()) - before; got != 2 {
		t.Errorf("%d events for two duplicates that were open", got)
	}
}

// An original that is reopened in time takes nothing with it; a duplicate of
// one that is closed follows at once.
func TestDuplicatesOfReopenedAndClosed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	original, duplicate, late := f.file(ann, draft(report.Public)).ID, f.file(bob, draft(report.Public)).ID, f.file(bob, draft(report.Public)).ID
	f.mustMark(duplicate, original)
	f.mustMove(original, report.Resolved, "")
	f.mustMove(original, report.InProgress, "not yet")
	f.runDuplicates()
	f.followed()
	if got := f.status(duplicate); got != report.Pending {
		t.Errorf("the duplicate of a reopened report is %s", got)
	}
	if err := f.duplicates.Set(t.Context(), duplicate, uuid.Nil, olga); err != nil {
		t.Fatal(err)
	}
	f.mustMove(original, report.Resolved, "now it is")
	f.mustMark(late, original)
	eventually.True(f.t, "the late duplicate follows", func() bool { return f.status(late) == report.Resolved })
	if got := f.status(duplicate); got != report.Pending {
		t.Errorf("a report that is no longer a duplicate is %s", got)
	}
	work, err := f.workbench.Details(t.Context(), duplicate, report.User{Official: true})
	if err != nil || work.Original != nil || len(work.Acts) != 2 {
		t.Errorf("work %+v (error %v), want both acts and no original", work, err)
	}
}
