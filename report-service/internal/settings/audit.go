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
	detail, _ := differences(before, after, func(d report.Department) int32 { return d.ID }, func(was, d report.Department) bool {
		return was.Name == d.Name && (d.Code == "" || was.Code == d.Code) &&
			slices.Equal(was.Categories, slices.Sorted(slices.Values(d.Categories))) && sameRoutes(was.Routes, d.Routes)
	})
	return detail
}

// differences returns the keys of the items in which two lists differ, and whether those in
// both have another order.
func differences[T any, K comparable](before, after []T, key func(T) K, same func(before, after T) bool) (detail map[string]any, moved bool) {
	old := make(map[K]T, len(before))
	for _, item := range before {
		old[key(item)] = item
	}
	var added, changed, kept, removed []K
	for _, item := range after {
		was, known := old[key(item)]
		switch {
		case !known:
			added = append(added, key(item))
			continue
		case !same(was, item):
			changed = append(changed, key(item))
		}
		kept = append(kept, key(item))
	}
	stayed := 0
	for _, item := range before {
		if !slices.Contains(kept, key(item)) {
			removed = append(removed, key(item))
			continue
		}
		moved = moved || kept[stayed] != key(item)
		stayed++
	}
	return Present(map[string][]K{"added": added, "changed": changed, "removed": removed}), moved
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
