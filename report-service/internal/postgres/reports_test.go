package postgres_test

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

func TestListFilters(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lamp := f.file(ann, draft(report.Public))
	d := report.Report{
		Title: "Pot-hole north/south", Category: report.Category{ID: 1, Name: "Roads and potholes"}, Privacy: report.Anonymous,
		Position: &report.Position{Latitude: 10, Longitude: 179},
	}
	hole := f.file(bob, d)
	d.Title, d.Position, d.Address = "O'Reilly's dog, 100% loud", nil, "Bäckerstraße 5"
	dog := f.file(ann, d)
	if _, err := f.Move(t.Context(), hole.ID, report.Move{To: report.InProgress, By: "olga"}); err != nil {
		t.Fatal(err)
	}
	words := func(q string) report.Filter { return report.Filter{Words: report.Words(q)} }
	for name, tt := range map[string]struct {
		filter report.Filter
		want   []uuid.UUID // newest first
	}{
		"all":                {report.Filter{}, []uuid.UUID{dog.ID, hole.ID, lamp.ID}},
		"status":             {report.Filter{Statuses: []report.Status{report.InProgress}}, []uuid.UUID{hole.ID}},
		"statuses":           {report.Filter{Statuses: []report.Status{report.InProgress, report.Pending}}, []uuid.UUID{dog.ID, hole.ID, lamp.ID}},
		"category":           {report.Filter{Categories: []int32{2}}, []uuid.UUID{lamp.ID}},
		"categories":         {report.Filter{Categories: []int32{1, 2}}, []uuid.UUID{dog.ID, hole.ID, lamp.ID}},
		"box":                {report.Filter{Box: &report.Box{West: 107, South: -7, East: 108, North: -6}}, []uuid.UUID{lamp.ID}},
		"antimeridian":       {report.Filter{Box: &report.Box{West: 178, South: 0, East: -178, North: 20}}, []uuid.UUID{hole.ID}},
		"box without any":    {report.Filter{Box: &report.Box{West: 1, South: 1, East: 2, North: 2}}, nil},
		"word":               {words("lamp"), []uuid.UUID{lamp.ID}},
		"beginning, case":    {words("LAM cros"), []uuid.UUID{lamp.ID}},
		"in the address":     {words("asia 8"), []uuid.UUID{lamp.ID}},
		"behind punctuation": {words("hole south"), []uuid.UUID{hole.ID}},
		"with punctuation":   {words("o'reilly's 100%"), []uuid.UUID{dog.ID}},
		"beyond ASCII":       {words("BÄCKER"), []uuid.UUID{dog.ID}},
		"not all words":      {words("lamp hole"), nil},
		"mine":               {report.Filter{Reporter: ann.ID}, []uuid.UUID{dog.ID, lamp.ID}},
		"together":           {report.Filter{Reporter: ann.ID, Categories: []int32{1}, Words: []string{"dog"}}, []uuid.UUID{dog.ID}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page, err := f.List(t.Context(), tt.filter, nil, 10, "")
			if err != nil || page.Next != nil {
				t.Fatalf("List: next %v, error %v; want neither", page.Next, err)
			}
			if got := idsOf(page.Reports); !slices.Equal(got, tt.want) {
				t.Errorf("List: got %v, want %v", got, tt.want)
			}
		})
	}
}

func idsOf(views []report.View) []uuid.UUID {
	var ids []uuid.UUID
	for _, v := range views {
		ids = append(ids, v.ID)
	}
	return ids
}

// A reader who turns the pages sees every report that existed at the start
// once, although others are filed at the same time, several of them at the same
// instant.
func TestPagesAreCompleteUnderInserts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	instant := time.Now().Add(-time.Hour)
	want := make(map[uuid.UUID]int)
	for i := range 50 {
		rep := filing(draft(report.Public), ann, instant.Add(time.Duration(i/10)*time.Second))
		if _, err := f.Create(t.Context(), rep, nil); err != nil {
			t.Fatal(err)
		}
		want[rep.ID] = 1
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 50 {
			f.file(bob, draft(report.Public))
		}
	})
	got := make(map[uuid.UUID]int)
	var after *report.Cursor
	for pages := 0; ; pages++ {
		page, err := f.List(t.Context(), report.Filter{}, after, 7, "")
		if err != nil || pages > 100 {
			t.Fatalf("List: page %d, error %v", pages, err)
		}
		for _, v := range page.Reports {
			got[v.ID]++
		}
		if page.Next == nil {
			break
		}
		if after, err = report.ParseCursor(page.Next.String()); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	for id := range want {
		if got[id] != 1 {
			t.Errorf("report %s was seen %d times", id, got[id])
		}
	}
}

