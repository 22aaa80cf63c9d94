package api

import (
	"cmp"
	"context"
	"maps"
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
	byName := func(a, b report.Official) int { return strings.Compare(a.Name+a.ID, b.Name+b.ID) }
	return reportapi.QueueCounts{
		Total: counts.Total, Disputed: counts.Disputed,
		Statuses: counted(counts.Statuses, cmp.Compare, func(status report.Status, n int64) reportapi.StatusCount {
			return reportapi.StatusCount{Status: reportapi.Status(status), Count: n}
		}),
		Categories: counted(counts.Categories, cmp.Compare, func(id int32, n int64) reportapi.CategoryCount {
			return reportapi.CategoryCount{CategoryID: id, Count: n}
		}),
		Departments: counted(counts.Departments, cmp.Compare, func(id int32, n int64) reportapi.DepartmentCount {
			return reportapi.DepartmentCount{DepartmentID: id, Count: n}
		}),
		Assignees: counted(counts.Assignees, byName, func(o report.Official, n int64) reportapi.AssigneeCount {
			return reportapi.AssigneeCount{ID: o.ID, Name: o.Name, Count: n}
		}),
		Areas: counted(counts.Areas, cmp.Compare, func(code string, n int64) reportapi.AreaCount {
			return reportapi.AreaCount{Area: code, Count: n}
		}),
	}, err
}

// counted returns counts as an answer lists them, in the order of what is counted.
func counted[K comparable, T any](counts map[K]int64, order func(a, b K) int, entry func(K, int64) T) []T {
	return service.Each(slices.SortedFunc(maps.Keys(counts), order), func(k K) T { return entry(k, counts[k]) })
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
