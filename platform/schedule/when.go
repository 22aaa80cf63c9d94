package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A When says at which times a job is due.
type When interface {
	// Next returns the first time later than after, and the key of its period.
	// No two times have the same key.
	Next(after time.Time) (at time.Time, period string)
	// String says it for operators, such as "every 1m0s".
	String() string
}

// Every is due at each multiple of itself since 1970 in UTC, so that neither a
// restart nor another replica shifts it. The key of a period is its time.
type Every time.Duration

// Next implements When.
func (e Every) Next(after time.Time) (at time.Time, period string) {
	at = time.Unix(0, (after.UnixNano()/int64(e)+1)*int64(e)).UTC()
	return at, at.Format(time.RFC3339Nano)
}

// String implements When.
func (e Every) String() string { return "every " + time.Duration(e).String() }

// Local is due once on each of its days, when the clocks of a zone show a time.
// The key of a period is the date there, whatever the clocks do on that day: a
// time that they skip is due at the end of the gap, and one that they show twice
// is due the first time. A date that a zone skipped as a whole has no period.
type Local struct {
	At   Clock
	Days []time.Weekday // of the seven; every day without any
	Zone *time.Location
}

// Next implements When.
func (l Local) Next(after time.Time) (at time.Time, period string) {
	// The day before may still be to come: where clocks skip the end of a day, it
	// is due when the next one begins.
	year, month, day := after.In(l.Zone).Date()
	for day--; ; day++ {
		date := time.Date(year, month, day, 0, 0, 0, 0, time.UTC) // of a calendar without clocks
		if len(l.Days) > 0 && !slices.Contains(l.Days, date.Weekday()) {
			continue
		}
		at = Moment(year, month, day, l.At, l.Zone)
		if !at.After(after) {
			continue
		}
		if at.Day() != date.Day() && Moment(year, month, day, 0, l.Zone).Equal(Moment(year, month, day+1, 0, l.Zone)) {
			continue // the zone has no such date
		}
		return at, date.Format(time.DateOnly)
	}
}

// String implements When.
func (l Local) String() string {
	days := "every day"
	if len(l.Days) > 0 {
		names := make([]string, len(l.Days))
		for i, d := range l.Days {
			names[i] = d.String()
		}
		days = strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s at %s, %s", days, l.At, l.Zone)
}

// Moment returns when the clocks of a zone show a time of a date. If they skip
// it, that is the end of the gap; if they show it twice, the first time. As with
// time.Date, a day may lie outside its month.
func Moment(year int, month time.Month, day int, at Clock, zone *time.Location) time.Time {
	t := time.Date(year, month, day, int(at)/60, int(at)%60, 0, 0, zone)
	// The time that the clocks show, as if there were no zones.
	want := time.Date(year, month, day, int(at)/60, int(at)%60, 0, 0, time.UTC)
	shown := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	start, end := t.ZoneBounds()
	switch {
	case shown.After(want): // time.Date went beyond the gap, which ended where this offset began
		return start
	case shown.Before(want): // it stayed before the gap
		return end
	case start.IsZero(): // there was never another offset
		return t
	}
	// The clocks may have shown this before they were set back.
	_, offset := t.Zone()
	_, before := start.Add(-time.Nanosecond).Zone()
	if first := t.Add(-time.Duration(before-offset) * time.Second); before > offset && first.Before(start) {
		return first
	}
	return t
}

// A Clock is a time of day in minutes after midnight, from 0 to 1439.
type Clock int

var errClock = errors.New(`want a time of day such as "07:00"`)

// ParseClock reads a time of day such as "07:00".
func ParseClock(s string) (Clock, error) {
	t, err := time.Parse("15:04", s)
	if err != nil || len(s) != len("15:04") {
		return 0, errClock
	}
	return Clock(t.Hour()*60 + t.Minute()), nil
}

// UnmarshalText reads what ParseClock does.
func (c *Clock) UnmarshalText(text []byte) (err error) {
	*c, err = ParseClock(string(text))
	return err
}

// MarshalText returns what ParseClock reads.
func (c Clock) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// String returns what ParseClock reads.
func (c Clock) String() string { return fmt.Sprintf("%02d:%02d", int(c)/60, int(c)%60) }
