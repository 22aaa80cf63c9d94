package api

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

const (
	// exportPage is how many reports an export reads at once, and so how many
	// it keeps in memory, besides their text.
	exportPage = 1000
	// exportTimeout is how long the client may take to read a page of them.
	exportTimeout = time.Minute
	// maxPeriods bounds the answer of countOverTime.
	maxPeriods = 400
)

// exportColumns are the first line of an export.
var exportColumns = []string{
	"id", "created_at", "updated_at", "status", "category_id", "category", "title", "address", "latitude", "longitude",
	"score", "department", "assignee", "duplicate_of", "area", "visibility",
}

// exportReports handles GET /reports/export. The export does not contain
// reporters.
func (h workbenchHandlers) exportReports(w http.ResponseWriter, r *http.Request) error {
	filter, findsNothing, err := queueFilter(r)
	if err != nil {
		return err
	}
	filter.Order, filter.Unpinned = report.Oldest, true
	var queue report.Queue
	out := new(bytes.Buffer)
	lines := table{out, separators[r.URL.Query().Get("separator")]}
	return h.gates.sendParts(w, r, out, parts{
		read: func(ctx context.Context, after *report.Cursor) (next *report.Cursor, err error) {
			if !findsNothing {
				queue, err = h.workbench.Queue(ctx, filter, after, exportPage)
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

// parts are an answer that is read from the database part by part, and never as a whole
// in memory.
type parts struct {
	read  func(ctx context.Context, after *report.Cursor) (next *report.Cursor, err error) // next is nil after the last part
	begin func()                                                                           // writes what comes before the first part, headers included
	write func()                                                                           // writes the part that was read
}

// sendParts answers with p, which writes to out. Reading a part and writing it down take a
// turn, because each costs about as much as the other. The client's reading takes none: it
// holds up nobody.
func (g gates) sendParts(w http.ResponseWriter, r *http.Request, out *bytes.Buffer, p parts) error {
	gate := g.public
	if caller(r).Official {
		gate = g.exports
	}
	var next *report.Cursor
	prepare := func(after *report.Cursor) error {
		return g.doAt(r.Context(), r, gate, func(ctx context.Context) (err error) {
			if next, err = p.read(ctx, after); err != nil {
				return err
			}
			if after == nil {
				p.begin()
			}
			p.write()
			return nil
		})
	}
	if err := prepare(nil); err != nil {
		return err
	}
	conn := http.NewResponseController(w)
	for {
		_ = conn.SetWriteDeadline(time.Now().Add(exportTimeout)) // without a connection, as in some tests, it does nothing
		if _, err := out.WriteTo(w); err != nil || next == nil {
			return nil //nolint:nilerr // the client left, or has all
		}
		if prepare(next) != nil {
			panic(http.ErrAbortHandler) // the answer has begun: cut it, so that the client does not take it for complete
		}
	}
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

// separators of cells, by their names in the document. Spreadsheets expect that of
// their system's settings: a semicolon where a comma is in decimal numbers.
var separators = map[string]string{"comma": ",", ",": ",", "semicolon": ";", ";": ";", "tab": "\t"}

// A table writes lines of CSV (RFC 4180) with all cells in quotes.
type table struct {
	w         *bytes.Buffer
	separator string
}

// begin writes the first line. Spreadsheets take a file without a byte order mark for one
// in their system's old encoding.
func (t table) begin(columns []string) {
	_, _ = t.w.WriteString("\uFEFF")
	t.write(columns)
}

func (t table) write(cells []string) {
	for i, c := range cells {
		if i > 0 {
			_, _ = t.w.WriteString(t.separator)
		}
		_, _ = t.w.WriteString(`"` + strings.ReplaceAll(c, `"`, `""`) + `"`)
	}
	_, _ = t.w.WriteString("\r\n")
}

// formulas finds where a spreadsheet could begin to read a formula: at the beginning
// of a cell, and behind any separator, because a spreadsheet with another one than
// that of the file cuts there. White space and quotes may be in between.
var formulas = regexp.MustCompile(`(^|[,;|\t\r\n])([\s"']*[=+@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}\x{2212}-])`)

// cell escapes text that a spreadsheet would take for a formula: otherwise a
// resident could inject a formula that runs on an official's machine.
func cell(text string) string {
	if !strings.ContainsAny(text, formulaSigns) { // as nearly always; the expression takes fifty times as long
		return text
	}
	return formulas.ReplaceAllString(text, "$1'$2")
}

// formulaSigns are those one of which every match of formulas has.
const formulaSigns = "=+@-\uFF1D\uFF0B\uFF0D\uFF20\u2212"

// countOverTime handles GET /reports/numbers.
func (h workbenchHandlers) countOverTime(w http.ResponseWriter, r *http.Request) error {
	filter, findsNothing, err := queueFilter(r)
	if err != nil {
		return err
	}
	if filter.FiledTo.IsZero() {
		filter.FiledTo = time.Now()
	}
	if filter.FiledFrom.IsZero() {
		filter.FiledFrom = filter.FiledTo.AddDate(-1, 0, 0)
	}
	interval := report.Interval(r.URL.Query().Get("interval"))
	days := map[report.Interval]int{report.Day: 1, report.Week: 7, report.Month: 28}[interval]
	if filter.FiledTo.After(filter.FiledFrom.AddDate(0, 0, days*maxPeriods)) {
		return fault.NewInvalid("filed_from", "must be within 400 periods of filed_to: choose a later time or a longer interval")
	}
	var numbers []report.PeriodCounts
	list, err := h.areas.List(r.Context())
	if err != nil {
		return err
	}
	var departments, areas figures
	if !findsNothing {
		err = h.gates.do(r.Context(), r, func(ctx context.Context) (err error) {
			if numbers, err = h.workbench.CountOverTime(ctx, filter, interval); err != nil {
				return err
			}
			if departments, err = h.figures(ctx, filter, report.ByDepartment); err == nil && len(list.Areas) > 0 {
				areas, err = h.figures(ctx, filter, report.ByArea)
			}
			return err
		})
		if err != nil {
			return err
		}
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
	return service.Encode(w, http.StatusOK, out)
}

// figures are those of parts of the city that did something or have something open, by
// their ids.
type figures struct {
	total report.PartCounts
	parts []report.PartCounts
	open  map[int32]int64
}

func (h workbenchHandlers) figures(ctx context.Context, filter report.Filter, by report.PartOf) (f figures, err error) {
	if f.total, f.parts, err = h.workbench.CountByPart(ctx, filter, by); err != nil {
		return f, err
	}
	if f.open, err = h.workbench.CountOpen(ctx, filter, by); err != nil {
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
