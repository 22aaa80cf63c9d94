package postgres_test

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/scheduletest"
	"github.com/cityconnect/cityconnect/report-service/internal/calendar"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// withTarget returns a draft of a category whose target is an hour.
func (f *fixture) withTarget(privacy report.Privacy) report.Report {
	f.t.Helper()
	d := draft(privacy)
	f.exec(`update categories set target_hours = 1 where id = $1`, d.Category.ID)
	d.Category.Target = time.Hour
	return d
}

// late has so many hours pass for a report.
func (f *fixture) late(id uuid.UUID, hours int) {
	f.t.Helper()
	f.exec(`update reports set clock_since = clock_since - $2::int * interval '1 hour', due_at = due_at - $2::int * interval '1 hour',
		overdue_next_at = overdue_next_at - $2::int * interval '1 hour' where id = $1`, id, hours)
}

// overdue runs the job once and returns the levels of which a report's messages
// tell.
func (f *fixture) overdue(id uuid.UUID) (levels []int32) {
	f.t.Helper()
	if err := scheduletest.Run(f.t.Context(), f.pool, f.deadlines.OverdueJob()); err != nil {
		f.t.Fatal(err)
	}
	for _, r := range f.outbox() {
		if r.Report != id || r.Key != string(event.ReportOverdueKey) {
			continue
		}
		m, err := event.Decode(event.ReportOverdueKey, r.Payload)
		if err != nil {
			f.t.Fatal(err)
		}
		levels = append(levels, m.(*event.ReportOverdue).Level)
	}
	return levels
}

// A report becomes overdue at each level once, however many replicas run the
// job, and the message for officials has a title and a time, and names nobody.
func TestOverdue(t *testing.T) {
	t.Parallel()
	for _, privacy := range []report.Privacy{report.Public, report.Anonymous} {
		t.Run(string(privacy), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			filed := f.file(ann, f.withTarget(privacy))
			if levels := f.overdue(filed.ID); len(levels) != 0 {
				t.Errorf("levels %v in time, want none", levels)
			}
			for n := 1; n <= calendar.MaxOverdue+1; n++ {
				f.late(filed.ID, 1)
				var replicas sync.WaitGroup
				for range 3 {
					replicas.Go(func() {
						if err := scheduletest.Run(t.Context(), f.pool, f.deadlines.OverdueJob()); err != nil {
							t.Error(err)
						}
					})
				}
				replicas.Wait()
				want := []int32{1, 2, 3}[:min(n, calendar.MaxOverdue)]
				if levels := f.overdue(filed.ID); !slices.Equal(levels, want) {
					t.Errorf("levels %v after %d hours, want %v", levels, n, want)
				}
			}
			work, err := f.workbench.Details(t.Context(), filed.ID, report.User{Official: true})
			if err != nil {
				t.Fatal(err)
			}
			if work.Overdue != 3 || len(work.Acts) != 3 || work.Acts[2].Kind != report.BecameOverdue || work.Acts[2].Text != "3" || work.Version != filed.Version {
				t.Errorf("officials see %+v, want level 3 after three acts, and the version of before", work)
			}
			for _, r := range f.outbox() {
				var body map[string]any
				if err := json.Unmarshal(r.Payload, &body); err != nil {
					t.Fatal(err)
				}
				if r.Key != string(event.ReportOverdueKey) {
					continue
				}
				if recipient, err := f.keys.Open(r.Report, r.Headers[event.RecipientHeader]); err != nil || recipient != "" || body["reporter_id"] != nil {
					t.Errorf("an overdue report's message is meant for %q (error %v) and names %v, want nobody", recipient, err, body["reporter_id"])
				}
			}
		})
	}
}

// The job wakes the relay once its messages are committed, and not when it has
// found nothing.
func TestOverdueWakesTheRelay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, f.withTarget(report.Public))
	for _, late := range []bool{false, true} {
		before := f.wakes.Load()
		f.woken.Store(0)
		if late {
			f.late(filed.ID, 1)
		}
		f.overdue(filed.ID)
		if woken := f.wakes.Load() > before; woken != late {
			t.Errorf("late %t: relay woken %t, want %t", late, woken, late)
		}
	}
	if shard := shards.Of(filed.ID); f.woken.Load() != 1<<shard {
		t.Errorf("woken for shards %b, want shard %d alone", f.woken.Load(), shard)
	}
}

