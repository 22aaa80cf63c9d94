package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/paulmach/orb"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/platform/testing/scheduletest"
	"github.com/cityconnect/cityconnect/report-service/internal/area"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// stripe is an area of the city between two longitudes.
func stripe(code string, west, east float64) area.Area {
	return area.Area{
		Area: report.Area{Code: code}, Names: map[string]string{"en": code, "id": code},
		Shape: area.Shape{{orb.Ring{{west, -7}, {east, -7}, {east, -6}, {west, -6}, {west, -7}}}},
	}
}

// setAreas replaces the areas, as one that is known to all replicas.
func (f *fixture) setAreas(areas ...area.Area) {
	f.t.Helper()
	if _, err := f.areas.Replace(f.t.Context(), areas, report.Versions{}, pavel); err != nil {
		f.t.Fatal(err)
	}
	f.exec(`update area_list set changed_at = now() - interval '1 minute'`)
}

// fileAt files a report at a longitude of the city.
func (f *fixture) fileAt(longitude float64) report.Filing {
	f.t.Helper()
	d := draft(report.Public)
	d.Position = report.NewPosition(-6.5, longitude)
	areas, err := f.areas.List(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	d.Area = areas.At(d.Position)
	return f.file(ann, d)
}

// areaOf returns the code of a report's area.
func (f *fixture) areaOf(id uuid.UUID) string {
	f.t.Helper()
	view, err := f.Get(f.t.Context(), id, report.User{})
	if err != nil {
		f.t.Fatal(err)
	}
	return view.Area.Code
}

// A new list moves open reports, and gives an area to closed ones that had none. Closed
// ones keep theirs, also that of an area which is gone.
func TestNewAreasMoveOpenReports(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before := f.fileAt(106.85) // there were no areas
	f.setAreas(stripe("west", 106.8, 106.9), stripe("east", 106.9, 107))
	open, closed := f.fileAt(106.85), f.fileAt(106.85)
	f.exec(`update reports set status = 'resolved' where id = any($1)`, []uuid.UUID{closed.ID, before.ID})
	locate := func(want ...string) {
		t.Helper()
		if err := scheduletest.Run(t.Context(), f.pool, f.areas.Job()); err != nil {
			t.Fatal(err)
		}
		if got := []string{f.areaOf(before.ID), f.areaOf(open.ID), f.areaOf(closed.ID)}; !slices.Equal(got, want) {
			t.Errorf("the reports are in %q, want %q", got, want)
		}
		if located, err := f.areas.Located(t.Context()); err != nil || !located {
			t.Errorf("located is %t (error %v) after the run", located, err)
		}
	}
	locate("west", "west", "west")
	f.setAreas(stripe("east", 106.8, 107))
	if located, err := f.areas.Located(t.Context()); err != nil || located {
		t.Errorf("located is %t (error %v) before the run", located, err)
	}
	locate("west", "east", "west")
	f.setAreas()
	locate("west", "", "west")
	// A correction of the place is in the area of the new place; one of the address stays.
	f.setAreas(stripe("east", 106.9, 107))
	correct := func(c report.Correction, want string) {
		t.Helper()
		c.Reason, c.By, c.Official = "There", olga, true
		if view, err := f.Correct(t.Context(), closed.ID, c); err != nil || view.Area.Code != want {
			t.Errorf("corrected, the report is in %q (error %v), want %q", view.Area.Code, err, want)
		}
	}
	list, err := f.areas.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	correct(report.Correction{Address: new("Jl. Braga 1")}, "west")
	place := report.NewPosition(-6.5, 106.95)
	correct(report.Correction{Position: place, Area: list.At(place)}, "east")
}

// A run that begins before all replicas have the list, or finds a report locked, is not the
// last one.
func TestAreasOfLateAndLockedReports(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	rep := f.fileAt(106.85)
	run := func(want bool) {
		t.Helper()
		if err := scheduletest.Run(t.Context(), f.pool, f.areas.Job()); err != nil {
			t.Fatal(err)
		}
		if located, err := f.areas.Located(t.Context()); err != nil || located != want {
			t.Errorf("located is %t (error %v), want %t", located, err, want)
		}
	}
	if _, err := f.areas.Replace(t.Context(), []area.Area{stripe("west", 106.8, 106.9)}, report.Versions{}, pavel); err != nil {
		t.Fatal(err)
	}
	f.exec(`update area_list set changed_at = now() + interval '1 hour'`)
	run(false)
	if got := f.areaOf(rep.ID); got != "west" {
		t.Errorf("the report is in %q, want west", got)
	}
	f.exec(`update reports set area_id = 0`) // as a replica with the list before files it
	f.exec(`update area_list set changed_at = now() - interval '1 minute'`)
	tx, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from reports where id = $1 for update`, rep.ID); err != nil {
		t.Fatal(err)
	}
	run(false)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(true)
	if got := f.areaOf(rep.ID); got != "west" {
		t.Errorf("the report is in %q, want west", got)
	}
}

// The job works in steps that read a bounded number of reports, and one dies between two
// without a loss: the steps of another run go on from its cursor.
func TestAreasMoveReportsInSteps(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(`
		insert into reports (id, title, description, category_id, latitude, longitude, address, privacy_level, status, score, version, created_at, updated_at)
		select gen_random_uuid(), 't', '', 1, -6.5, 106.85, '', 'public', 'pending', 0, 1, now(), now() from generate_series(1, 12000)`)
	f.setAreas(stripe("west", 106.8, 106.9))
	job := f.areas.Job()
	var run schedule.Run
	steps := 0
	for last := false; !last; steps++ {
		tx, err := f.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p, err := job.Step(t.Context(), tx, run)
		if err != nil {
			t.Fatal(err)
		}
		if p.Done > 5000 {
			t.Errorf("a step examined %d reports, want 5,000 at most", p.Done)
		}
		if steps == 1 { // the process dies
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		run.Cursor, run.Done, last = p.Cursor, run.Done+p.Done, p.Last
		if p.Total > 0 {
			run.Total = p.Total
		}
	}
	if n := f.number(`select count(*) from reports r join areas a on a.id = r.area_id`); steps != 4 || n != 12000 || run.Done != 12000 || run.Total != 12000 {
		t.Errorf("%d steps moved %d reports, %d of %d examined; want 4 and 12,000", steps, n, run.Done, run.Total)
	}
}

// Whatever routes there are, the queue shows who is in charge by the documented order, and
// its filters, counts and numbers agree with what it shows.
func TestDepartmentByCategoryAndArea(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.setAreas(stripe("west", 106.8, 106.9), stripe("east", 106.9, 107))
	departments := []report.Department{
		{ID: 1, Name: "Roads", Categories: []int32{1}, Routes: []report.Route{{Area: "east"}}},
		{ID: 2, Name: "West", Routes: []report.Route{{Area: "west", Category: 1}, {Area: "west"}}},
		{ID: 3, Name: "Lamps", Categories: []int32{2}},
	}
	if err := f.desk.SetDepartments(t.Context(), departments, pavel); err != nil {
		t.Fatal(err)
	}
	got, err := f.desk.Departments(t.Context())
	if err != nil || fmt.Sprint(got[0].Routes) != "[{east 0}]" || fmt.Sprint(got[1].Routes) != "[{west 0} {west 1}]" {
		t.Fatalf("departments %+v (error %v), want the routes that were set", got, err)
	}
	want := map[uuid.UUID]int32{}
	file := func(category int32, longitude float64, assigned, inCharge int32) {
		rep := f.fileAt(longitude)
		f.exec(`update reports set category_id = $2, department_id = nullif($3::int, 0) where id = $1`, rep.ID, category, assigned)
		want[rep.ID] = inCharge
	}
	file(1, 106.85, 0, 2) // category and area
	file(1, 106.95, 0, 1) // category, before the area
	file(2, 106.85, 0, 3) // category, before the area
	file(3, 106.85, 0, 2) // area
	file(3, 106.95, 0, 1)
	file(3, 50, 0, 0)
	file(1, 50, 0, 1)
	file(1, 106.85, 3, 3) // an official decided
	shown := map[int32]int{}
	queue, err := f.workbench.Queue(t.Context(), report.Filter{Order: report.Oldest}, nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range queue.Tasks {
		in := int32(0)
		if task.Department != nil {
			in = task.Department.ID
		}
		if shown[in]++; in != want[task.ID] {
			t.Errorf("department %d has the report of category %d in %q, want %d", in, task.Category.ID, task.Area.Code, want[task.ID])
		}
	}
	counts, err := f.workbench.Counts(t.Context(), report.Filter{})
	if err != nil || counts.Areas["west"] != 4 || counts.Areas["east"] != 2 || counts.Areas[""] != 2 {
		t.Errorf("counts by area %v (error %v), want 4, 2 and 2", counts.Areas, err)
	}
	span := report.Filter{FiledFrom: time.Now().Add(-time.Hour), FiledTo: time.Now().Add(time.Hour)}
	_, parts, err := f.workbench.CountByPart(t.Context(), span, report.ByDepartment)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if int(p.Filed) != shown[p.Part] || counts.Departments[p.Part] != p.Filed {
			t.Errorf("department %d: %d by its numbers, %d by the counts, %d by the queue", p.Part, p.Filed, counts.Departments[p.Part], shown[p.Part])
		}
		if p.Part == 0 {
			continue
		}
		filtered, err := f.workbench.Queue(t.Context(), report.Filter{Departments: []int32{p.Part}}, nil, 100)
		if err != nil || len(filtered.Tasks) != shown[p.Part] {
			t.Errorf("the filter of department %d shows %d reports (error %v), want %d", p.Part, len(filtered.Tasks), err, shown[p.Part])
		}
	}
	open, err := f.workbench.CountOpen(t.Context(), span, report.ByArea)
	if err != nil || len(open) != 3 || open[0] != 2 {
		t.Errorf("open by area %v (error %v), want 4, 2 and 2", open, err)
	}
	for filter, n := range map[string]int{"west": 4, "nowhere": 0} {
		page, err := f.List(t.Context(), report.Filter{Areas: []string{filter}}, nil, 100, "")
		if err != nil || len(page.Reports) != n {
			t.Errorf("the list of %q shows %d reports (error %v), want %d", filter, len(page.Reports), err, n)
		}
	}
}

// The filter by department is a formulation of its own of the order of routes: it agrees
// with what the queue shows for any of them.
func TestFilterAgreesWithAnyRoutes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.setAreas(stripe("a", 106.8, 106.85), stripe("b", 106.85, 106.9), stripe("c", 106.9, 106.95))
	for category := range int32(4) {
		for _, longitude := range []float64{50, 106.82, 106.87, 106.92} {
			rep := f.fileAt(longitude)
			f.exec(`update reports set category_id = $2 where id = $1`, rep.ID, category+1)
		}
	}
	for range 20 {
		departments := make([]report.Department, 3)
		for i := range departments {
			departments[i] = report.Department{ID: int32(i + 1), Name: fmt.Sprint("D", i)}
		}
		for category := range int32(5) {
			if i := rand.IntN(4); i < 3 && category > 0 {
				departments[i].Categories = append(departments[i].Categories, category)
			}
			for _, code := range []string{"a", "b", "c"} {
				if i := rand.IntN(5); i < 3 {
					departments[i].Routes = append(departments[i].Routes, report.Route{Area: code, Category: category})
				}
			}
		}
		if err := f.desk.SetDepartments(t.Context(), departments, pavel); err != nil {
			t.Fatal(err)
		}
		all, err := f.workbench.Queue(t.Context(), report.Filter{}, nil, 100)
		if err != nil {
			t.Fatal(err)
		}
		for i := range int32(3) {
			n := 0
			for _, task := range all.Tasks {
				if task.Department != nil && task.Department.ID == i+1 {
					n++
				}
			}
			filtered, err := f.workbench.Queue(t.Context(), report.Filter{Departments: []int32{i + 1}}, nil, 100)
			if err != nil || len(filtered.Tasks) != n {
				t.Errorf("with %+v the filter of department %d shows %d reports (error %v), want %d", departments, i+1, len(filtered.Tasks), err, n)
			}
		}
	}
}

// Replicas have a new list soon, only one of two operators who edit the same one replaces
// it, and the audit says what changed.
func TestAreasAreReplacedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := openFixture(t, f.database)
	if _, err := other.areas.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.setAreas(stripe("west", 106.8, 106.9), stripe("east", 106.9, 107))
	eventually.NothingMissing(t, "the other replica's list", func() string {
		if list, err := other.areas.List(t.Context()); err != nil || list.Revision != 2 || list.At(report.NewPosition(-6.5, 106.95)).Code != "east" {
			return "the new list"
		}
		return ""
	})
	_, err := f.areas.Replace(t.Context(), nil, report.VersionOnly(1), pavel)
	wantKind(t, err, report.Stale)
	f.setAreas(stripe("west", 106.8, 106.9), stripe("east", 106.9, 107)) // the same again
	f.setAreas(stripe("north", 106.7, 106.8), stripe("east", 106.85, 107))
	f.setAreas(stripe("east", 106.85, 107), stripe("north", 106.7, 106.8))
	changes, err := f.desk.SettingChanges(t.Context(), 10)
	if err != nil || len(changes) != 3 {
		t.Fatalf("%d changes (error %v), want 3", len(changes), err)
	}
	for i, want := range []string{"map[moved:true]", "map[added:[north] changed:[east] removed:[west]]", "map[added:[west east]]"} {
		if got := fmt.Sprint(changes[i].Detail); changes[i].Setting != "areas" || got != want {
			t.Errorf("change %d is %s, want %s", i, got, want)
		}
	}
	err = f.desk.SetDepartments(t.Context(), []report.Department{{ID: 1, Name: "D", Routes: []report.Route{{Area: "west"}}}}, pavel)
	wantKind(t, err, fault.Invalid) // it is gone
}
