package calendar_test

import (
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/report-service/internal/calendar"
)

// Working days are those of the calendar, and the day itself is none of them.
func TestEndOfWorkday(t *testing.T) {
	t.Parallel()
	jakarta, err := time.LoadLocation("Asia/Jakarta")
	if err != nil {
		t.Fatal(err)
	}
	office := calendar.Calendar{Zone: jakarta, Holidays: []calendar.Date{{Year: 2026, Month: time.December, Day: 25}}}
	for day := time.Monday; day <= time.Friday; day++ {
		office.Week[day] = []calendar.Shift{{From: 8 * 60, To: 16 * 60}}
	}
	thursday := time.Date(2026, 12, 17, 15, 0, 0, 0, jakarta)
	for _, tt := range []struct {
		name     string
		calendar calendar.Calendar
		days     int
		want     time.Time
	}{
		{"the next day", office, 1, time.Date(2026, 12, 19, 0, 0, 0, 0, jakarta)},
		{"over a weekend", office, 2, time.Date(2026, 12, 22, 0, 0, 0, 0, jakarta)},
		{"over Christmas", office, 6, time.Date(2026, 12, 29, 0, 0, 0, 0, jakarta)},
		{"without a calendar", calendar.AlwaysOpen(), 10, time.Date(2026, 12, 28, 0, 0, 0, 0, time.UTC)},
		{"a city that never works", calendar.Calendar{Zone: jakarta}, 10, thursday.AddDate(0, 0, 10)},
	} {
		if got := tt.calendar.EndOfWorkday(thursday, tt.days); !got.Equal(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
