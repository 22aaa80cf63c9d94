package calendar_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/report-service/internal/calendar"
)

// office is open on weekdays from 8 to 12 and from 13 to 17, but not at Christmas.
func office(t *testing.T, name string) calendar.Calendar {
	t.Helper()
	zone, err := schedule.Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	c := calendar.Calendar{Zone: zone, Holidays: []calendar.Date{{Year: 2026, Month: 12, Day: 25}}}
	for day := time.Monday; day <= time.Friday; day++ {
		c.Week[day] = []calendar.Shift{{From: 8 * 60, To: 12 * 60}, {From: 13 * 60, To: 17 * 60}}
	}
	return c
}

func at(t *testing.T, c calendar.Calendar, text string) time.Time {
	t.Helper()
	v, err := time.ParseInLocation("2006-01-02 15:04", text, c.Zone)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The clock stands still at noon, at night, at weekends and on holidays.
func TestDue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		zone, since string
		hours       float64
		want        string
	}{
		{"Asia/Jakarta", "2026-11-23 09:00", 2, "2026-11-23 11:00"},
		{"Asia/Jakarta", "2026-11-23 11:00", 2, "2026-11-23 14:00"},    // noon
		{"Asia/Jakarta", "2026-11-23 16:00", 2, "2026-11-24 09:00"},    // night
		{"Asia/Jakarta", "2026-11-27 16:00", 2, "2026-11-30 09:00"},    // weekend
		{"Asia/Jakarta", "2026-11-22 03:00", 8, "2026-11-23 17:00"},    // filed on a Sunday
		{"Asia/Jakarta", "2026-12-24 16:00", 2, "2026-12-28 09:00"},    // Christmas, a Friday
		{"Asia/Jakarta", "2026-11-23 08:00", 40, "2026-11-27 17:00"},   // a week
		{"Europe/Berlin", "2026-03-27 16:00", 1.5, "2026-03-30 08:30"}, // the clocks change at the weekend
		{"America/New_York", "2026-10-30 17:00", 1, "2026-11-02 09:00"},
	} {
		c := office(t, tt.zone)
		since := at(t, c, tt.since)
		work := time.Duration(tt.hours * float64(time.Hour))
		got, ok := c.Due(since, work)
		if want := at(t, c, tt.want); !ok || !got.Equal(want) {
			t.Errorf("%v hours after %s it is %s (%t), want %s", tt.hours, tt.since, got.In(c.Zone), ok, want)
		}
		if got := c.Between(since, got); got != work {
			t.Errorf("between %s and %s the city works %s, want %s", tt.since, tt.want, got, work)
		}
	}
	if due, ok := (calendar.Calendar{Zone: time.UTC}).Due(time.Now(), time.Hour); ok {
		t.Errorf("due at %s in a city that never works", due)
	}
}

// Due and Between are each other's inverse, whenever one asks, in a zone whose
// clocks change.
func TestDueAndBetweenAgree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]calendar.Calendar{"office": office(t, "America/Santiago"), "always": calendar.AlwaysOpen()} {
		begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for range 2000 {
			since := begin.Add(rand.N(365 * 24 * time.Hour)).Truncate(time.Second)
			work := (time.Second + rand.N(300*time.Hour)).Truncate(time.Second)
			due, ok := c.Due(since, work)
			if got := c.Between(since, due); !ok || got != work {
				t.Fatalf("%s: %s after %s is %s (%t), and between them are %s", name, work, since, due, ok, got)
			}
		}
	}
}

