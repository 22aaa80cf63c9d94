package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// viewSQL selects reports as the reader $1 may see them; the reader is empty
// for someone who is not signed in. The id of a reporter, and the name of an
// anonymous one, do not leave the database. An erased reporter has no row.
const (
	viewSQL        = viewColumnsSQL + ` from reports r` + viewJoinsSQL
	viewColumnsSQL = `
	select r.id, r.title, r.description, r.category_id, c.name, r.latitude, r.longitude, r.address,
		r.privacy_level, r.visibility, r.status, r.score, r.version, r.created_at, r.updated_at,
		case when r.privacy_level = 'public' then coalesce(p.reporter_name, '') else '' end,
		coalesce(p.reporter_id = $1, false), coalesce(v.value, 0),
		array(select ph.id from photos ph where ph.report_id = r.id and ph.state = 'ready' order by ph.created_at, ph.id),
		` + hiddenReasonSQL + `, r.withdrawn_at, case when r.waiting and p.reporter_id = $1 then ` + openQuestionSQL + ` end,
		case when p.reporter_id = $1 and r.status = 'resolved' and ` + unhiddenSQL + ` then (` + verdictSQL + `) end, ` + areaSQL
	viewJoinsSQL = `
	join categories c on c.id = r.category_id
	left join reporters p on p.report_id = r.id
	left join votes v on v.report_id = r.id and v.voter_id = $1`
)

// areaSQL is the code of the area of a report r.
const areaSQL = `coalesce((select a.code from areas a where a.id = r.area_id), '')`

// Reports are what residents filed, with their votes and their history.
type Reports struct{ db *DB }

// NewReports returns the reports in db.
func NewReports(db *DB) *Reports { return &Reports{db} }

// Get returns a report as reader may see it. Only officials and its reporter
// see a hidden one.
func (s *Reports) Get(ctx context.Context, id uuid.UUID, reader report.User) (report.View, error) {
	v, err := scanView(s.db.pool.QueryRow(ctx, viewSQL+`
		where r.id = $2 and (r.hidden_reason is null or $3 or p.reporter_id = $1)`, reader.ID, id, reader.Official))
	if errors.Is(err, pgx.ErrNoRows) {
		return v, report.ErrNotFound
	}
	if err != nil {
		return v, fmt.Errorf("select report: %w", err)
	}
	return v, nil
}

// Outlook returns what the reporter of a report learns about the work on it. For
// everybody else there is none.
func (s *Reports) Outlook(ctx context.Context, id uuid.UUID, reporter string) (report.Outlook, error) {
	var o report.Outlook
	err := s.db.pool.QueryRow(ctx, `
		select coalesce(d.name, ''), case when r.status in ('pending', 'in_progress') or r.disputed_at is not null then r.due_at end
		from reports r
		join reporters p on p.report_id = r.id and p.reporter_id = $2
		join categories c on c.id = r.category_id`+routesSQL+`
		left join departments d on d.id = `+chargeSQL+`
		where r.id = $1`, id, reporter).Scan(&o.Department, &o.DueAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return o, report.ErrNotFound
	}
	if err != nil {
		return o, fmt.Errorf("select outlook: %w", err)
	}
	return o, nil
}

func scanView(row pgx.Row) (report.View, error) {
	var v report.View
	var lat, lon *float64
	err := row.Scan(&v.ID, &v.Title, &v.Description, &v.Category.ID, &v.Category.Name, &lat, &lon, &v.Address,
		&v.Privacy, &v.Visibility, &v.Status, &v.Score, &v.Version, &v.CreatedAt, &v.UpdatedAt,
		&v.ReporterName, &v.Mine, &v.MyVote, &v.Photos, &v.HiddenReason, &v.WithdrawnAt, &v.Question, &v.Verdict, &v.Area.Code)
	if lat != nil && lon != nil {
		v.Position = &report.Position{Latitude: *lat, Longitude: *lon}
	}
	v.CreatedAt, v.UpdatedAt = v.CreatedAt.UTC(), v.UpdatedAt.UTC()
	if v.WithdrawnAt != nil {
		v.WithdrawnAt = new(v.WithdrawnAt.UTC())
	}
	if v.Verdict != nil {
		v.Verdict.Until = v.Verdict.Until.UTC()
	}
	return v, err
}

