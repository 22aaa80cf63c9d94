package api

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// readFilter reads the conditions in the query. A search for punctuation alone finds nothing.
func readFilter(r *http.Request) report.Filter {
	query := r.URL.Query()
	filter := report.Filter{
		Statuses: service.Each(query["status"], func(s string) report.Status { return report.Status(s) }), Areas: query["area"], Asset: query.Get("asset"),
		Categories: service.Each(query["category"], int32Of),
		IDs:        service.Each(query["id"], uuid.MustParse), // the document says uuid
		Words:      report.Words(query.Get("q")), Order: report.Order(query.Get("order")),
	}
	if query.Has("bbox") {
		filter.Box = checked(report.ParseBox, query.Get("bbox"))
	}
	if query.Has("q") && len(filter.Words) == 0 {
		filter.IDs = []uuid.UUID{uuid.Nil} // which no report has
	}
	return filter
}

// queueFilter is readFilter for an official's request.
func queueFilter(r *http.Request) report.Filter {
	filter := readFilter(r)
	query := r.URL.Query()
	filter.Departments = service.Each(query["department"], int32Of)
	filter.Sources = service.Each(query["source"], func(s string) report.Source { return report.Source(s) })
	switch assignee := query.Get("assignee"); assignee {
	case "":
	case "none":
		filter.Assignee = new("")
	case "me":
		filter.Assignee = new(user(r).ID)
	default:
		filter.Assignee = &assignee
	}
	for name, bound := range map[string]*time.Time{"filed_from": &filter.FiledFrom, "filed_to": &filter.FiledTo} {
		if query.Has(name) {
			*bound = checked(func(s string) (time.Time, error) { return time.Parse(time.RFC3339, s) }, query.Get(name))
		}
	}
	filter.Official, filter.Scope = true, user(r).Scope
	filter.Overdue = intParam(r, "overdue")
	filter.Hidden = query.Get("hidden") == "true"
	filter.Withdrawn = query.Get("withdrawn") == "true"
	filter.Disputed = query.Get("disputed") == "true"
	filter.NewComments = query.Get("new_comments") == "true"
	filter.Waiting = query.Get("waiting") == "true"
	filter.Unanswered = query.Get("not_answered") == "true"
	return filter
}

func int32Of(text string) int32 { return int32(service.Number(text)) } //nolint:gosec // the document says int32

// readCursor reads the cursor in the query, nil without one, which must be one of the list
// that check knows.
func readCursor(r *http.Request, check func(*report.Cursor) error) (*report.Cursor, error) {
	text := r.URL.Query().Get("cursor")
	if text == "" {
		return nil, nil
	}
	after := checked(report.ParseCursor, text)
	if err := check(after); err != nil {
		return nil, fault.NewInvalid("cursor", err.Error())
	}
	return after, nil
}
