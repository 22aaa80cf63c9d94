package schedule_test

import (
	"slices"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/schedule"
)

func mustZone(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := schedule.Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// A time that the clocks skip is due at the end of the gap, and one that they show
// twice at its first occurrence.
func TestMoment(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		zone, date, at, want string
	}{
		{"Asia/Jakarta", "2026-11-22", "07:00", "2026-11-22T00:00:00Z"},
		{"Europe/Berlin", "2026-03-29", "02:30", "2026-03-29T01:00:00Z"},
		{"Europe/Berlin", "2026-10-25", "02:30", "2026-10-25T00:30:00Z"},
		{"America/New_York", "2026-03-08", "02:30", "2026-03-08T07:00:00Z"},
		{"America/New_York", "2026-11-01", "01:30", "2026-11-01T05:30:00Z"},
		{"America/Santiago", "2024-09-08", "00:00", "2024-09-08T04:00:00Z"}, // midnight is missing
		{"Australia/Lord_Howe", "2026-10-04", "02:15", "2026-10-03T15:30:00Z"},
		{"Australia/Lord_Howe", "2026-04-05", "01:45", "2026-04-04T14:45:00Z"},
		{"America/Nuuk", "2026-03-28", "23:30", "2026-03-29T01:00:00Z"}, // the end of the day is missing
		{"Pacific/Apia", "2011-12-30", "07:00", "2011-12-30T10:00:00Z"}, // the day is missing
	} {
		date, err := time.Parse(time.DateOnly, tt.date)
		if err != nil {
			t.Fatal(err)
		}
		at, err := schedule.ParseClock(tt.at)
		if err != nil {
			t.Fatal(err)
		}
		got := schedule.Moment(date.Year(), date.Month(), date.Day(), at, mustZone(t, tt.zone)).UTC().Format(time.RFC3339)
		if got != tt.want {
			t.Errorf("%s %s in %s is %s, want %s", tt.date, tt.at, tt.zone, got, tt.want)
		}
	}
}

// Local is due once on each of its days, and not on a date that the zone skipped.
func TestLocalNext(t *testing.T) {
	t.Parallel()
	at := func(s string) schedule.Clock {
		c, err := schedule.ParseClock(s)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, tt := range []struct {
		name  string
		local schedule.Local
		after string
		want  []string // the keys that follow
	}{
		{"each day", schedule.Local{At: at("07:00"), Zone: mustZone(t, "Asia/Jakarta")}, "2026-11-21T23:59:59Z",
			[]string{"2026-11-22", "2026-11-23"}},
		{"not the moment itself", schedule.Local{At: at("07:00"), Zone: mustZone(t, "Asia/Jakarta")}, "2026-11-22T00:00:00Z",
			[]string{"2026-11-23", "2026-11-24"}},
		{"some days", schedule.Local{At: at("07:00"), Days: []time.Weekday{time.Monday, time.Friday}, Zone: mustZone(t, "Asia/Jakarta")},
			"2026-11-22T00:00:00Z", []string{"2026-11-23", "2026-11-27", "2026-11-30"}},
		{"an hour twice", schedule.Local{At: at("02:30"), Zone: mustZone(t, "Europe/Berlin")}, "2026-10-25T00:30:00Z",
			[]string{"2026-10-26"}},
		{"the end of a day missing", schedule.Local{At: at("23:30"), Zone: mustZone(t, "America/Nuuk")}, "2026-03-28T12:00:00Z",
			[]string{"2026-03-28", "2026-03-29", "2026-03-30"}},
		{"a day missing", schedule.Local{At: at("07:00"), Zone: mustZone(t, "Pacific/Apia")}, "2011-12-29T12:00:00Z",
			[]string{"2011-12-29", "2011-12-31", "2012-01-01"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			after, err := time.Parse(time.RFC3339, tt.after)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for range tt.want {
				next, period := tt.local.Next(after)
				if !next.After(after) {
					t.Fatalf("due at %s after %s, want later", next, after)
				}
				got, after = append(got, period), next
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("due on %v, want %v", got, tt.want)
			}
		})
	}
}

// Every is due at its multiples, whenever one asks.
func TestEveryNext(t *testing.T) {
	t.Parallel()
	every := schedule.Every(15 * time.Minute)
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, after := range []time.Duration{0, time.Nanosecond, 7 * time.Minute, 15*time.Minute - time.Nanosecond} {
		at, period := every.Next(noon.Add(after))
		if want := noon.Add(15 * time.Minute); !at.Equal(want) || period != "2026-11-22T12:15:00Z" {
			t.Errorf("%s after noon the next is %s with key %s, want %s", after, at, period, want)
		}
	}
}

func TestParseClock(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]schedule.Clock{"00:00": 0, "07:05": 425, "23:59": 1439} {
		got, err := schedule.ParseClock(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%q is %d or %s (error %v), want %d", text, got, got, err, want)
		}
	}
	for _, text := range []string{"", "7:00", "24:00", "07:60", "07:00:00", "07-00", "-1:00"} {
		if got, err := schedule.ParseClock(text); err == nil {
			t.Errorf("%q is %s, want an error", text, got)
		}
	}
}

// Zone takes names alone.
func TestZone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Asia/Jakarta", "UTC", "America/Argentina/Buenos_Aires"} {
		if zone, err := schedule.Zone(name); err != nil || zone.String() != name {
			t.Errorf("zone %s is %v (error %v)", name, zone, err)
		}
	}
	for given, want := range map[string]string{
		"asia/jakarta": "Asia/Jakarta", " ASIA/JAKARTA ": "Asia/Jakarta", "utc": "UTC", "america/new york": "America/New_York",
		"etc/gmt+7": "Etc/GMT+7",
	} {
		if zone, err := schedule.Zone(given); err != nil || zone.String() != want {
			t.Errorf("zone %q is %v (error %v), want %s", given, zone, err, want)
		}
	}
	for _, name := range []string{"", "Local", "Asia", "../zoneinfo/UTC", "/etc/localtime", "posixrules", "Mars/Base"} {
		if zone, err := schedule.Zone(name); err == nil {
			t.Errorf("zone %q is %v, want an error", name, zone)
		}
	}
}
