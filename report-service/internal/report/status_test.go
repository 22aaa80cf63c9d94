package report_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// filed returns a report of ann with the given status, at version 7.
func filed(status report.Status) *report.Filing {
	f, err := report.New(report.Report{Title: "Dark lamp", Privacy: report.Public}, report.Reporter{ID: "ann", Name: "Ann"}, now)
	if err != nil {
		panic(err)
	}
	f.Status, f.Version = status, 7
	return &f
}

func TestMove(t *testing.T) {
	t.Parallel()
	const (
		same    = "same"    // nothing happens
		free    = "free"    // legal without a note
		noted   = "noted"   // legal with a note
		illegal = "illegal" // never
	)
	table := map[report.Status]map[report.Status]string{
		report.Pending: {
			report.Pending: same, report.InProgress: free, report.Resolved: free, report.Rejected: noted},
		report.InProgress: {
			report.Pending: free, report.InProgress: same, report.Resolved: free, report.Rejected: noted},
		report.Resolved: {
			report.Pending: illegal, report.InProgress: noted, report.Resolved: same, report.Rejected: illegal},
		report.Rejected: {
			report.Pending: noted, report.InProgress: illegal, report.Resolved: illegal, report.Rejected: same},
	}
	for from, row := range table {
		for to, want := range row {
			for _, note := range []string{"", " \n ", "because"} {
				t.Run(string(from)+" to "+string(to)+" with note "+note, func(t *testing.T) {
					t.Parallel()
					wantKind, wantMoved := fault.Kind(""), false
					switch {
					case want == illegal:
						wantKind = report.IllegalTransition
					case want == noted && note != "because":
						wantKind = fault.Invalid
					case want != same:
						wantMoved = true
					}
					checkMove(t, filed(from), report.Move{To: to, Note: note, By: "olga"}, wantKind, wantMoved)
				})
			}
		}
	}
}

func checkMove(t *testing.T, f *report.Filing, m report.Move, wantKind fault.Kind, wantMoved bool) {
	t.Helper()
	before := *f
	entry, moved, err := f.Move(m, now.Add(time.Hour))
	if got := fault.KindOf(err); got != wantKind || (err != nil) != (wantKind != "") {
		t.Fatalf("Move: kind %q, want %q (error: %v)", got, wantKind, err)
	}
	if moved != wantMoved {
		t.Fatalf("Move: moved %t, want %t", moved, wantMoved)
	}
	if !moved {
		if !reflect.DeepEqual(*f, before) {
			t.Errorf("the report changed to %+v", f)
		}
		return
	}
	at := now.Add(time.Hour).Truncate(time.Microsecond)
	if f.Status != m.To || f.Version != before.Version+1 || !f.UpdatedAt.Equal(at) {
		t.Errorf("report is %s at version %d of %s, want %s at %d of %s", f.Status, f.Version, f.UpdatedAt, m.To, before.Version+1, at)
	}
	want := report.Change{From: before.Status, To: m.To, Note: entry.Note, By: "olga", Version: f.Version, At: at}
	if entry != want || (m.Note == "because") != (entry.Note == "because") {
		t.Errorf("history entry is %+v, want %+v", entry, want)
	}
}

func TestMoveIfMatch(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]fault.Kind{
		`*`: "", `"7"`: "", `"6", "7"`: "", `"6"`: report.Stale, `W/"7"`: report.Stale, `"07"`: report.Stale, `""`: report.Stale,
	} {
		versions, err := report.ParseIfMatch(header)
		if err != nil {
			t.Errorf("ParseIfMatch(%s): %v", header, err)
			continue
		}
		_, _, err = filed(report.Pending).Move(report.Move{To: report.Resolved, IfMatch: versions}, now)
		if got := fault.KindOf(err); got != want {
			t.Errorf("Move with If-Match %s: kind %q, want %q", header, got, want)
		}
	}
}

func TestNewDropsTheNameOfAnAnonymousReporter(t *testing.T) {
	t.Parallel()
	by := report.Reporter{ID: "ann", Name: "Ann"}
	for privacy, want := range map[report.Privacy]report.Reporter{report.Public: by, report.Anonymous: {ID: "ann"}} {
		filing, err := report.New(report.Report{Title: "Pothole", Privacy: privacy}, by, time.Now())
		if err != nil || filing.Reporter != want {
			t.Errorf("%s: reporter %+v (error %v), want %+v", privacy, filing.Reporter, err, want)
		}
	}
}

// JSON Schema's \S takes these for text, or for nothing but white space.
func TestNewWantsATitle(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]fault.Kind{" a ": "", "": fault.Invalid, " \n": fault.Invalid, "\u2028\u00a0": fault.Invalid} {
		f, err := report.New(report.Report{Title: title}, report.Reporter{}, now)
		if got := fault.KindOf(err); got != want || want == "" && f.Title != "a" {
			t.Errorf("New(%q): title %q, kind %q, want %q", title, f.Title, got, want)
		}
	}
}

// A weak tag is refused for what it is: the report may not have changed at all.
func TestWeakTagIsNamed(t *testing.T) {
	t.Parallel()
	versions, err := report.ParseIfMatch(`W/"7"`)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = filed(report.Pending).Move(report.Move{To: report.Resolved, IfMatch: versions}, now)
	if err == nil || !strings.Contains(err.Error(), "weak") {
		t.Errorf("Move: %v, want an error that names the weak tag", err)
	}
}
