package postgres_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/migrations/pgtest"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/report-service/internal/calendar"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// The queue shows what is overdue, and what is due next first.
func TestQueueOfOverdue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	never := f.file(ann, draft(report.Public))
	d := f.withTarget(report.Public)
	soon, later, late := f.file(ann, d), f.file(ann, d), f.file(ann, d)
	f.exec(`update reports set due_at = due_at + interval '1 hour' where id = $1`, later.ID)
	f.late(late.ID, 5)
	for range calendar.MaxOverdue { // a level a minute
		f.overdue(late.ID)
	}
	for _, tt := range []struct {
		name   string
		filter report.Filter
		want   []uuid.UUID
	}{
		{"due", report.Filter{Order: report.Due}, []uuid.UUID{late.ID, soon.ID, later.ID, never.ID}},
		{"overdue", report.Filter{Overdue: 1}, []uuid.UUID{late.ID}},
		{"three times", report.Filter{Overdue: 3}, []uuid.UUID{late.ID}},
	} {
		var got []uuid.UUID
		var after *report.Cursor
		for {
			page, err := f.workbench.Queue(t.Context(), tt.filter, after, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range page.Tasks {
				got = append(got, task.ID)
			}
			if after = page.Next; after == nil {
				break
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: the queue shows %v, want %v", tt.name, got, tt.want)
		}
	}
}

// The figures of departments are of those in charge now, and their median is the time
// from filing to resolution, reopened or not.
func TestCountByDepartment(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if err := f.desk.SetDepartments(t.Context(), []report.Department{{ID: 7, Name: "Lights", Categories: []int32{2}}}, pavel); err != nil {
		t.Fatal(err)
	}
	lights, roads := draft(report.Public), draft(report.Public)
	lights.Category.ID, roads.Category.ID = 2, 1
	for i, took := range []time.Duration{time.Hour, 3 * time.Hour, 5 * time.Hour} {
		filed := f.file(ann, lights)
		f.mustMove(filed.ID, report.Resolved, "Mended.")
		if err := f.reply(filed.ID, "The lamp is new.", nil); err != nil {
			t.Fatal(err)
		}
		f.exec(`update reports set created_at = (select changed_at from status_history where report_id = $1 and to_status = 'resolved' and from_status <> to_status) - $2::interval where id = $1`, filed.ID, took)
		if i == 0 {
			f.mustMove(f.file(ann, roads).ID, report.Rejected, "Not ours.")
		}
	}
	filter := report.Filter{FiledFrom: time.Now().Add(-time.Hour), FiledTo: time.Now().Add(time.Hour)}
	f.file(ann, lights)
	if open, err := f.workbench.CountOpen(t.Context(), filter, report.ByDepartment); err != nil || !maps.Equal(open, map[int32]int64{7: 1}) {
		t.Errorf("open are %v (error %v), want one with the lights", open, err)
	}
	before := report.Filter{FiledTo: time.Now().Add(-time.Hour)}
	if open, err := f.workbench.CountOpen(t.Context(), before, report.ByDepartment); err != nil || len(open) != 0 {
		t.Errorf("before the first report %v were open (error %v), want none", open, err)
	}
	total, departments, err := f.workbench.CountByPart(t.Context(), filter, report.ByDepartment)
	if err != nil || len(departments) != 2 {
		t.Fatalf("%d departments (error %v), want 2", len(departments), err)
	}
	none, lamps := departments[0], departments[1]
	if total.Filed != 5 || total.Resolved != 3 || total.Rejected != 1 || total.Median == nil || total.Median.Round(time.Minute) != 3*time.Hour {
		t.Errorf("the total is %+v", total)
	}
	if none.Part != 0 || none.Filed != 1 || none.Rejected != 1 || none.Median != nil {
		t.Errorf("without a department: %+v", none)
	}
	if lamps.Part != 7 || lamps.Filed != 4 || lamps.Resolved != 3 || lamps.Median == nil || lamps.Median.Round(time.Minute) != 3*time.Hour {
		t.Errorf("of the department: %+v", lamps)
	}
}

// The backlog at a time follows from the one of now and what happened since:
// reports that were filed, closed and opened again, and not those that had a reply.
func TestCountOpen(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	open := func(at time.Time) int64 {
		t.Helper()
		open, err := f.workbench.CountOpen(t.Context(), report.Filter{FiledTo: at}, report.ByDepartment)
		if err != nil {
			t.Fatal(err)
		}
		return open[0]
	}
	var want []int64
	var times []time.Time
	note := func(n int64) {
		want, times = append(want, n), append(times, time.Now())
	}
	note(0)
	lamp, pothole := f.file(ann, draft(report.Public)), f.file(bob, draft(report.Anonymous))
	note(2)
	f.mustMove(lamp.ID, report.Resolved, "Mended.")
	note(1)
	if err := f.reply(lamp.ID, "The lamp is new.", nil); err != nil {
		t.Fatal(err)
	}
	f.mustMove(pothole.ID, report.InProgress, "")
	note(1)
	f.mustMove(lamp.ID, report.InProgress, "It is dark again.")
	note(2)
	f.mustMove(pothole.ID, report.Rejected, "Not ours.")
	note(1)
	for i, at := range times {
		if n := open(at); n != want[i] {
			t.Errorf("after %d steps %d were open, want %d", i, n, want[i])
		}
	}

	counts, err := f.workbench.CountOverTime(t.Context(), report.Filter{FiledFrom: times[0].Add(-time.Hour), FiledTo: time.Now().Add(time.Hour)}, report.Day)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, n := range counts {
		sum += n.Filed + n.Reopened - n.Resolved - n.Rejected
	}
	if sum != want[len(want)-1] {
		t.Errorf("the periods add up to %d open reports, want %d: %+v", sum, want[len(want)-1], counts)
	}
}

// The counts of the queue look at no report: an index has all that they need, for reports
// that only the city sees as well.
func TestCountsLookAtNoReport(t *testing.T) {
	t.Parallel()
	pool := pgtest.Report(t)
	fillCity(t, pool)
	for _, sql := range []string{`update reports set description = repeat(description, 20)`, `vacuum (full, analyze) reports`, `vacuum reports`} { // as long as in life
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	watched, queries := pgtest.Watch(t, pool)
	keys, err := event.ParseKeyring(recipientKey)
	if err != nil {
		t.Fatal(err)
	}
	workbench := postgres.NewWorkbench(postgres.NewDB(watched, keys, func(shards.Set) {}, postgres.Rules{}))
	if _, err := workbench.Counts(t.Context(), report.Filter{Official: true}); err != nil {
		t.Fatal(err)
	}
	for _, plan := range queries.Plans(t) {
		if slices.Contains(plan.Sequential, "reports") {
			t.Errorf("all reports are read by\n%s", plan.SQL)
		}
	}
}
