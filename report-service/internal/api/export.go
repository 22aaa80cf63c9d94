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
	"score", "department", "assignee", "duplicate_of", "area", "visibility",
}

// Exports are the queue as a file.
type Exports struct {
	Workbench queueReader
	Gates     Gates
}

// Operations are those on exports.
func (h Exports) Operations() openapi.Operations {
	return openapi.Operations{"exportReports": {Handler: h.exportReports, Timeout: service.Unlimited}} // as long as the client reads
}

// exportReports handles GET /reports/export. The export does not contain
// reporters.
func (h Exports) exportReports(w http.ResponseWriter, r *http.Request) error {
	filter, findsNothing := queueFilter(r)
	filter.Order, filter.Unpinned = report.Oldest, true
	var queue report.Queue
	out := new(bytes.Buffer)
	lines := table{out, separators[r.URL.Query().Get("separator")]}
	return h.Gates.sendParts(w, r, out, parts{
		read: func(ctx context.Context, after *report.Cursor) (next *report.Cursor, err error) {
			if !findsNothing {
				queue, err = h.Workbench.Queue(ctx, filter, after, partSize)
			}
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

func exportLine(t report.Task) []string {
	line := []string{
		t.ID.String(), t.CreatedAt.Format(time.RFC3339), t.UpdatedAt.Format(time.RFC3339), string(t.Status),
		strconv.Itoa(int(t.Category.ID)), cell(t.Category.Name), cell(t.Title), cell(t.Address), "", "",
		strconv.FormatInt(t.Score, 10), "", "", "", t.Area.Code, string(t.Visibility),
	}
	if t.Position != nil {
		line[8] = strconv.FormatFloat(t.Position.Latitude, 'f', -1, 64)
		line[9] = strconv.FormatFloat(t.Position.Longitude, 'f', -1, 64)
	}
	if t.Department != nil {
		line[11] = cell(t.Department.Name)
	}
	if t.Assignee != nil {
		line[12] = cell(t.Assignee.Name)
	}
	if t.Original != nil {
		line[13] = t.Original.String()
	}
	return line
}
