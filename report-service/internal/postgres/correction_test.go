package postgres_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A correction changes the report, is an entry of the history that says what was and
// what is, and is announced with both, without the reporter of an anonymous report. One
// that changes nothing does nothing.
func TestCorrect(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, privacy := range []report.Privacy{report.Public, report.Anonymous} {
		filed := f.file(ann, draft(privacy))
		roads := report.Category{ID: 1, Name: "Roads and potholes"}
		c := report.Correction{
			Category: &roads, Position: &report.Position{Latitude: -6.8, Longitude: 107.5}, Address: new("Jl. Braga 1"),
			Reason: " It is the road. ", By: olga, Official: true, IfMatch: report.VersionOnly(1),
		}
		view, err := f.Correct(t.Context(), filed.ID, c)
		if err != nil {
			t.Fatal(err)
		}
		if view.Category.ID != 1 || *view.Position != *c.Position || view.Address != "Jl. Braga 1" || view.Version != 2 || view.Status != report.Pending {
			t.Errorf("%s: corrected to %+v", privacy, view)
		}
		_, err = f.Correct(t.Context(), filed.ID, c)
		wantKind(t, err, report.Stale)
		c.IfMatch = report.VersionOnly(2)
		if view, err = f.Correct(t.Context(), filed.ID, c); err != nil || view.Version != 2 {
			t.Errorf("%s: the same again: version %d, error %v", privacy, view.Version, err)
		}

		changes, err := f.History(t.Context(), filed.ID, report.User{})
		if err != nil {
			t.Fatal(err)
		}
		want := &report.Corrected{
			Category: &report.Replaced[int32]{From: 2, To: 1},
			Position: &report.Replaced[*report.Position]{From: filed.Position, To: c.Position},
			Address:  &report.Replaced[string]{From: "Jl. Asia Afrika 8", To: "Jl. Braga 1"},
		}
		if last := changes[len(changes)-1]; len(changes) != 2 || !reflect.DeepEqual(last.Corrected, want) ||
			last.Note != "It is the road." || last.IsReply() || last.From != report.Pending {
			t.Errorf("%s: the history is %+v", privacy, changes)
		}
		work, err := f.workbench.Details(t.Context(), filed.ID, report.User{Official: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(work.Acts) != 1 || work.Acts[0].Kind != report.Recast || work.Acts[0].By != olga {
			t.Errorf("%s: the acts are %+v", privacy, work.Acts)
		}

		rows := f.rowsOf(event.CorrectedKey)
		var m event.ReportCorrected
		if err := json.Unmarshal(rows[len(rows)-1].Payload, &m); err != nil {
			t.Fatal(err)
		}
		if m.ReportID != filed.ID || m.ReportVersion != 2 || m.CategoryID != 1 || m.CategoryName != roads.Name || m.PreviousCategoryID != 2 ||
			!m.PlaceMoved || *m.Latitude != -6.8 || *m.PreviousLatitude != -6.9 || m.Note != "It is the road." {
			t.Errorf("%s: announced as %s", privacy, rows[len(rows)-1].Payload)
		}
		if (m.ReporterID == "") != (privacy == report.Anonymous) {
			t.Errorf("%s: the message names %q", privacy, m.ReporterID)
		}
	}
	if n := len(f.rowsOf(event.CorrectedKey)); n != 2 {
		t.Errorf("%d corrections were announced, want 2", n)
	}
}

// A new category has its department take the report, and its target counts from the
// filing on; a report that is closed or hidden, and one without a change of its
// category, keeps its deadline.
func TestCorrectionRoutesAndSetsTheTarget(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(`insert into departments (id, name) values (7, 'Roads'), (8, 'Lights')`)
	f.exec(`update categories set department_id = 7, target_hours = 5 where id = 1`)
	filed := f.file(ann, f.withTarget(report.Public))
	if err := f.workbench.Assign(t.Context(), filed.ID, report.Assignment{Department: 8}, olga); err != nil {
		t.Fatal(err)
	}
	correct := func(c report.Correction) report.TaskDetails {
		t.Helper()
		c.Reason, c.By, c.Official = "wrong", olga, true
		if _, err := f.Correct(t.Context(), filed.ID, c); err != nil {
			t.Fatal(err)
		}
		work, err := f.workbench.Details(t.Context(), filed.ID, report.User{Official: true})
		if err != nil {
			t.Fatal(err)
		}
		return work
	}
	f.late(filed.ID, 2)
	if levels := f.overdue(filed.ID); len(levels) == 0 {
		t.Fatal("the report is not overdue")
	}
	moved := correct(report.Correction{Address: new("Jl. Braga 1")})
	if moved.Department.ID != 8 || moved.Overdue == 0 {
		t.Errorf("another address: department %+v, overdue %d", moved.Department, moved.Overdue)
	}
	work := correct(report.Correction{Category: &report.Category{ID: 1, Name: "Roads and potholes", Target: 5 * time.Hour}})
	if work.Department.ID != 7 || !work.Routed || work.Overdue != 0 {
		t.Errorf("department %+v, routed %t, overdue %d", work.Department, work.Routed, work.Overdue)
	}
	// The clock began with the filing, which late has put two hours back.
	if want := filed.CreatedAt.Add(3 * time.Hour); work.DueAt == nil || !work.DueAt.Equal(want) {
		t.Errorf("due at %v, want %v", work.DueAt, want)
	}
	if work = correct(report.Correction{Category: &report.Category{ID: 3, Name: "Waste and illegal dumping"}}); work.DueAt != nil {
		t.Errorf("without a target, due at %v", work.DueAt)
	}

	if err := f.moderation.Hide(t.Context(), filed.ID, "names a neighbour", report.Versions{}, olga); err != nil {
		t.Fatal(err)
	}
	_, err := f.Correct(t.Context(), filed.ID, report.Correction{Address: new("x"), Reason: "wrong", By: olga, Official: true})
	wantKind(t, err, report.Hidden)
}

// A reporter's correction is announced to everybody but them, with the new title, and with
// neither the place before nor, of an anonymous report, who they are. Its answer to a
// repeated filing has the new words.
func TestCorrectOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, privacy := range []report.Privacy{report.Public, report.Anonymous} {
		filed := f.file(ann, draft(privacy))
		c := report.Correction{
			Title: new("Two lamps"), Description: new("Since Monday"), Position: &report.Position{Latitude: -6.8, Longitude: 107.5},
			By: report.Official{ID: ann.ID, Name: ann.Name},
		}
		view, err := f.Correct(t.Context(), filed.ID, c)
		if err != nil {
			t.Fatal(err)
		}
		if view.Title != "Two lamps" || view.Description != "Since Monday" || *view.Position != *c.Position || !view.Mine || view.Version != 2 {
			t.Errorf("%s: corrected to %+v", privacy, view)
		}
		if again, err := f.Correct(t.Context(), filed.ID, c); err != nil || again.Version != 2 {
			t.Errorf("%s: the same again: version %d, error %v", privacy, again.Version, err)
		}
		changes, err := f.History(t.Context(), filed.ID, report.User{})
		if err != nil {
			t.Fatal(err)
		}
		if want := (report.Corrected{ByReporter: true, Words: true, Place: true}); len(changes) != 2 || *changes[1].Corrected != want || changes[1].IsReply() {
			t.Errorf("%s: the history is %+v", privacy, changes)
		}
		if n := f.number(`select count(*) from status_history where report_id = $1 and changed_by is not null`, filed.ID); n != 0 {
			t.Errorf("%s: the history names somebody", privacy)
		}
		if found, err := f.List(t.Context(), report.Filter{Words: []string{"monday"}, IDs: []uuid.UUID{filed.ID}}, nil, 10, ""); err != nil || len(found.Reports) != 1 {
			t.Errorf("%s: %d reports are found by the new words, error %v", privacy, len(found.Reports), err)
		}
		rows := f.rowsOf(event.CorrectedKey)
		last := rows[len(rows)-1]
		var m event.ReportCorrected
		if err := json.Unmarshal(last.Payload, &m); err != nil {
			t.Fatal(err)
		}
		if m.ReportTitle != "Two lamps" || !m.ByReporter || !m.PlaceMoved || m.PreviousLatitude != nil || m.Note != "" || (m.ReporterID == "") != (privacy == report.Anonymous) {
			t.Errorf("%s: announced as %s", privacy, last.Payload)
		}
	}
	redacted := f.file(ann, draft(report.Anonymous))
	if err := f.moderation.Redact(t.Context(), redacted.ID, report.Rewording{Title: new("[redacted]"), Reason: "a name"}, olga); err != nil {
		t.Fatal(err)
	}
	_, err := f.Correct(t.Context(), redacted.ID, report.Correction{Title: &redacted.Title, By: report.Official{ID: ann.ID}})
	wantKind(t, err, report.NotPending)
	hidden := f.file(ann, draft(report.Anonymous))
	if err := f.moderation.Hide(t.Context(), hidden.ID, "names a neighbour", report.Versions{}, olga); err != nil {
		t.Fatal(err)
	}
	for who, want := range map[string]fault.Kind{bob.ID: fault.NotFound, ann.ID: report.Hidden} {
		_, err := f.Correct(t.Context(), hidden.ID, report.Correction{Title: new("x"), By: report.Official{ID: who}})
		wantKind(t, err, want)
	}
}
