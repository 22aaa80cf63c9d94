package postgres

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A query collects conditions and their arguments.
type query struct {
	conditions []string
	args       []any
}

// and adds a condition in which each %s is an argument.
func (q *query) and(condition string, args ...any) {
	places := make([]any, len(args))
	for i, arg := range args {
		places[i] = q.arg(arg)
	}
	q.conditions = append(q.conditions, fmt.Sprintf(condition, places...))
}

// when adds the condition if it is asked for.
func (q *query) when(asked bool, condition string, args ...any) {
	if asked {
		q.and(condition, args...)
	}
}

// arg adds an argument and returns its placeholder.
func (q *query) arg(v any) string {
	q.args = append(q.args, v)
	return fmt.Sprintf("$%d", len(q.args))
}

// fresh returns the arguments for a statement that is planned for their values. A plan
// for any values takes words and boxes for choosy: it reads 100,000 positions one by one,
// and compares the words of each, where the index of words has the few that match.
func (q *query) fresh() []any { return append([]any{pgx.QueryExecModeCacheDescribe}, q.args...) }

// values returns the arguments for a list of f.
func (q *query) values(f report.Filter) []any {
	if len(f.Words) > 0 || f.Box != nil {
		return q.fresh()
	}
	return q.args
}

// within returns the condition that report r, of a reporter in the row with that name, is
// within reach.
func (q *query) within(reach report.Reach, reporters string) string {
	if reach.Official && reach.Scope.City() {
		return `true`
	}
	ways := []string{`false`}
	if reach.Shown {
		ways = append(ways, `r.hidden_reason is null`)
	}
	if reach.Reporter != "" {
		ways = append(ways, reporters+`.reporter_id = `+q.arg(reach.Reporter))
	}
	if connection, private := reach.Scope.Connection(); reach.Official && connection {
		shown := `r.hidden_reason is null`
		if private {
			shown = unhiddenSQL
		}
		if _, id := reach.Scope.Job(); id != uuid.Nil {
			shown += ` and r.id = ` + q.arg(id)
		}
		ways = append(ways, shown+` and `+fmt.Sprintf(inChargeSQL, `array(select d.id from departments d where d.code = any(`+q.arg(reach.Scope.Departments())+`))`))
	} else if reach.Official {
		ways = append(ways, fmt.Sprintf(withinSQL, q.arg(reach.Scope.Departments())))
	}
	return `(` + strings.Join(ways, ` or `) + `)`
}

// where returns the conditions as a clause, which is empty without any.
func (q *query) where() string {
	if len(q.conditions) == 0 {
		return ""
	}
	return " where " + strings.Join(q.conditions, " and ")
}

// page returns the end of a statement that selects reports r: the conditions,
// with one for those after the cursor, the order and the limit. It selects one
// report more than limit, which shows whether there is another page. order is
// only the order.
func (q *query) page(f report.Filter, after *report.Cursor, limit int) (end, order string) {
	column, beyond, direction := "r.created_at", "<", "desc"
	switch f.Order {
	case report.Oldest:
		beyond, direction = ">", "asc"
	case report.Changed:
		column = "r.updated_at"
	case report.Score:
		column = "r.score"
	case report.Due: // see report.Filter.CursorAtTask
		column, beyond, direction = "coalesce(r.due_at, '9999-01-01 00:00:00+00')", ">", "asc"
	case report.Newest:
	}
	if after != nil {
		var key any = time.UnixMicro(after.Key).UTC()
		if f.Order == report.Score {
			key = after.Key
		}
		q.and(`(`+column+`, r.id) `+beyond+` (%s, %s)`, key, after.ID)
	}
	order = fmt.Sprintf(` order by %[1]s %[2]s, r.id %[2]s`, column, direction)
	return q.where() + order + ` limit ` + q.arg(limit+1), order
}

// filter adds the conditions of f.
func (q *query) filter(f report.Filter) {
	q.when(len(f.Statuses) > 0, `r.status = any(%s)`, f.Statuses)
	q.when(len(f.Categories) > 0, `r.category_id = any(%s)`, f.Categories)
	q.when(len(f.IDs) > 0, `r.id = any(%s)`, f.IDs)
	q.when(len(f.Areas) > 0, `r.area_id = any(array(select a.id from areas a where a.code = any(%s)))`, f.Areas)
	layer, code, _ := strings.Cut(f.Asset, "/")
	q.when(f.Asset != "", `r.asset_id = (select a.id from assets a where a.layer = %s and a.code = %s)`, layer, code)
	switch {
	case f.Reporter != "": // reporters also see their own hidden reports
		q.and(`p.reporter_id = %s`, f.Reporter)
	case f.Withdrawn:
		q.and(`r.withdrawn_at is not null`)
	case f.Hidden:
		q.and(`r.hidden_reason is not null and not ` + unhiddenSQL + ` and r.withdrawn_at is null`)
	case f.Official:
		q.and(unhiddenSQL)
	default:
		q.and(`r.hidden_reason is null`)
	}
	q.when(!f.Scope.City(), withinSQL, f.Scope.Departments())
	if id, ok := report.IDOf(f.Words); ok {
		q.and(`r.id = %s`, id)
	} else if len(f.Words) > 0 {
		ways := []string{`r.search @@ to_tsquery('simple', search_form(` + q.arg(prefixes(f.Words)) + `))`}
		if end, ok := report.ReferenceOf(f.Words); ok { // or a word of that form
			ways = append(ways, `right(r.id::text, 10) = `+q.arg(end))
		}
		if number := strings.Join(f.Words, ""); f.Official && strings.ContainsAny(number, "0123456789") { // perhaps that of another system
			ways = append(ways, `r.id = any(array(select i.report_id from imported_reports i where i.form = `+q.arg(number)+`
				union all select e.report_id from external_refs e where e.form = `+q.arg(number)+`))`)
		}
		q.and(`(` + strings.Join(ways, ` or `) + `)`)
	}
	q.when(len(f.Departments) > 0, inChargeSQL, f.Departments)
	switch {
	case f.Assignee == nil:
	case *f.Assignee == "":
		q.and(`r.assignee_id is null`)
	default:
		q.and(`r.assignee_id = %s`, *f.Assignee)
	}
	q.when(!f.FiledFrom.IsZero(), `r.created_at >= %s`, f.FiledFrom)
	q.when(!f.FiledTo.IsZero(), `r.created_at < %s`, f.FiledTo)
	q.when(f.Overdue > 0, `r.overdue_level >= %s and (r.status in ('pending', 'in_progress') or r.disputed_at is not null)`, f.Overdue)
	q.when(f.Disputed, `r.disputed_at is not null`)
	q.when(f.NewComments, `r.id = any(array(select report_id from comments where `+unseenSQL+`))`)
	q.when(f.Waiting, `r.waiting`)
	q.when(f.Unanswered, `r.not_answered`)
	q.when(len(f.Sources) > 0, `r.id in (select i.report_id from counter_reports i where i.source = any(%s))`, f.Sources)
	if f.Box != nil {
		q.and(`r.latitude between %s and %s`, f.Box.South, f.Box.North)
		longitude := `r.longitude between %s and %s`
		if f.Box.West > f.Box.East { // it spans the antimeridian
			longitude = `(r.longitude >= %s or r.longitude <= %s)`
		}
		q.and(longitude, f.Box.West, f.Box.East)
	}
}

// prefixes matches each of words as a prefix. They contain letters, digits and
// marks only, so that quoting them is enough.
func prefixes(words []string) string {
	terms := make([]string, len(words))
	for i, word := range words {
		terms[i] = "'" + word + "':*"
	}
	return strings.Join(terms, " & ")
}
