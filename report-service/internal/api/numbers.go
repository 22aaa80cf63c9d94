package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
)

// maxPeriods bounds the answer of countOverTime.
const maxPeriods = 400

// Numbers are what became of reports over time.
type Numbers struct {
	Workbench *postgres.Workbench
	Areas     *settings.Areas
	Gates     Gates
}

// Operations are those on numbers.
func (h Numbers) Operations() openapi.Operations {
	return openapi.Operations{"countOverTime": {Handler: answered(h.countOverTime), Timeout: service.DefaultTimeout}}
}

// countOverTime handles GET /reports/numbers.
func (h Numbers) countOverTime(r *http.Request) (reportapi.Numbers, error) {
	filter := queueFilter(r)
	if filter.FiledTo.IsZero() {
		filter.FiledTo = time.Now()
	}
	if filter.FiledFrom.IsZero() {
		filter.FiledFrom = filter.FiledTo.AddDate(-1, 0, 0)
	}
	interval := report.Interval(r.URL.Query().Get("interval"))
	days := map[report.Interval]int{report.Day: 1, report.Week: 7, report.Month: 28}[interval]
	if filter.FiledTo.After(filter.FiledFrom.AddDate(0, 0, days*maxPeriods)) {
		return reportapi.Numbers{}, fault.NewInvalid("filed_from", "must be within 400 periods of filed_to: choose a later time or a longer interval")
	}
	var numbers []report.PeriodCounts
	list, err := h.Areas.List(r.Context())
	if err != nil {
		return reportapi.Numbers{}, err
	}
	var departments, areas figures
	err = h.Gates.do(r.Context(), r, func(ctx context.Context) (err error) {
		if numbers, err = h.Workbench.CountOverTime(ctx, filter, interval); err != nil {
			return err
		}
		if departments, err = h.figures(ctx, filter, report.ByDepartment); err == nil && len(list.Areas) > 0 {
			areas, err = h.figures(ctx, filter, report.ByArea)
		}
		return err
	})
	if err != nil {
		return reportapi.Numbers{}, err
	}
	out := reportapi.Numbers{
		Numbers: make([]reportapi.Number, len(numbers)), Departments: make([]reportapi.DepartmentNumbers, len(departments.parts)), Areas: make([]reportapi.AreaNumbers, len(areas.parts)),
		MedianSeconds: secondsOf(departments.total.Median),
	}
	for i, p := range departments.parts {
		open := departments.open[p.Part]
		out.OpenAtEnd += open
		out.Departments[i] = reportapi.DepartmentNumbers{
			DepartmentID: p.Part, Filed: p.Filed, Resolved: p.Resolved, Rejected: p.Rejected, MedianSeconds: secondsOf(p.Median),
			OpenAtEnd: open, Confirmed: p.Confirmed, Disputed: p.Disputed, Silent: p.Silent,
		}
	}
	for i, p := range areas.parts {
		out.Areas[i] = reportapi.AreaNumbers{
			Area: list.Code(p.Part), Filed: p.Filed, Resolved: p.Resolved, Rejected: p.Rejected, MedianSeconds: secondsOf(p.Median),
			OpenAtEnd: areas.open[p.Part], Confirmed: p.Confirmed, Disputed: p.Disputed, Silent: p.Silent,
		}
	}
	for i, n := range numbers {
		out.Numbers[i] = reportapi.Number{
			Begin: n.Begin, CategoryID: n.Category, Filed: n.Filed, Resolved: n.Resolved, Rejected: n.Rejected, Reopened: n.Reopened,
			Confirmed: n.Confirmed, Disputed: n.VerdictCounts.Disputed, Silent: n.Silent,
		}
	}
	return out, nil
}

// figures are those of parts of the city that did something or have something open, by
// their ids.
type figures struct {
	total report.PartCounts
	parts []report.PartCounts
	open  map[int32]int64
}

func (h Numbers) figures(ctx context.Context, filter report.Filter, by report.PartOf) (f figures, err error) {
	if f.total, f.parts, err = h.Workbench.CountByPart(ctx, filter, by); err != nil {
		return f, err
	}
	if f.open, err = h.Workbench.CountOpen(ctx, filter, by); err != nil {
		return f, err
	}
	for id := range f.open {
		if !slices.ContainsFunc(f.parts, func(p report.PartCounts) bool { return p.Part == id }) {
			f.parts = append(f.parts, report.PartCounts{Part: id})
		}
	}
	slices.SortFunc(f.parts, func(a, b report.PartCounts) int { return cmp.Compare(a.Part, b.Part) })
	return f, nil
}

// secondsOf returns a duration in whole seconds; nil stays nil.
func secondsOf(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	return new(int64(d.Round(time.Second).Seconds()))
}
