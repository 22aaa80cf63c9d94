package api

import (
	"context"
	"net/http"

	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Lists are pages of reports.
type Lists struct {
	Reports interface {
		List(ctx context.Context, f report.Filter, after *report.Cursor, limit int, reader string) (report.Page, error)
		Figures(ctx context.Context) (report.Figures, error)
	}
	Gates Gates
}

// Operations are those on lists.
func (h Lists) Operations() openapi.Operations {
	return openapi.Operations{
		"listReports":   {Handler: h.listReports, Timeout: service.DefaultTimeout},
		"listMyReports": {Handler: h.listMyReports, Timeout: service.DefaultTimeout},
	}
}

// listReports handles GET /reports.
func (h Lists) listReports(w http.ResponseWriter, r *http.Request) error { return h.list(w, r, "") }

// listMyReports handles GET /reports/mine.
func (h Lists) listMyReports(w http.ResponseWriter, r *http.Request) error {
	return h.list(w, r, user(r).ID)
}

// list answers with a page of the reports that match the query, of one reporter or of all.
func (h Lists) list(w http.ResponseWriter, r *http.Request, reporter string) error {
	filter := readFilter(r)
	filter.Reporter = reporter
	after, err := readCursor(r, func(c *report.Cursor) error { return c.Of(filter) })
	if err != nil {
		return err
	}
	var page report.Page
	err = h.Gates.doFor(filter, r, func(ctx context.Context) (err error) {
		page, err = h.Reports.List(ctx, filter, after, intParam(r, "limit"), user(r).ID)
		return err
	})
	if err != nil {
		return err
	}
	if r.URL.Query().Get("figures") == "true" {
		figures, err := h.Reports.Figures(r.Context())
		if err != nil {
			return err
		}
		page.Figures = &figures
	}
	if r.URL.Query().Get("brief") == "true" {
		for i := range page.Reports {
			page.Reports[i].Description = ""
		}
	}
	if page.Next != nil {
		service.NextLink(w, r, page.Next.String())
	}
	return service.Encode(w, http.StatusOK, pageOf(page))
}