// While a question to the reporter is open the clock is stopped, and a closed
// report or a duplicate does not become overdue.
func TestNotOverdue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	d := f.withTarget(report.Public)
	waiting, closed, duplicate, original := f.file(ann, d), f.file(ann, d), f.file(ann, d), f.file(bob, d)
	question := f.ask(waiting.ID)
	f.mustMove(closed.ID, report.Resolved, "")
	f.mustMark(duplicate.ID, original.ID)
	for _, r := range []report.Filing{waiting, closed, duplicate} {
		f.late(r.ID, 2)
		if levels := f.overdue(r.ID); len(levels) != 0 {
			t.Errorf("levels %v, want none", levels)
		}
	}

	// The remaining time is the same as before it waited.
	if err := f.questions.Withdraw(t.Context(), waiting.ID, question.ID, olga); err != nil {
		t.Fatal(err)
	}
	if left := f.number(`select extract(epoch from due_at - clock_since)::int from reports where id = $1`, waiting.ID); left < 3500 || left > 3600 {
		t.Errorf("%d s are left, want about an hour", left)
	}
	f.late(waiting.ID, 1)
	if levels := f.overdue(waiting.ID); !slices.Equal(levels, []int32{1}) {
		t.Errorf("levels %v, want the first", levels)
	}

	// When the report is reopened, its clock starts again.
	f.mustMove(closed.ID, report.InProgress, "not done after all")
	if n := f.number(`select count(*) from reports where id = $1 and overdue_level = 0 and due_at > now() + interval '50 minutes'`, closed.ID); n != 1 {
		t.Error("a report that was reopened has no new time")
	}
}

// Operators get back the calendar that they set, and new reports follow it.
func TestSetCalendar(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if got, err := f.city.Calendar(t.Context()); err != nil || got.Zone != time.UTC || len(got.Holidays) != 0 {
		t.Errorf("at first the calendar is %+v (error %v), want one without rest", got, err)
	}
	want := calendar.AlwaysOpen()
	want.Week[time.Sunday] = nil
	want.Holidays = []calendar.Date{{Year: 2026, Month: 12, Day: 25}}
	for range 2 {
		if err := f.city.SetCalendar(t.Context(), want, map[int32]time.Duration{2: 5 * time.Hour}, pavel); err != nil {
			t.Fatal(err)
		}
	}
	got, err := f.city.Calendar(t.Context())
	if err != nil || len(got.Week[time.Sunday]) != 0 || len(got.Week[time.Monday]) != 1 || !slices.Equal(got.Holidays, want.Holidays) {
		t.Errorf("the calendar is %+v (error %v), want %+v", got, err, want)
	}
	if c, err := f.categories.Category(t.Context(), 2); err != nil || c.Target != 5*time.Hour {
		t.Errorf("the category's target is %s (error %v), want 5 hours", c.Target, err)
	}
	wantKind(t, f.city.SetCalendar(t.Context(), want, map[int32]time.Duration{999: time.Hour}, pavel), "invalid")
	if err := f.city.SetCalendar(t.Context(), want, nil, pavel); err != nil {
		t.Fatal(err)
	}
	if n := f.number(`select count(*) from categories where target_hours is not null`); n != 0 {
		t.Errorf("%d categories have a target, want none", n)
	}
}

// A report that was filed before its category had a target gets a deadline, from
// now on, and keeps it.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	open, closed := f.file(ann, draft(report.Public)), f.file(ann, draft(report.Public))
	f.exec(`update reports set created_at = created_at - interval '1 year'`)
	f.mustMove(closed.ID, report.Resolved, "")
	f.withTarget(report.Public)
	run := func() (due time.Time) {
		t.Helper()
		if err := scheduletest.Run(t.Context(), f.pool, f.deadlines.DeadlinesJob()); err != nil {
			t.Fatal(err)
		}
		if n := f.number(`select count(*) from reports where due_at is not null`); n != 1 {
			t.Fatalf("%d reports have a deadline, want the one that is open", n)
		}
		if err := f.pool.QueryRow(t.Context(), `select due_at from reports where id = $1`, open.ID).Scan(&due); err != nil {
			t.Fatal(err)
		}
		return due
	}
	first := run()
	if left := time.Until(first); left < 50*time.Minute || left > time.Hour {
		t.Errorf("%s are left, want an hour", left)
	}
	if again := run(); !again.Equal(first) {
		t.Errorf("run again, the report is due at %s, want %s", again, first)
	}
}
