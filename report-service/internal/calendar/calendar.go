// Package calendar computes when the city works, and when a report is to be
// finished: the clock of its target stops at night, on holidays, and while the
// city waits for the resident's answer to a question.
package calendar

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/schedule"
)

// MaxOverdue is the highest level of an overdue report.
const MaxOverdue = 3

// A Shift is a part of a day in which the city works, in minutes after midnight.
// 1440 ends the day.
type Shift struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// A Calendar says when the city works. The clocks of targets stop at all other
// times. In the zero Calendar the city never works.
type Calendar struct {
	Zone     *time.Location
	Week     [7][]Shift // by time.Weekday, in order of time; without shifts the day is off
	Holidays []Date     // in order of time
}

// A Date is a day of the calendar.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

var errDate = errors.New("must be a date such as 2026-12-25")

// ParseDate reads a date such as "2026-12-25".
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return Date{}, errDate
	}
	return DateOf(t), nil
}

// DateOf returns the date of t in its zone.
func DateOf(t time.Time) Date {
	year, month, day := t.Date()
	return Date{year, month, day}
}

// String returns the format of ParseDate.
func (d Date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, d.Month, d.Day) }

// Compare returns whether d is before, at or after another date: -1, 0 or 1.
func (d Date) Compare(other Date) int {
	return cmp.Or(cmp.Compare(d.Year, other.Year), cmp.Compare(d.Month, other.Month), cmp.Compare(d.Day, other.Day))
}

// AlwaysOpen is the calendar of a city that always works, in UTC. It applies
// until operators set another.
func AlwaysOpen() Calendar {
	c := Calendar{Zone: time.UTC}
	for day := range c.Week {
		c.Week[day] = []Shift{{0, dayEnd}}
	}
	return c
}

// dayEnd is the minute that ends a day.
const dayEnd = 24 * 60

// maxHolidays keeps a calendar small: twenty years of them.
const maxHolidays = 500

// Check returns what is wrong with c.
func (c Calendar) Check() error {
	open := false
	for day, shifts := range c.Week {
		for i, s := range shifts {
			switch {
			case s.From < 0 || s.To > dayEnd || s.To <= s.From:
				return fault.NewInvalid("/shifts", "must end after they begin")
			case i > 0 && s.From < shifts[i-1].To:
				return fault.NewInvalid("/shifts", "must not overlap, as they do on "+time.Weekday(day).String())
			}
			open = true
		}
	}
	if !open {
		return fault.NewInvalid("/shifts", "must include a day on which the city works")
	}
	if len(c.Holidays) > maxHolidays {
		return fault.NewInvalid("/holidays", fmt.Sprintf("must be %d at most", maxHolidays))
	}
	return nil
}

// maxDays bounds how far away a deadline may be, so that the search ends in a
// calendar full of holidays: the longest target is a year.
const maxDays = 20 * 366

// shifts yields the begin and the end of each shift from a time on. One that has begun before
// begins at that time.
func (c Calendar) shifts(since time.Time) iter.Seq2[time.Time, time.Time] {
	from := DateOf(since.In(c.Zone))
	return func(yield func(begin, end time.Time) bool) {
		for n := range maxDays {
			date := DateOf(time.Date(from.Year, from.Month, from.Day+n, 0, 0, 0, 0, time.UTC))
			for _, s := range c.on(date) {
				begin := schedule.Moment(date.Year, date.Month, date.Day, schedule.Clock(s.From), c.Zone)
				end := schedule.Moment(date.Year, date.Month, date.Day, schedule.Clock(s.To), c.Zone)
				if begin.Before(since) {
					begin = since
				}
				if begin.Before(end) && !yield(begin, end) {
					return
				}
			}
		}
	}
}

// Due returns when the city will have worked for a duration since a time, and
// false if it never will.
func (c Calendar) Due(since time.Time, work time.Duration) (due time.Time, ok bool) {
	for begin, end := range c.shifts(since) {
		took := end.Sub(begin)
		if took >= work {
			return begin.Add(work), true
		}
		work -= took
	}
	return time.Time{}, false
}

// Between returns for how long the city works between two times.
func (c Calendar) Between(from, to time.Time) (work time.Duration) {
	for begin, end := range c.shifts(from) {
		if !begin.Before(to) {
			break
		}
		if end.After(to) {
			end = to
		}
		work += end.Sub(begin)
	}
	return work
}