// Each level is reached after another target, and waiting for the resident does
// not count.
func TestDeadline(t *testing.T) {
	t.Parallel()
	c := office(t, "Asia/Jakarta")
	is := func(what string, got *time.Time, want string) {
		t.Helper()
		switch {
		case want == "" && got != nil, want != "" && (got == nil || !got.Equal(at(t, c, want))):
			t.Errorf("%s is %v, want %q", what, got, want)
		}
	}
	d := c.Begin(8*time.Hour, at(t, c, "2026-11-23 08:00")) // a Monday
	is("due", d.DueAt, "2026-11-23 17:00")
	is("the first level", d.NextAt, "2026-11-23 17:00")
	d = c.Raise(d)
	is("the second level", d.NextAt, "2026-11-24 17:00")
	is("due", d.DueAt, "2026-11-23 17:00")

	d = c.Wait(d, at(t, c, "2026-11-24 10:00")) // two hours into the second target
	is("due while it waits", d.DueAt, "")
	is("the next level while it waits", d.NextAt, "")
	if d.Used != 10*time.Hour || !d.Waiting || d.Level != 1 {
		t.Errorf("waits with %+v, want 10 hours used", d)
	}
	d = c.Resume(d, at(t, c, "2026-11-26 08:00"))
	is("the second level after waiting", d.NextAt, "2026-11-26 15:00")
	d = c.Raise(c.Raise(d))
	is("a fourth level", d.NextAt, "")
	if d.Level != calendar.MaxOverdue {
		t.Errorf("level %d, want %d", d.Level, calendar.MaxOverdue)
	}

	// Without a target nothing is ever due, however long one waits.
	none := c.Resume(c.Wait(c.Begin(0, at(t, c, "2026-11-23 08:00")), at(t, c, "2026-11-24 08:00")), at(t, c, "2026-11-25 08:00"))
	if none != (calendar.Deadline{}) {
		t.Errorf("without a target the deadline is %+v, want none", none)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := office(t, "Asia/Jakarta")
	if err := good.Check(); err != nil {
		t.Errorf("an office: %v", err)
	}
	if err := calendar.AlwaysOpen().Check(); err != nil {
		t.Errorf("always open: %v", err)
	}
	for name, change := range map[string]func(*calendar.Calendar){
		"never open": func(c *calendar.Calendar) { c.Week = [7][]calendar.Shift{} },
		"backwards":  func(c *calendar.Calendar) { c.Week[1] = []calendar.Shift{{From: 600, To: 600}} },
		"overlap":    func(c *calendar.Calendar) { c.Week[1] = []calendar.Shift{{From: 0, To: 600}, {From: 599, To: 700}} },
		"too late":   func(c *calendar.Calendar) { c.Week[1] = []calendar.Shift{{From: 0, To: 1441}} },
		"holidays":   func(c *calendar.Calendar) { c.Holidays = make([]calendar.Date, 501) },
	} {
		c := office(t, "Asia/Jakarta")
		change(&c)
		if fault.KindOf(c.Check()) != fault.Invalid {
			t.Errorf("%s: %v, want it refused", name, c.Check())
		}
	}
}

// Working days are counted from the day after, without weekends and holidays, in the zone
// of the city.
func TestWorkday(t *testing.T) {
	t.Parallel()
	c := office(t, "Asia/Jakarta")
	for _, tt := range []struct {
		since string
		n     int
		want  string
	}{
		{"2026-11-27 09:00", 1, "2026-11-30"}, // a Friday
		{"2026-11-27 23:59", 10, "2026-12-11"},
		{"2026-11-28 03:00", 1, "2026-11-30"}, // a Saturday
		{"2026-12-24 18:00", 1, "2026-12-28"}, // Christmas is a Friday
	} {
		if got := c.Workday(at(t, c, tt.since), tt.n); got.String() != tt.want {
			t.Errorf("%d working days after %s it is %s, want %s", tt.n, tt.since, got, tt.want)
		}
	}
	day := calendar.Date{Year: 2026, Month: time.December, Day: 11}
	if got, want := c.Opens(day), at(t, c, "2026-12-11 08:00"); !got.Equal(want) {
		t.Errorf("it opens at %s, want %s", got, want)
	}
	if got, want := c.Ends(day), at(t, c, "2026-12-12 00:00"); !got.Equal(want) {
		t.Errorf("it ends at %s, want %s", got, want)
	}
	if got, want := c.Opens(calendar.Date{Year: 2026, Month: time.December, Day: 25}), at(t, c, "2026-12-25 00:00"); !got.Equal(want) {
		t.Errorf("a holiday opens at %s, want its begin %s", got, want)
	}
}
