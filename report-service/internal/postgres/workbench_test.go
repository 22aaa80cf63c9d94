package postgres_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// An act is recorded once, under the name that the official has now; a name that
// another official gives is taken only if none is known.
func TestActs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed, wakes := f.file(ann, draft(report.Anonymous)), f.wakes.Load()
	f.exec(`insert into departments (id, name) values (7, 'Roads')`)
	otto := report.Official{ID: "otto-id", Name: "Otto"}
	renamed := report.Official{ID: olga.ID, Name: "Olga Newname"}
	steps := []struct {
		name string
		do   func() error
		acts int // in all
	}{
		{"assign", func() error {
			return f.workbench.Assign(t.Context(), filed.ID, report.Assignment{Assignee: &otto, Department: 7}, olga)
		}, 1},
		{"assign again, under another name", func() error {
			return f.workbench.Assign(t.Context(), filed.ID, report.Assignment{Assignee: &report.Official{ID: otto.ID, Name: "O."}, Department: 7}, olga)
		}, 1},
		{"note", func() error { return f.workbench.AddNote(t.Context(), filed.ID, "seen", renamed) }, 2},
		{"assign to nobody", func() error {
			return f.workbench.Assign(t.Context(), filed.ID, report.Assignment{}, otto)
		}, 3},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if n := f.number(`select count(*) from report_acts`); n != step.acts {
			t.Errorf("%s: %d acts, want %d", step.name, n, step.acts)
		}
	}
	work, err := f.workbench.Details(t.Context(), filed.ID, report.User{Official: true})
	if err != nil {
		t.Fatal(err)
	}
	assigned, noted, freed := work.Acts[0], work.Acts[1], work.Acts[2]
	if assigned.By != renamed || *assigned.Assignee != otto || assigned.Department.Name != "Roads" {
		t.Errorf("assigned: %+v to %+v and %+v, want by %+v to %+v and Roads", assigned, assigned.Assignee, assigned.Department, renamed, otto)
	}
	if noted.Kind != report.Noted || noted.Text != "seen" || noted.By != renamed {
		t.Errorf("noted: %+v, want the note by %+v", noted, renamed)
	}
	if freed.By != otto || freed.Assignee != nil || freed.Department != nil || work.Assignee != nil {
		t.Errorf("freed: %+v, want by %+v, to nobody", freed, otto)
	}
	if got := f.wakes.Load(); got != wakes {
		t.Error("the relay was woken for what is not announced")
	}

	for name, refusal := range map[string]error{
		"invalid":   f.workbench.Assign(t.Context(), filed.ID, report.Assignment{Department: 8}, olga),
		"not found": f.workbench.AddNote(t.Context(), uuid.New(), "seen", olga),
	} {
		wantKind(t, refusal, fault.Kind(name))
	}
}