// A report's fields depend on its reader, and never reveal more.
func TestReaders(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, privacy := range []report.Privacy{report.Public, report.Anonymous} {
		id := f.file(ann, draft(privacy)).ID
		if _, err := f.Vote(t.Context(), id, bob.ID, report.Downvote); err != nil {
			t.Fatal(err)
		}
		name := map[report.Privacy]string{report.Public: ann.Name}[privacy]
		for reader, want := range map[string]report.View{
			"":     {ReporterName: name},
			ann.ID: {ReporterName: name, Mine: true},
			bob.ID: {ReporterName: name, MyVote: report.Downvote},
		} {
			view, err := f.Get(t.Context(), id, report.User{ID: reader})
			if err != nil {
				t.Fatal(err)
			}
			page, err := f.List(t.Context(), report.Filter{}, nil, 1, reader)
			if err != nil {
				t.Fatal(err)
			}
			for from, got := range map[string]report.View{"Get": view, "List": page.Reports[0]} {
				got.Report, got.Photos = report.Report{}, nil
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s of a %s report as %q: %+v, want %+v", from, privacy, reader, got, want)
				}
			}
		}
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.file(ann, draft(report.Public)).ID
	for _, m := range []report.Move{{To: report.Resolved}, {To: report.Resolved, Note: "again"}, {To: report.InProgress, Note: "not yet"}} {
		m.By = "olga"
		if _, err := f.Move(t.Context(), id, m); err != nil {
			t.Fatal(err)
		}
	}
	changes, err := f.History(t.Context(), id, report.User{})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, c := range changes {
		got += fmt.Sprintf("%s>%s@%d %s;", c.From, c.To, c.Version, c.Note)
	}
	if want := ">pending@1 ;pending>resolved@2 ;resolved>in_progress@3 not yet;"; got != want {
		t.Errorf("history %q, want %q", got, want)
	}
	if rows := f.outbox(); len(rows) != 3 {
		t.Errorf("%d events, want 3: the status that stood already is none", len(rows))
	}
	_, err = f.History(t.Context(), uuid.New(), report.User{})
	wantKind(t, err, fault.NotFound)
	_, err = f.Get(t.Context(), uuid.New(), report.User{})
	wantKind(t, err, fault.NotFound)
	_, err = f.Move(t.Context(), uuid.New(), report.Move{To: report.Resolved})
	wantKind(t, err, fault.NotFound)
}

// The oldest first is the newest first, backwards, whatever the pages.
func TestListOldestFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	instant := time.Now().Add(-time.Hour)
	for i := range 20 {
		rep := filing(draft(report.Public), ann, instant.Add(time.Duration(i/5)*time.Second))
		if _, err := f.Create(t.Context(), rep, nil); err != nil {
			t.Fatal(err)
		}
	}
	want := f.pages(report.Filter{})
	slices.Reverse(want)
	if got := f.pages(report.Filter{Order: report.Oldest}); !slices.Equal(got, want) || len(got) != 20 {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// pages turns all pages of a list.
func (f *fixture) pages(filter report.Filter) (ids []uuid.UUID) {
	f.t.Helper()
	var after *report.Cursor
	for {
		page, err := f.List(f.t.Context(), filter, after, 3, "")
		if err != nil {
			f.t.Fatal(err)
		}
		ids = append(ids, idsOf(page.Reports)...)
		if after = page.Next; after == nil {
			return ids
		}
	}
}

// The figures of the city are of what everybody sees, count the last resolution of a report
// that is resolved still, and are read once for all who ask.
func TestFigures(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	private := draft(report.Public)
	private.Visibility = report.ForOfficials
	f.file(ann, private)
	f.file(ann, draft(report.Public))
	hidden, again := f.file(ann, draft(report.Public)), f.file(bob, draft(report.Anonymous))
	for i, took := range []time.Duration{time.Hour, 50 * time.Hour, 100 * time.Hour} {
		filed := f.file(ann, draft(report.Public))
		f.mustMove(filed.ID, report.Resolved, "Mended.")
		f.exec(`update reports set created_at = created_at - $2::interval where id = $1`, filed.ID, took)
		if i == 0 {
			f.exec(`update status_history set changed_at = changed_at - interval '40 days' where report_id = $1`, filed.ID)
			f.exec(`update reports set created_at = created_at - interval '40 days' where id = $1`, filed.ID)
		}
	}
	f.mustMove(again.ID, report.Resolved, "Mended.")
	f.mustMove(again.ID, report.InProgress, "It is dark again.")
	f.mustMove(hidden.ID, report.Resolved, "Mended.")
	if err := f.moderation.Hide(t.Context(), hidden.ID, "names a neighbour", report.Versions{}, olga); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := f.Figures(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got.Open != 2 || got.Resolved != 2 || got.Median == nil || got.Median.Round(time.Minute) != 50*time.Hour {
			t.Errorf("figures %+v, want 2 open, 2 resolved and a median of 50 hours", got)
		}
		f.file(ann, draft(report.Public)) // known to the next who ask after five minutes
	}
}