// History returns the changes of a report that reader may see, oldest first.
func (s *Reports) History(ctx context.Context, id uuid.UUID, reader report.User) ([]report.Change, error) {
	changes, err := collect(ctx, s.db.pool, "select history", func(row pgx.CollectableRow) (c report.Change, err error) {
		err = row.Scan(&c.From, &c.To, &c.Note, &c.Version, &c.At, &c.Corrected, &c.Kind)
		c.At = c.At.UTC()
		return c, err
	}, `
		select coalesce(from_status, ''), to_status, note, report_version, changed_at, correction, coalesce(kind, '')
		from status_history h where report_id = $1 and exists (
			select from reports r left join reporters p on p.report_id = r.id
			where r.id = $1 and (r.hidden_reason is null or $3 or p.reporter_id = $2))
		order by id`, id, reader.ID, reader.Official)
	if err != nil {
		return nil, err
	}
	if len(changes) == 0 { // every report has an entry for its filing
		return nil, report.ErrNotFound
	}
	return changes, nil
}

// List returns a page of the reports that match filter, in its order, as reader
// may see them: those after the cursor, or the first ones without a cursor.
func (s *Reports) List(ctx context.Context, filter report.Filter, after *report.Cursor, limit int, reader string) (report.Page, error) {
	q := query{args: []any{reader}}
	q.filter(filter)
	page, order := q.page(filter, after, limit)
	sql := viewSQL + page
	if filter.Reporter == "" && (filter.Order == report.Changed || filter.Order == report.Score) {
		// No index has these orders. Sorted before anything is joined, 100,000 reports take
		// half as long.
		sql = viewColumnsSQL + ` from (select r.* from reports r` + page + `) r` + viewJoinsSQL + order
	}
	views, err := collect(ctx, s.db.pool, "select reports", func(row pgx.CollectableRow) (report.View, error) { return scanView(row) }, sql, q.values(filter)...)
	if err != nil {
		return report.Page{}, err
	}
	if len(views) <= limit {
		return report.Page{Reports: views}, nil
	}
	return report.Page{Reports: views[:limit], Next: filter.CursorAt(views[limit-1].Report)}, nil
}

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
	if len(f.Statuses) > 0 {
		q.and(`r.status = any(%s)`, f.Statuses)
	}
	if len(f.Categories) > 0 {
		q.and(`r.category_id = any(%s)`, f.Categories)
	}
	if len(f.Areas) > 0 {
		q.and(`r.area_id = any(array(select a.id from areas a where a.code = any(%s)))`, f.Areas)
	}
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
	if end, ok := report.ReferenceOf(f.Words); ok { // or a word of that form
		q.and(`(r.search @@ to_tsquery('simple', search_form(%s)) or right(r.id::text, 10) = %s)`, prefixes(f.Words), end)
	} else if len(f.Words) > 0 {
		q.and(`r.search @@ to_tsquery('simple', search_form(%s))`, prefixes(f.Words))
	}
	if len(f.Departments) > 0 {
		q.and(inChargeSQL, f.Departments)
	}
	switch {
	case f.Assignee == nil:
	case *f.Assignee == "":
		q.and(`r.assignee_id is null`)
	default:
		q.and(`r.assignee_id = %s`, *f.Assignee)
	}
	if !f.FiledFrom.IsZero() {
		q.and(`r.created_at >= %s`, f.FiledFrom)
	}
	if !f.FiledTo.IsZero() {
		q.and(`r.created_at < %s`, f.FiledTo)
	}
	if f.Overdue > 0 {
		q.and(`r.overdue_level >= %s and (r.status in ('pending', 'in_progress') or r.disputed_at is not null)`, f.Overdue)
	}
	if f.Disputed {
		q.and(`r.disputed_at is not null`)
	}
	if f.NewComments {
		q.and(`r.id = any(array(select report_id from comments where ` + unseenSQL + `))`)
	}
	if f.Waiting {
		q.and(`r.waiting`)
	}
	if f.Unanswered {
		q.and(`r.not_answered`)
	}
	if len(f.Sources) > 0 {
		q.and(`r.id in (select i.report_id from counter_reports i where i.source = any(%s))`, f.Sources)
	}
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
