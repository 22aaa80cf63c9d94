package calendar

import (
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/platform/schedule"
)

// EndOfWorkday returns the end of the last of so many days on which the city works, the
// first of which is the one after since. Where it works on fewer in twenty years, every
// day counts.
func (c Calendar) EndOfWorkday(since time.Time, days int) time.Time {
	from := DateOf(since.In(c.Zone))
	left := days
	for n := 1; n <= maxDays; n++ {
		date := DateOf(time.Date(from.Year, from.Month, from.Day+n, 0, 0, 0, 0, time.UTC))
		_, off := slices.BinarySearchFunc(c.Holidays, date, Date.Compare)
		weekday := time.Date(date.Year, date.Month, date.Day, 0, 0, 0, 0, time.UTC).Weekday()
		if off || len(c.Week[weekday]) == 0 {
			continue
		}
		if left--; left == 0 {
			return schedule.Moment(date.Year, date.Month, date.Day, schedule.Clock(dayEnd), c.Zone).UTC()
		}
	}
	return since.AddDate(0, 0, days)
}
