package postgres_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// named returns a category with one name in both languages.
func named(id int32, name string) report.Category {
	t := report.CategoryText{Name: name}
	return report.Category{ID: id, Name: name, Accepts: true, Texts: map[string]report.CategoryText{"en": t, "id": t}}
}

// A list that was replaced by one replica is soon that of the others, and a report has
// the new name at once.
func TestReplicasHaveANewList(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := openFixture(t, f.database)
	if _, err := other.categories.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	rep := f.file(ann, draft(report.Public))
	if _, err := f.categories.Replace(t.Context(), []report.Category{named(2, "Lamps"), named(0, "Gas")}, report.Versions{}, pavel); err != nil {
		t.Fatal(err)
	}
	eventually.NothingMissing(t, "the other replica's list", func() string {
		list, err := other.categories.List(t.Context())
		if err != nil || list.Revision != 2 || len(list.Categories) != 12 || list.Categories[0].Name != "Lamps" {
			return "the new list"
		}
		return ""
	})
	if view, err := other.Get(t.Context(), rep.ID, report.User{}); err != nil || view.Category.Name != "Lamps" {
		t.Errorf("the report's category is %q (error %v), want Lamps", view.Category.Name, err)
	}
}

// Of two operators who edit the same list, one is refused and loses nothing.
func TestListIsReplacedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = f.categories.Replace(t.Context(), []report.Category{named(2, "Lamps")}, report.VersionOnly(1), pavel)
		})
	}
	wg.Wait()
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
		} else {
			wantKind(t, err, report.Stale)
		}
	}
	if n := f.number(`select count(*) from category_audit`); done != 1 || n != 1 {
		t.Errorf("%d replacements and %d entries of the audit, want one", done, n)
	}
	_, err := f.categories.Replace(t.Context(), []report.Category{named(4711, "Lamps")}, report.Versions{}, pavel)
	wantKind(t, err, fault.Invalid)
}

// The audit counts what residents see: a category behind one that goes has not changed.
func TestAuditOfCategories(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lamps, gas, trees := named(2, "Lamps"), named(3, "Gas"), named(5, "Trees")
	for _, tt := range []struct {
		name string
		list []report.Category
		want report.CategoryChange
	}{
		{"three of eleven", []report.Category{lamps, gas, trees}, report.CategoryChange{Changed: 3, Retired: 8}},
		{"the first goes", []report.Category{gas, trees}, report.CategoryChange{Retired: 1}},
		{"another order", []report.Category{trees, gas}, report.CategoryChange{Moved: true}},
		{"it comes back, with a new one", []report.Category{lamps, trees, named(0, "Noise"), gas}, report.CategoryChange{Changed: 1, Added: 1}},
	} {
		list, err := f.categories.Replace(t.Context(), tt.list, report.Versions{}, pavel)
		if err != nil {
			t.Fatal(err)
		}
		again, err := f.categories.Replace(t.Context(), list.Categories[:len(tt.list)], report.VersionOnly(list.Revision), pavel)
		if err != nil || again.Revision != list.Revision {
			t.Errorf("%s: the same list again has revision %d (error %v), want %d still", tt.name, again.Revision, err, list.Revision)
		}
		changes, err := f.categories.Changes(t.Context(), 1)
		if err != nil || len(changes) != 1 {
			t.Fatalf("%s: changes %+v, error %v", tt.name, changes, err)
		}
		got := changes[0]
		got.At, got.Actor, got.ActorName = time.Time{}, "", ""
		if got != tt.want {
			t.Errorf("%s: the audit has %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// A message has the name that the category had when it was written, and a report the
// one that it has now.
func TestRenamingLeavesMessagesAsTheyWere(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	category, err := f.categories.Category(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	d := draft(report.Public)
	d.Category = category
	rep := f.file(ann, d)
	if _, err := f.categories.Replace(t.Context(), []report.Category{named(2, "Lamps")}, report.Versions{}, pavel); err != nil {
		t.Fatal(err)
	}
	if payload := string(f.outbox()[0].Payload); !strings.Contains(payload, `"Street lights and signals"`) {
		t.Errorf("the message is %s, want the name of before", payload)
	}
	if view, err := f.Get(t.Context(), rep.ID, report.User{}); err != nil || view.Category.Name != "Lamps" {
		t.Errorf("the report has %q (error %v), want Lamps", view.Category.Name, err)
	}
}

// Messages carry the name in the city's first language, also where that was changed.
func TestNamesFollowTheCitysLanguage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, tt := range []struct{ language, want string }{
		{"id", "Lampu jalan dan lampu lalu lintas"},
		{"nl", "Lampu jalan dan lampu lalu lintas"}, // no text: the name stays
		{"en", "Street lights and signals"},
	} {
		if err := f.categories.UseLanguage(t.Context(), tt.language); err != nil {
			t.Fatal(err)
		}
		if c, err := f.categories.Category(t.Context(), 2); err != nil || c.Name != tt.want {
			t.Errorf("%s: the name is %q (error %v), want %q", tt.language, c.Name, err, tt.want)
		}
	}
}
