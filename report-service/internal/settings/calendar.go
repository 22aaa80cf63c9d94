package settings

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/report-service/internal/calendar"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Calendar returns when the city works, at most a second old.
func (c *City) Calendar(ctx context.Context) (calendar.Calendar, error) {
	return c.calendar.get(ctx, cacheLife, func(ctx context.Context) (calendar.Calendar, error) {
		return ReadCalendar(ctx, c.pool)
	})
}

// SetCalendar replaces the calendar and the targets of all categories: a
// category that is not in targets has none. They apply to reports whose clock
// begins a second later at the latest.
func (c *City) SetCalendar(ctx context.Context, days calendar.Calendar, targets map[int32]time.Duration, by report.Official) error {
	holidays := make([]time.Time, len(days.Holidays))
	for i, h := range days.Holidays {
		holidays[i] = time.Date(h.Year, h.Month, h.Day, 0, 0, 0, 0, time.UTC)
	}
	var categories, hours []int32
	for id, target := range targets {
		categories, hours = append(categories, id), append(hours, int32(target/time.Hour))
	}
	err := pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		// Only one at a time, or two of them would mix. Readers are not blocked.
		if err := pgpool.Exec(ctx, tx, "lock calendar", `lock table calendar in share row exclusive mode`); err != nil {
			return err
		}
		before, err := ReadCalendar(ctx, tx)
		if err != nil {
			return err
		}
		err = pgpool.Exec(ctx, tx, "set calendar", `
			insert into calendar (zone, week, holidays) values ($1, $2, $3)
			on conflict (one) do update set zone = excluded.zone, week = excluded.week, holidays = excluded.holidays`,
			days.Zone.String(), days.Week, holidays)
		if err != nil {
			return err
		}
		known, err := pgpool.Value[int](ctx, tx, "select categories", `select count(*) from categories where id = any($1)`, categories)
		if err != nil {
			return err
		}
		if known != len(categories) {
			return fault.NewInvalid("/targets", "must name existing categories only")
		}
		changed, err := pgpool.Collect(ctx, tx, "set targets", pgx.RowTo[int32], `
			update categories c set target_hours = r.hours
			from (
				select c.id, r.hours from categories c
				left join unnest($1::int[], $2::int[]) as r(id, hours) on r.id = c.id
			) r
			where r.id = c.id and c.target_hours is distinct from r.hours
			returning c.id`, categories, hours)
		if err != nil {
			return err
		}
		detail := calendarChanged(before, days)
		if len(changed) > 0 {
			detail["targets"] = slices.Sorted(slices.Values(changed))
		}
		return Record(ctx, tx, by, "calendar", detail)
	})
	if err != nil {
		return err
	}
	c.calendar.drop()
	c.categories.drop()
	return nil
}

// ReadCalendar returns the calendar that operators set, or one that is always
// open.
func ReadCalendar(ctx context.Context, q pgpool.Querier) (calendar.Calendar, error) {
	var c calendar.Calendar
	var zone string
	var holidays []time.Time
	err := q.QueryRow(ctx, `select zone, week, holidays from calendar`).Scan(&zone, &c.Week, &holidays)
	if errors.Is(err, pgx.ErrNoRows) {
		return calendar.AlwaysOpen(), nil
	}
	if err != nil {
		return calendar.Calendar{}, fmt.Errorf("select calendar: %w", err)
	}
	if c.Zone, err = schedule.Zone(zone); err != nil {
		return calendar.Calendar{}, fmt.Errorf("read calendar: %w", err)
	}
	for _, h := range holidays {
		c.Holidays = append(c.Holidays, calendar.DateOf(h))
	}
	return c, nil
}
