package postgres_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// reply adds an official's reply to a report.
func (f *fixture) reply(id uuid.UUID, text string, idempotent *report.Idempotent) error {
	f.t.Helper()
	a, err := report.NewReply(text, report.Official{ID: "olga", Name: "Olga"}, time.Now())
	if err != nil {
		f.t.Fatal(err)
	}
	_, err = f.Reply(f.t.Context(), id, a, idempotent)
	return err
}

// A reply is an entry of the history and a message, at any status, and changes
// nothing else. It is not a move: neither figures nor duplicates take it for one.
func TestReply(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Anonymous))
	for _, text := range []string{"We look at it on Thursday.", "It rains; Friday then."} {
		if err := f.reply(filed.ID, text, nil); err != nil {
			t.Fatal(err)
		}
	}
	f.mustMove(filed.ID, report.Resolved, "Mended.")
	if err := f.reply(filed.ID, "The lamp is of a new kind.", nil); err != nil {
		t.Fatal(err)
	}

	changes, err := f.History(t.Context(), filed.ID, report.User{})
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	for i, c := range changes {
		if c.Version != int64(i)+1 || c.IsReply() != (i == 1 || i == 2 || i == 4) {
			t.Errorf("entry %d is %+v", i, c)
		}
		notes = append(notes, c.Note)
	}
	if want := []string{"", "We look at it on Thursday.", "It rains; Friday then.", "Mended.", "The lamp is of a new kind."}; !slices.Equal(notes, want) {
		t.Errorf("the history says %q, want %q", notes, want)
	}
	var replies int
	for _, row := range f.rowsOf(event.StatusUpdatedKey) {
		var m event.StatusUpdate
		if err := json.Unmarshal(row.Payload, &m); err != nil {
			t.Fatal(err)
		}
		if m.Reply {
			replies++
		}
		if m.ReporterID != "" {
			t.Errorf("the message names the reporter: %s", row.Payload)
		}
	}
	if replies != 3 {
		t.Errorf("%d replies are announced, want 3", replies)
	}
	details, err := f.workbench.Details(t.Context(), filed.ID, report.User{Official: true})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []report.ActKind
	for _, act := range details.Acts {
		kinds = append(kinds, act.Kind)
	}
	if want := []report.ActKind{report.Replied, report.Replied, report.Moved, report.Replied}; !slices.Equal(kinds, want) {
		t.Errorf("the acts are %q, want %q", kinds, want)
	}
	counts, err := f.workbench.CountOverTime(t.Context(), report.Filter{FiledFrom: time.Now().Add(-time.Hour), FiledTo: time.Now().Add(time.Hour)}, report.Month)
	if err != nil || len(counts) != 1 || counts[0].Resolved != 1 || counts[0].Filed != 1 {
		t.Errorf("counted %+v (error %v), want one resolved", counts, err)
	}
	f.runDuplicates()
	duplicate := f.file(bob, draft(report.Public))
	f.mustMark(duplicate.ID, filed.ID)
	f.followed()
	if n := f.number(`select count(*) from status_history where report_id = $1 and note = 'Mended.'`, duplicate.ID); n != 1 {
		t.Error("the duplicate did not get the note with which its original was closed")
	}
}

// A reply that is sent again is there once, and the response has no words
// that an official may redact later.
func TestReplyOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Public))
	once := func() *report.Idempotent {
		return &report.Idempotent{UserID: "olga", Key: filed.ID.String() + " k", Request: [32]byte{1}, Response: report.StoredResponse(`{}`)}
	}
	for range 2 {
		if err := f.reply(filed.ID, "On Thursday.", once()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(f.rowsOf(event.StatusUpdatedKey)); n != 1 {
		t.Errorf("%d replies are announced, want 1", n)
	}
	f.mustHide(filed.ID)
	if err := f.reply(filed.ID, "Nobody sees it.", nil); fault.KindOf(err) != report.Hidden {
		t.Errorf("a hidden report takes a reply: %v", err)
	}
	if err := f.reply(uuid.New(), "What?", nil); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a report that does not exist takes a reply: %v", err)
	}
}
