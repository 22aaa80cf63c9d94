package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// listQueue handles GET /reports/queue.
func (h workbenchHandlers) listQueue(w http.ResponseWriter, r *http.Request) error {
	filter, findsNothing, err := queueFilter(r)
	if err != nil {
		return err
	}
	after, limit, err := readPage(r, filter)
	if err != nil {
		return err
	}
	var queue report.Queue
	read := func(ctx context.Context) (err error) {
		queue, err = h.workbench.Queue(ctx, filter, after, limit)
		return err
	}
	switch {
	case findsNothing:
	case filter.Costly():
		err = h.gates.do(r.Context(), r, read)
	default:
		err = read(r.Context())
	}
	if err != nil {
		return err
	}
	out := reportapi.TaskPage{Reports: make([]reportapi.Task, len(queue.Tasks))}
	for i, t := range queue.Tasks {
		out.Reports[i] = taskOf(t)
	}
	if queue.Next != nil {
		out.NextCursor = queue.Next.String()
		service.NextLink(w, r, out.NextCursor)
	}
	return service.Encode(w, http.StatusOK, out)
}

// countQueue handles GET /reports/queue/counts.
func (h workbenchHandlers) countQueue(w http.ResponseWriter, r *http.Request) error {
	filter, findsNothing, err := queueFilter(r)
	if err != nil {
		return err
	}
	var counts report.Counts
	if !findsNothing {
		err = h.gates.do(r.Context(), r, func(ctx context.Context) (err error) {
			counts, err = h.workbench.Counts(ctx, filter)
			return err
		})
		if err != nil {
			return err
		}
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
	return service.Encode(w, http.StatusOK, out)
}

// countWaiting handles GET /reports/queue/waiting.
func (h workbenchHandlers) countWaiting(w http.ResponseWriter, r *http.Request) error {
	waiting, err := h.workbench.Waiting(r.Context())
	if err != nil {
		return err
	}
	return service.Encode(w, http.StatusOK, reportapi.QueueWaiting{
		NewComments: waiting.Commented, AbuseReports: waiting.Abuse, HeldPhotos: waiting.Photos, Disputed: waiting.Disputed,
	})
}

// queueFilter reads the filter of an official's request. A search for nothing
// but punctuation finds nothing.
func queueFilter(r *http.Request) (filter report.Filter, findsNothing bool, err error) {
	query := r.URL.Query()
	if err := readFilter(query, &filter); err != nil {
		return filter, false, err
	}
	for _, department := range query["department"] {
		id, err := strconv.ParseInt(department, 10, 32)
		if err != nil {
			return filter, false, invalid("department", err)
		}
		filter.Departments = append(filter.Departments, int32(id))
	}
	switch assignee := query.Get("assignee"); assignee {
	case "":
	case "none":
		filter.Assignee = new("")
	case "me":
		filter.Assignee = new(caller(r).ID)
	default:
		filter.Assignee = &assignee
	}
	for name, bound := range map[string]*time.Time{"filed_from": &filter.FiledFrom, "filed_to": &filter.FiledTo} {
		if !query.Has(name) {
			continue
		}
		if *bound, err = time.Parse(time.RFC3339, query.Get(name)); err != nil || bound.Year() < 1 {
			return filter, false, invalid(name, errTime)
		}
	}
	if query.Has("overdue") {
		if filter.Overdue, err = intParam(r, "overdue"); err != nil {
			return filter, false, err
		}
	}
	for _, source := range query["source"] {
		filter.Sources = append(filter.Sources, report.Source(source))
	}
	filter.Official = true
	filter.Hidden = query.Get("hidden") == "true"
	filter.Withdrawn = query.Get("withdrawn") == "true"
	filter.Disputed = query.Get("disputed") == "true"
	filter.NewComments = query.Get("new_comments") == "true"
	filter.Waiting = query.Get("waiting") == "true"
	filter.Unanswered = query.Get("not_answered") == "true"
	return filter, query.Has("q") && len(filter.Words) == 0, nil
}

// readPage reads the cursor and the limit of a list with a filter.
func readPage(r *http.Request, filter report.Filter) (after *report.Cursor, limit int, err error) {
	if query := r.URL.Query(); query.Has("cursor") {
		if after, err = report.ParseCursor(query.Get("cursor")); err == nil {
			err = after.Of(filter)
		}
		if err != nil {
			return nil, 0, invalid("cursor", err)
		}
	}
	limit, err = intParam(r, "limit")
	return after, limit, err
}

var errTime = errors.New("must be a time as in RFC 3339, such as 2026-11-22T08:00:00Z")

func taskOf(t report.Task) reportapi.Task {
	out := reportapi.Task{
		ID: t.ID, Title: t.Title, CategoryID: t.Category.ID, CategoryName: t.Category.Name, Area: t.Area.Code, Address: t.Address,
		PrivacyLevel: reportapi.PrivacyLevel(t.Privacy), Visibility: reportapi.Visibility(t.Visibility), Status: reportapi.Status(t.Status), Transitions: make([]reportapi.Transition, len(t.Status.Transitions())),
		Score: t.Score, Version: t.Version, CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt,
		Assignee: personOf(t.Assignee), Routed: t.Routed, Notes: t.Notes,
		DueAt: orZero(t.DueAt), OverdueLevel: int32(t.Overdue), Waiting: t.Waiting, Question: openQuestionOf(t.Question), NotAnswered: t.Unanswered,
		Photos:       append([]uuid.UUID{}, t.Photos...),
		HiddenReason: t.HiddenReason, WithdrawnAt: orZero(t.WithdrawnAt), AbuseReports: t.Abuse, NewComments: t.Comments, Disputed: t.Disputed,
	}
	if t.Position != nil {
		out.Latitude, out.Longitude = &t.Position.Latitude, &t.Position.Longitude
	}
	for i, move := range t.Status.Transitions() {
		out.Transitions[i] = reportapi.Transition{Status: reportapi.Status(move.To), NoteRequired: move.NoteRequired}
	}
	if t.Original != nil {
		out.DuplicateOf = *t.Original
	}
	if t.Department != nil {
		out.DepartmentID, out.DepartmentName = t.Department.ID, t.Department.Name
	}
	return out
}

func personOf(o *report.Official) reportapi.Person {
	if o == nil {
		return reportapi.Person{}
	}
	return reportapi.Person{ID: o.ID, Name: o.Name}
}
