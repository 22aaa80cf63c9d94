package api

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/cityconnect/cityconnect/platform/openapi"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// exportColumns are the first line of an export.
var exportColumns = []string{
	"id", "created_at", "updated_at", "status", "category_id", "category", "title", "address", "latitude", "longitude",
	"score", "department", "assignee", "duplicate_of", "area", "visibility", "number", "asset",
	"external_number", "external_state",
}

// Exports are the queue as a file.
type Exports struct {
	Workbench interface {
		Queue(ctx context.Context, f report.Filter, after *report.Cursor, limit int) (report.Queue, error)
	}
	Gates Gates
}

// Operations are those on exports.
func (h Exports) Operations() openapi.Operations {
	return openapi.Operations{"exportReports": {Handler: h.exportReports, Timeout: service.Unlimited}} // as long as the client reads
}

// exportReports handles GET /reports/export. The export does not contain
// reporters.
func (h Exports) exportReports(w http.ResponseWriter, r *http.Request) error {
	filter := queueFilter(r)
	filter.Order, filter.Unpinned = report.Oldest, true
	var queue report.Queue
	out := new(bytes.Buffer)
	lines := table{out, separators[r.URL.Query().Get("separator")]}
	return sendParts(w, r, h.Gates.exports, out, parts{
		read: func(ctx context.Context, after *report.Cursor) (next *report.Cursor, err error) {
			queue, err = h.Workbench.Queue(ctx, filter, after, partSize)
			return queue.Next, err
		},
		begin: func() {
			w.Header().Set("Content-Type", "text/csv; charset=utf-8")
			w.Header().Set("Content-Disposition", `attachment; filename="reports.csv"`)
			w.Header().Set("Cache-Control", "no-store")
			lines.begin(exportColumns)
		},
		write: func() {
			for _, t := range queue.Tasks {
				lines.write(exportLine(t))
			}
		},
	})
}

// cells are those of a report in a table, by their columns.
var cells = map[string]func(*report.Report) string{
	"id":          func(r *report.Report) string { return r.ID.String() },
	"created_at":  func(r *report.Report) string { return r.CreatedAt.Format(time.RFC3339) },
	"updated_at":  func(r *report.Report) string { return r.UpdatedAt.Format(time.RFC3339) },
	"status":      func(r *report.Report) string { return string(r.Status) },
	"category_id": func(r *report.Report) string { return strconv.Itoa(int(r.Category.ID)) },
	"category":    func(r *report.Report) string { return cell(r.Category.Name) },
	"title":       func(r *report.Report) string { return cell(r.Title) },
	"description": func(r *report.Report) string { return cell(r.Description) },
	"address":     func(r *report.Report) string { return cell(r.Address) },
	"latitude": func(r *report.Report) string {
		return degrees(r.Position, func(p report.Position) float64 { return p.Latitude })
	},
	"longitude": func(r *report.Report) string {
		return degrees(r.Position, func(p report.Position) float64 { return p.Longitude })
	},
	"score":      func(r *report.Report) string { return strconv.FormatInt(r.Score, 10) },
	"area":       func(r *report.Report) string { return r.Area.Code },
	"asset":      func(r *report.Report) string { return r.Asset.Key },
	"visibility": func(r *report.Report) string { return string(r.Visibility) },
	"number":     func(r *report.Report) string { return report.Reference(r.ID) },
}

func degrees(p *report.Position, of func(report.Position) float64) string {
	if p == nil {
		return ""
	}
	return decimal(of(*p))
}

// decimal returns n without an exponent, which few readers of texts know.
func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func exportLine(t report.Task) []string {
	return service.Each(exportColumns, func(column string) string {
		switch column {
		case "department":
			return cell(service.OrZero(t.Department).Name)
		case "assignee":
			return cell(service.OrZero(t.Assignee).Name)
		case "duplicate_of":
			if t.Original != nil {
				return t.Original.String()
			}
			return ""
		case "external_number":
			return cell(service.OrZero(t.External).Number)
		case "external_state":
			return cell(service.OrZero(t.External).State)
		}
		return cells[column](&t.Report)
	})
}
