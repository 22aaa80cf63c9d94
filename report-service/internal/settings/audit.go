package settings

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/calendar"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Record writes who changed a setting, in the transaction that does. Without a detail
// nothing has changed.
func Record(ctx context.Context, tx pgx.Tx, by report.Official, setting string, detail map[string]any) error {
	if len(detail) == 0 {
		return nil
	}
	return pgpool.Exec(ctx, tx, "write audit of settings", `insert into settings_audit (actor, actor_name, setting, detail) values ($1, $2, $3, $4)`,
		by.ID, by.Name, setting, detail)
}

// departmentsChanged returns the ids of departments that differ.
func departmentsChanged(before, after []report.Department) map[string]any {
	byID := func(id int32) func(report.Department) bool {
		return func(d report.Department) bool { return d.ID == id }
	}
	var added, changed, removed []int32
	for _, d := range after {
		i := slices.IndexFunc(before, byID(d.ID))
		switch {
		case i < 0:
			added = append(added, d.ID)
		case before[i].Name != d.Name || d.Code != "" && before[i].Code != d.Code || !slices.Equal(before[i].Categories, slices.Sorted(slices.Values(d.Categories))) || !sameRoutes(before[i].Routes, d.Routes):
			changed = append(changed, d.ID)
		}
	}
	for _, d := range before {
		if !slices.ContainsFunc(after, byID(d.ID)) {
			removed = append(removed, d.ID)
		}
	}
	return Present(map[string][]int32{"added": added, "changed": changed, "removed": removed})
}

// sameRoutes reports whether two lists have the same routes, each once, in any order.
func sameRoutes(a, b []report.Route) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(r report.Route) bool { return !slices.Contains(b, r) })
}

// calendarChanged returns what differs between two calendars: the zone, the days of the
// week, counted from Sunday, and the holidays.
func calendarChanged(before, after calendar.Calendar) map[string]any {
	detail := Present(map[string][]string{
		"holidays_added":   holidaysWithout(after, before),
		"holidays_removed": holidaysWithout(before, after),
	})
	if before.Zone.String() != after.Zone.String() {
		detail["zone"] = after.Zone.String()
	}
	var days []int
	for day := range after.Week {
		if !slices.Equal(before.Week[day], after.Week[day]) {
			days = append(days, day)
		}
	}
	if len(days) > 0 {
		detail["weekdays"] = days
	}
	return detail
}

// holidaysWithout returns the holidays of c that other does not have.
func holidaysWithout(c, other calendar.Calendar) (days []string) {
	for _, day := range c.Holidays {
		if !slices.Contains(other.Holidays, day) {
			days = append(days, day.String())
		}
	}
	return days
}

// Present returns the lists that are not empty.
func Present[T any](lists map[string][]T) map[string]any {
	found := make(map[string]any)
	for name, list := range lists {
		if len(list) > 0 {
			found[name] = list
		}
	}
	return found
}
