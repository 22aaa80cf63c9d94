package report

import (
	"fmt"
	"math"
	"time"
)

// coarse is how many steps a degree has in the place of a report without words: a step is
// about a hundred metres.
const coarse = 1000

// RemoveWords leaves of f, which was closed long ago, only what numbers are made of: its
// reference instead of a title, its category, its area, its times and its place to about a
// hundred metres. It is anonymous then. Its version rises, so that nobody shows what they
// had before; the time of its last change stays.
func (f *Filing) RemoveWords() {
	f.Title, f.Description, f.Address = Reference(f.ID), "", ""
	f.Privacy, f.Reporter.Name, f.Asset = Anonymous, "", Asset{}
	if p := f.Position; p != nil {
		f.Position = &Position{math.Round(p.Latitude*coarse) / coarse, math.Round(p.Longitude*coarse) / coarse}
	}
	f.Version++
}

// A YearMonth is a calendar month in UTC, as "2023-11".
type YearMonth string

// YearMonthOf returns the month of t.
func YearMonthOf(t time.Time) YearMonth { return YearMonth(t.UTC().Format("2006-01")) }

// Bounds returns the first moment of m, and of the month after it.
func (m YearMonth) Bounds() (from, to time.Time, err error) {
	from, err = time.Parse("2006-01", string(m))
	if err != nil {
		return from, from, fmt.Errorf("read month: %w", err)
	}
	return from, from.AddDate(0, 1, 0), nil
}
