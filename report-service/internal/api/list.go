package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// listReports handles GET /reports.
func (h reportHandlers) listReports(w http.ResponseWriter, r *http.Request) error {
	return h.list(w, r, report.Filter{})
}

// listMyReports handles GET /reports/mine.
func (h reportHandlers) listMyReports(w http.ResponseWriter, r *http.Request) error {
	return h.list(w, r, report.Filter{Reporter: caller(r).ID})
}

// list answers with a page of the reports that match filter and the query.
func (h reportHandlers) list(w http.ResponseWriter, r *http.Request, filter report.Filter) error {
	query := r.URL.Query()
	if err := readFilter(query, &filter); err != nil {
		return err
	}
	if query.Has("q") && len(filter.Words) == 0 { // nothing but punctuation
		return service.Encode(w, http.StatusOK, pageOf(report.Page{}))
	}
	after, limit, err := readPage(r, filter)
	if err != nil {
		return err
	}
	var page report.Page
	read := func(ctx context.Context) (err error) {
		page, err = h.reports.List(ctx, filter, after, limit, caller(r).ID)
		return err
	}
	if filter.Costly() {
		err = h.gates.do(r.Context(), r, read)
	} else {
		err = read(r.Context())
	}
	if err != nil {
		return err
	}
	if query.Get("brief") == "true" {
		for i := range page.Reports {
			page.Reports[i].Description = ""
		}
	}
	if page.Next != nil {
		service.NextLink(w, r, page.Next.String())
	}
	return service.Encode(w, http.StatusOK, pageOf(page))
}

// readFilter adds the conditions of the query to filter.
func readFilter(query url.Values, filter *report.Filter) (err error) {
	for _, status := range query["status"] {
		filter.Statuses = append(filter.Statuses, report.Status(status))
	}
	for _, category := range query["category"] {
		id, err := strconv.ParseInt(category, 10, 32)
		if err != nil {
			return invalid("category", err)
		}
		filter.Categories = append(filter.Categories, int32(id))
	}
	filter.Areas = query["area"]
	if query.Has("bbox") {
		if filter.Box, err = report.ParseBox(query.Get("bbox")); err != nil {
			return invalid("bbox", err)
		}
	}
	filter.Words = report.Words(query.Get("q"))
	filter.Order = report.Order(query.Get("order"))
	return nil
}

// intParam returns the integer in the query parameter with the name.
func intParam(r *http.Request, name string) (int, error) {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil {
		return 0, invalid(name, err)
	}
	return n, nil
}

// invalid refuses a value that the document allows and that we read more
// strictly, such as a number with a sign.
func invalid(name string, err error) error { return fault.NewInvalid(name, err.Error()) }
