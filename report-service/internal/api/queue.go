package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A Queue is the officials' list.
type Queue struct {
	Workbench *postgres.Workbench
	Reports   *postgres.Reports
	Gates     Gates
}

// Operations are those on the queue.
func (h Queue) Operations() openapi.Operations {
	return openapi.Operations{
		"listQueue":    {Handler: h.listQueue, Timeout: service.DefaultTimeout},
		"countQueue":   {Handler: answered(h.countQueue), Timeout: service.DefaultTimeout},
		"mapQueue":     {Handler: answered(h.mapQueue), Timeout: service.DefaultTimeout},
		"countWaiting": {Handler: answered(h.countWaiting), Timeout: service.DefaultTimeout},
	}
}

// listQueue handles GET /reports/queue.
func (h Queue) listQueue(w http.ResponseWriter, r *http.Request) error {
	filter := queueFilter(r)
	after, err := readCursor(r, func(c *report.Cursor) error { return c.Of(filter) })
	if err != nil {
		return err
	}
	var queue report.Queue
	err = h.Gates.doFor(filter, r, func(ctx context.Context) (err error) {
		if queue, err = h.Workbench.Queue(ctx, filter, after, intParam(r, "limit")); err != nil {
			return err
		}
		return h.Workbench.MarkLikely(ctx, queue.Tasks)
	})
	if err != nil {
		return err
	}
	out := reportapi.TaskPage{Reports: service.Each(queue.Tasks, taskOf)}
	if queue.Next != nil {
		out.NextCursor = queue.Next.String()
		service.NextLink(w, r, out.NextCursor)
	}
	return service.Encode(w, http.StatusOK, out)
}

// countQueue handles GET /reports/queue/counts.
func (h Queue) countQueue(r *http.Request) (reportapi.QueueCounts, error) {
	filter := queueFilter(r)
	var counts report.Counts
	err := h.Gates.do(r.Context(), r, func(ctx context.Context) (err error) {
		counts, err = h.Workbench.Counts(ctx, filter)
		return err
	})
	if err != nil {
		return reportapi.QueueCounts{}, err
	}
	out := reportapi.QueueCounts{
		Total: counts.Total, Disputed: counts.Disputed, Statuses: []reportapi.StatusCount{}, Categories: []reportapi.CategoryCount{},
		Departments: []reportapi.DepartmentCount{}, Assignees: []reportapi.AssigneeCount{},
		Areas: []reportapi.AreaCount{},
	}
	for status, n := range counts.Statuses {
		out.Statuses = append(out.Statuses, reportapi.StatusCount{Status: reportapi.Status(status), Count: n})
	}
	for id, n := range counts.Categories {
		out.Categories = append(out.Categories, reportapi.CategoryCount{CategoryID: id, Count: n})
	}
	for id, n := range counts.Departments {
		out.Departments = append(out.Departments, reportapi.DepartmentCount{DepartmentID: id, Count: n})
	}
	for official, n := range counts.Assignees {
		out.Assignees = append(out.Assignees, reportapi.AssigneeCount{ID: official.ID, Name: official.Name, Count: n})
	}
	for code, n := range counts.Areas {
		out.Areas = append(out.Areas, reportapi.AreaCount{Area: code, Count: n})
	}
	slices.SortFunc(out.Statuses, func(a, b reportapi.StatusCount) int { return strings.Compare(string(a.Status), string(b.Status)) })
	slices.SortFunc(out.Categories, func(a, b reportapi.CategoryCount) int { return int(a.CategoryID - b.CategoryID) })
	slices.SortFunc(out.Departments, func(a, b reportapi.DepartmentCount) int { return int(a.DepartmentID - b.DepartmentID) })
	slices.SortFunc(out.Assignees, func(a, b reportapi.AssigneeCount) int { return strings.Compare(a.Name+a.ID, b.Name+b.ID) })
	slices.SortFunc(out.Areas, func(a, b reportapi.AreaCount) int { return strings.Compare(a.Area, b.Area) })
	return out, nil
}

// mapQueue handles GET /reports/queue/map.
func (h Queue) mapQueue(r *http.Request) (reportapi.MapPoints, error) {
	filter := queueFilter(r)
	var shown report.Map
	err := h.Gates.do(r.Context(), r, func(ctx context.Context) (err error) {
		shown, err = h.Reports.Map(ctx, filter, report.GridOf(*filter.Box, intParam(r, "zoom")), maxMapPoints)
		return err
	})
	return mapPoints(shown), err
}

// countWaiting handles GET /reports/queue/waiting.
func (h Queue) countWaiting(r *http.Request) (reportapi.QueueWaiting, error) {
	waiting, err := h.Workbench.Waiting(r.Context(), user(r))
	return reportapi.QueueWaiting{
		NewComments: waiting.Commented, AbuseReports: waiting.Abuse, HeldPhotos: waiting.Photos, Disputed: waiting.Disputed,
	}, err
}
