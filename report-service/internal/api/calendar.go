package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/calendar"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
)

// A Calendar is that of the city, with its targets.
type Calendar struct {
	Settings   *settings.City
	Categories *settings.Categories
}

// Operations are those on the calendar.
func (h Calendar) Operations() openapi.Operations {
	return openapi.Operations{
		"getCalendar": {Handler: answered(h.getCalendar), Timeout: service.DefaultTimeout},
		"setCalendar": {Handler: answeredTo(h.setCalendar), Timeout: service.DefaultTimeout},
	}
}

// weekdays are the names of the days in the document, by time.Weekday.
var weekdays = [7]reportapi.Weekday{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// getCalendar handles GET /reports/calendar.
func (h Calendar) getCalendar(r *http.Request) (reportapi.Calendar, error) {
	return h.read(r.Context())
}

func (h Calendar) read(ctx context.Context) (out reportapi.Calendar, err error) {
	days, err := h.Settings.Calendar(ctx)
	if err != nil {
		return out, err
	}
	list, err := h.Categories.List(ctx)
	if err != nil {
		return out, err
	}
	out = reportapi.Calendar{Zone: days.Zone.String(), Shifts: []reportapi.Shift{}, Holidays: make([]string, len(days.Holidays)), Targets: []reportapi.Target{}}
	for day, shifts := range days.Week {
		for _, shift := range shifts {
			out.Shifts = append(out.Shifts, reportapi.Shift{Day: weekdays[day], From: clockText(shift.From), To: clockText(shift.To)})
		}
	}
	for i, h := range days.Holidays {
		out.Holidays[i] = h.String()
	}
	for _, c := range list.Categories {
		if c.Target > 0 {
			out.Targets = append(out.Targets, reportapi.Target{CategoryID: c.ID, Hours: int32(c.Target / time.Hour)})
		}
	}
	return out, nil
}

// clockText returns minutes after midnight as the document writes them.
func clockText(minutes int) string { return schedule.Clock(minutes).String() }

// setCalendar handles PUT /reports/calendar.
func (h Calendar) setCalendar(r *http.Request, req reportapi.Calendar) (reportapi.Calendar, error) {
	if err := h.set(r.Context(), req, user(r).AsOfficial()); err != nil {
		return reportapi.Calendar{}, err
	}
	return h.read(r.Context())
}

func (h Calendar) set(ctx context.Context, req reportapi.Calendar, by report.Official) error {
	var days calendar.Calendar
	var err error
	if days.Zone, err = schedule.Zone(req.Zone); err != nil {
		return fault.NewInvalid("/zone", err.Error())
	}
	for i, shift := range req.Shifts {
		var span calendar.Shift
		for name, bound := range map[string]struct {
			text    string
			minutes *int
		}{"from": {shift.From, &span.From}, "to": {shift.To, &span.To}} {
			if bound.text == "24:00" {
				*bound.minutes = 24 * 60
				continue
			}
			clock, err := schedule.ParseClock(bound.text)
			if err != nil {
				return fault.NewInvalid(fmt.Sprintf("/shifts/%d/%s", i, name), err.Error())
			}
			*bound.minutes = int(clock)
		}
		if span.To <= span.From {
			return fault.NewInvalid(fmt.Sprintf("/shifts/%d/to", i), "must be later than from")
		}
		day := slices.Index(weekdays[:], shift.Day)
		days.Week[day] = append(days.Week[day], span)
	}
	for _, shifts := range days.Week {
		slices.SortFunc(shifts, func(a, b calendar.Shift) int { return cmp.Compare(a.From, b.From) })
	}
	for i, text := range req.Holidays {
		date, err := calendar.ParseDate(text)
		if err != nil {
			return fault.NewInvalid(fmt.Sprintf("/holidays/%d", i), err.Error())
		}
		days.Holidays = append(days.Holidays, date)
	}
	slices.SortFunc(days.Holidays, calendar.Date.Compare)
	days.Holidays = slices.Compact(days.Holidays)
	if err := days.Check(); err != nil {
		return err
	}
	targets := make(map[int32]time.Duration, len(req.Targets))
	for i, t := range req.Targets {
		if _, twice := targets[t.CategoryID]; twice {
			return fault.NewInvalid(fmt.Sprintf("/targets/%d/category_id", i), "must not be in another target")
		}
		targets[t.CategoryID] = time.Duration(t.Hours) * time.Hour
	}
	return h.Settings.SetCalendar(ctx, days, targets, by)
}
