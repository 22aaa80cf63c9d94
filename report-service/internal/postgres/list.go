package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// List returns a page of the reports that filter lets pass, in its order, as
// reader may see them: those after the cursor, or the first ones without one.
func (s *Store) List(ctx context.Context, filter report.Filter, after *report.Cursor, limit int, reader string) (report.Page, error) {
	q := query{args: []any{reader}}
	q.filter(filter)
	beyond, direction := "<", "desc"
	if filter.OldestFirst {
		beyond, direction = ">", "asc"
	}
	if after != nil {
		q.and(`(r.created_at, r.id) `+beyond+` (%s, %s)`, after.At, after.ID)
	}
	// One more than asked for tells whether there is another page.
	sql := viewSQL + q.where() + fmt.Sprintf(` order by r.created_at %[1]s, r.id %[1]s limit %[2]s`, direction, q.arg(limit+1))

	rows, err := s.pool.Query(ctx, sql, q.args...)
	if err != nil {
		return report.Page{}, fmt.Errorf("select reports: %w", err)
	}
	views, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (report.View, error) { return scanView(row) })
	if err != nil {
		return report.Page{}, fmt.Errorf("select reports: %w", err)
	}
	if len(views) <= limit {
		return report.Page{Reports: views}, nil
	}
	last := views[limit-1]
	return report.Page{Reports: views[:limit], Next: &report.Cursor{At: last.CreatedAt, ID: last.ID}}, nil
}

// A query collects conditions and their arguments.
type query struct {
	conditions []string
	args       []any
}

// and adds a condition in which each %s stands for an argument.
func (q *query) and(condition string, args ...any) {
	places := make([]any, len(args))
	for i, arg := range args {
		places[i] = q.arg(arg)
	}
	q.conditions = append(q.conditions, fmt.Sprintf(condition, places...))
}

// arg adds an argument and returns its placeholder.
func (q *query) arg(v any) string {
	q.args = append(q.args, v)
	return fmt.Sprintf("$%d", len(q.args))
}

func (q *query) where() string {
	if len(q.conditions) == 0 {
		return ""
	}
	return " where " + strings.Join(q.conditions, " and ")
}

func (q *query) filter(f report.Filter) {
	if len(f.Statuses) > 0 {
		q.and(`r.status = any(%s)`, f.Statuses)
	}
	if len(f.Categories) > 0 {
		q.and(`r.category_id = any(%s)`, f.Categories)
	}
	if f.Reporter != "" {
		q.and(`p.reporter_id = %s`, f.Reporter)
	}
	if len(f.Words) > 0 {
		q.and(`r.search @@ to_tsquery('simple', %s)`, prefixes(f.Words))
	}
	if f.Box != nil {
		q.box(f.Box)
	}
}

func (q *query) box(b *report.Box) {
	q.and(`r.latitude between %s and %s`, b.South, b.North)
	if b.West <= b.East {
		q.and(`r.longitude between %s and %s`, b.West, b.East)
		return
	}
	q.and(`(r.longitude >= %s or r.longitude <= %s)`, b.West, b.East)
}

// prefixes asks for each of words as the beginning of one. They are letters,
// digits and marks only, so that quoting them is enough.
func prefixes(words []string) string {
	terms := make([]string, len(words))
	for i, word := range words {
		terms[i] = "'" + word + "':*"
	}
	return strings.Join(terms, " & ")
}