// Workday returns the nth day after that of a time on which the city works.
func (c Calendar) Workday(since time.Time, n int) Date {
	from := DateOf(since.In(c.Zone))
	last := from
	for i := 1; i <= maxDays && n > 0; i++ {
		last = DateOf(time.Date(from.Year, from.Month, from.Day+i, 0, 0, 0, 0, time.UTC))
		if len(c.on(last)) > 0 {
			n--
		}
	}
	return last
}

// EndOfWorkday returns the end of the nth day after that of a time on which the city works.
// In a city that never works, every day counts.
func (c Calendar) EndOfWorkday(since time.Time, n int) time.Time {
	last := c.Workday(since, n)
	if len(c.on(last)) == 0 {
		return since.AddDate(0, 0, n)
	}
	return c.Ends(last).UTC()
}

// Opens returns when the city begins to work on a day, or the begin of a day on which it
// does not.
func (c Calendar) Opens(d Date) time.Time {
	begin := 0
	if shifts := c.on(d); len(shifts) > 0 {
		begin = shifts[0].From
	}
	return schedule.Moment(d.Year, d.Month, d.Day, schedule.Clock(begin), c.Zone)
}

// Ends returns the end of a day.
func (c Calendar) Ends(d Date) time.Time {
	return schedule.Moment(d.Year, d.Month, d.Day, dayEnd, c.Zone)
}

// on returns when the city works on a day.
func (c Calendar) on(d Date) []Shift {
	if _, off := slices.BinarySearchFunc(c.Holidays, d, Date.Compare); off {
		return nil
	}
	return c.Week[time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC).Weekday()]
}

// A Deadline is when the work on a report is to be finished. Its clock runs
// while the report is open, except while a question to the
// reporter is open.
//
//	       (filed, reopened)
//	              ▼
//	closed ◄── runs ◄──────► waits for the answer to a question
//	             │
//	             ▼ (the target is over, twice, three times)
//	        level 1, 2, 3
type Deadline struct {
	Since   *time.Time    // since when the clock runs; nil while it does not
	Used    time.Duration // working time before that
	Target  time.Duration // of the category when the report was filed or reopened; 0 for none
	Level   int           // how many targets late, as announced
	DueAt   *time.Time    // when the target ends; nil while the clock is stopped
	NextAt  *time.Time    // when the next level is reached; nil if none is
	Waiting bool          // for an answer
}

// Begin returns the deadline of a report whose clock begins now.
func (c Calendar) Begin(target time.Duration, now time.Time) Deadline {
	if target == 0 {
		return Deadline{}
	}
	return c.run(Deadline{Target: target}, now)
}

// Wait returns d with its clock stopped now, because the city waits for an answer of
// the reporter.
func (c Calendar) Wait(d Deadline, now time.Time) Deadline {
	if d.Since != nil {
		d.Used += c.Between(*d.Since, now)
	}
	d.Since, d.DueAt, d.NextAt, d.Waiting = nil, nil, nil, true
	return d
}

// Resume returns d with its clock running again.
func (c Calendar) Resume(d Deadline, now time.Time) Deadline {
	d.Waiting = false
	if d.Target == 0 {
		return d
	}
	return c.run(d, now)
}

// Retarget returns d with another target, and no level announced. Its clock goes on
// as it ran; one that d had none for begins at the filing.
func (c Calendar) Retarget(d Deadline, target time.Duration, filed time.Time) Deadline {
	switch {
	case target == d.Target:
		return d
	case target == 0:
		return Deadline{Waiting: d.Waiting}
	case d.Target == 0 && !d.Waiting:
		return c.Begin(target, filed)
	}
	d.Target, d.Level = target, 0
	d.DueAt, d.NextAt = c.reaches(d, 1), c.reaches(d, 1)
	return d
}

// run starts the clock of d, which keeps its used time and its level.
func (c Calendar) run(d Deadline, now time.Time) Deadline {
	d.Since = new(now.UTC().Truncate(time.Microsecond)) // the precision of the database
	d.DueAt = c.reaches(d, 1)
	d.NextAt = c.reaches(d, d.Level+1)
	return d
}

// Raise returns d on its next level.
func (c Calendar) Raise(d Deadline) Deadline {
	d.Level++
	d.NextAt = c.reaches(d, d.Level+1)
	return d
}

// reaches returns when d is so many targets late, or nil if never.
func (c Calendar) reaches(d Deadline, level int) *time.Time {
	if level > MaxOverdue || d.Since == nil {
		return nil
	}
	left := time.Duration(level)*d.Target - d.Used
	if left <= 0 { // it was reached before the clock stopped
		return d.Since
	}
	at, ok := c.Due(*d.Since, left)
	if !ok {
		return nil
	}
	return new(at.UTC().Truncate(time.Microsecond))
}
