package postgres

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/cityconnect/cityconnect/report-service/internal/calendar"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A column is one thing that is known of a report: how a filing stores it, and how it is
// read. What stores or shows reports takes its columns from here by name. Statements call
// the report r and its category c.
type column struct {
	name  string                        // in the table, and in a person's own data
	kind  string                        // its type in SQL; empty unless a filing stores it
	value func(filings []newFiling) any // an array of what filings store
	read  string                        // the expression by which it is read; r and the name without one
	at    func(*report.Report) any      // where it is read to; nil for what no report shows
}

// columns are all that is known of every report. TestReportIsWhole compares them with the
// table, with report.Report and with what is shown.
var columns = []column{
	{"id", "uuid", stored(func(f newFiling) pgtype.UUID { return key(f.ID) }), "", func(r *report.Report) any { return &r.ID }},
	{"title", "text", stored(func(f newFiling) string { return f.Title }), "", func(r *report.Report) any { return &r.Title }},
	{"description", "text", stored(func(f newFiling) string { return f.Description }), "", func(r *report.Report) any { return &r.Description }},
	{"category_id", "int", stored(func(f newFiling) int32 { return f.Category.ID }), "", func(r *report.Report) any { return &r.Category.ID }},
	{"category", "", nil, `c.name`, func(r *report.Report) any { return &r.Category.Name }},
	{"latitude", "float8", stored(func(f newFiling) *float64 { return latitude(f.Position) }), "", func(r *report.Report) any { return maybe[report.Position, float64]{&r.Position, latitude} }},
	{"longitude", "float8", stored(func(f newFiling) *float64 { return longitude(f.Position) }), "", func(r *report.Report) any { return maybe[report.Position, float64]{&r.Position, longitude} }},
	{"area_id", "int", stored(func(f newFiling) int32 { return f.Area.ID }), "", nil},
	{"area", "", nil, areaSQL, func(r *report.Report) any { return &r.Area.Code }},
	{"asset_id", "int", stored(func(f newFiling) int32 { return f.Asset.ID }), "", func(r *report.Report) any { return &r.Asset.ID }},
	{"asset", "", nil, assetKeySQL, func(r *report.Report) any { return &r.Asset.Key }},
	{"asset_name", "", nil, assetSQL("a.name"), func(r *report.Report) any { return &r.Asset.Name }},
	{"address", "text", stored(func(f newFiling) string { return f.Address }), "", func(r *report.Report) any { return &r.Address }},
	{"privacy_level", "text", stored(func(f newFiling) string { return string(f.Privacy) }), "", func(r *report.Report) any { return &r.Privacy }},
	{"visibility", "text", stored(func(f newFiling) string { return string(f.Visibility) }), "", func(r *report.Report) any { return &r.Visibility }},
	{"status", "text", stored(func(f newFiling) string { return string(f.Status) }), "", func(r *report.Report) any { return &r.Status }},
	{"score", "bigint", stored(func(f newFiling) int64 { return f.Score }), "", func(r *report.Report) any { return &r.Score }},
	{"version", "bigint", stored(func(f newFiling) int64 { return f.Version }), "", func(r *report.Report) any { return &r.Version }},
	{"created_at", "timestamptz", stored(func(f newFiling) time.Time { return f.CreatedAt }), "", func(r *report.Report) any { return utc{&r.CreatedAt} }},
	{"updated_at", "timestamptz", stored(func(f newFiling) time.Time { return f.UpdatedAt }), "", func(r *report.Report) any { return utc{&r.UpdatedAt} }},
	{"hidden_reason", "text", stored(hiddenReason), hiddenReasonSQL, func(r *report.Report) any { return &r.HiddenReason }},
	{"withdrawn_at", "", nil, "", func(r *report.Report) any { return utcOrNil{&r.WithdrawnAt} }},

	{"target", "interval", stored(func(f newFiling) pgtype.Interval {
		return pgtype.Interval{Microseconds: f.deadline.Target.Microseconds(), Valid: true}
	}), "", nil},
	{"clock_since", "timestamptz", stored(func(f newFiling) *time.Time { return f.deadline.Since }), "", nil},
	{"due_at", "timestamptz", stored(func(f newFiling) *time.Time { return f.deadline.DueAt }), "", nil},
	{"overdue_next_at", "timestamptz", stored(func(f newFiling) *time.Time { return f.deadline.NextAt }), "", nil},
	{"status_message_id", "uuid", stored(func(f newFiling) pgtype.UUID { return f.status.id }), "", nil},
	{"status_version", "bigint", stored(func(f newFiling) pgtype.Int8 { return f.status.version }), "", nil},
}

func stored[V any](value func(newFiling) V) func([]newFiling) any {
	return func(filings []newFiling) any { return array(filings, value) }
}

// hiddenReason hides a report that only the city sees in the database, see
// report.PrivateReason.
func hiddenReason(f newFiling) pgtype.Text {
	return pgtype.Text{String: report.PrivateReason, Valid: f.Private()}
}

// fileSQL inserts the arrays that fileValues has.
var fileSQL = func() string {
	var names, arrays []string
	for _, c := range columns {
		if c.value != nil {
			names = append(names, c.name)
			arrays = append(arrays, "$"+strconv.Itoa(len(names))+"::"+c.kind+"[]")
		}
	}
	return `insert into reports (` + strings.Join(names, ", ") + `) select * from unnest(` + strings.Join(arrays, ", ") + `)`
}()

func fileValues(filings []newFiling) []any {
	values := make([]any, 0, len(columns))
	for _, c := range columns {
		if c.value != nil {
			values = append(values, c.value(filings))
		}
	}
	return values
}

// ownSQL are the names and values of a report in its reporter's own data: what is stored, and
// the names of what is stored by number.
var ownSQL = func() string {
	var pairs []string
	for _, c := range columns {
		switch {
		case c.at == nil:
		case c.value == nil && c.read != "":
			pairs = append(pairs, `'`+c.name+`', `+c.read)
		default:
			pairs = append(pairs, `'`+c.name+`', r.`+c.name)
		}
	}
	return strings.Join(pairs, ", ")
}()

// A selection is what a statement reads of reports into a T.
type selection[T any] []selected[T]

type selected[T any] struct {
	sql string
	at  func(*T) any
}

// of selects the columns of a report with these names, for the report in a T.
func of[T any](part func(*T) *report.Report, names ...string) selection[T] {
	s := make(selection[T], len(names))
	for i, name := range names {
		c := columns[slices.IndexFunc(columns, func(c column) bool { return c.name == name })]
		s[i] = selected[T]{c.expression(), func(t *T) any { return c.at(part(t)) }}
	}
	return s
}

func (c column) expression() string {
	if c.read != "" {
		return c.read
	}
	return "r." + c.name
}

// shown are the names of all columns that a report shows, but for some.
func shown(without ...string) (names []string) {
	for _, c := range columns {
		if c.at != nil && !slices.Contains(without, c.name) {
			names = append(names, c.name)
		}
	}
	return names
}

// deadlineOf selects the deadline of a report, for that in a T.
func deadlineOf[T any](part func(*T) *calendar.Deadline) selection[T] {
	return selection[T]{
		{`r.clock_since`, func(t *T) any { return &part(t).Since }}, {`r.clock_used`, func(t *T) any { return &part(t).Used }},
		{`r.target`, func(t *T) any { return &part(t).Target }}, {`r.overdue_level`, func(t *T) any { return &part(t).Level }},
		{`r.due_at`, func(t *T) any { return &part(t).DueAt }}, {`r.overdue_next_at`, func(t *T) any { return &part(t).NextAt }},
		{`r.waiting`, func(t *T) any { return &part(t).Waiting }},
	}
}

// sql returns the expressions of s.
func (s selection[T]) sql() string {
	expressions := make([]string, len(s))
	for i, e := range s {
		expressions[i] = e.sql
	}
	return strings.Join(expressions, ", ")
}

// row reads a row of s.
func (s selection[T]) row(row pgx.CollectableRow) (t T, err error) { return t, s.into(row, &t) }

func (s selection[T]) into(row pgx.Row, t *T) error {
	places := make([]any, len(s))
	for i, e := range s {
		places[i] = e.at(t)
	}
	return row.Scan(places...)
}

// Expressions about a report r beside its row, and conditions on it.
const (
	// hiddenReasonSQL is why officials have hidden it, and unhiddenSQL whether they have not:
	// the queue and what goes on by itself have those that only the city sees. Everything
	// that others are shown asks for hidden_reason is null.
	hiddenReasonSQL = `case when r.visibility = 'officials' and r.hidden_reason = 'private' then '' else coalesce(r.hidden_reason, '') end`
	unhiddenSQL     = `(r.hidden_reason is null or r.visibility = 'officials' and r.hidden_reason = 'private')`

	// areaSQL is the code of its area.
	areaSQL = `coalesce((select a.code from areas a where a.id = r.area_id), '')`

	// photosSQL are the ids of its photos that are ready.
	photosSQL = `array(select ph.id from photos ph where ph.report_id = r.id and ph.state = 'ready' order by ph.created_at, ph.id)`

	// openQuestionSQL is its open question as JSON, or null. r.waiting spares the others the
	// search for one.
	openQuestionSQL = `(select json_build_object('id', q.id, 'asked_at', q.asked_at, 'ends_on', q.ends_on)
		from questions q where q.report_id = r.id and q.state = 'open')`

	// verdictSQL is the time for a verdict on it that is open, with what the reporter has said.
	verdictSQL = `(select jsonb_build_object('Until', v.until, 'Fixed', v.fixed, 'Text', v.text) from verdicts v
		where v.report_id = r.id and v.ended_at is null and v.until > now() order by v.version desc limit 1)`

	// unseenSQL is whether no official has seen a comment.
	unseenSQL = `not seen and hidden_reason is null`

	// chargeSQL is the department in charge, with the joins in routesSQL: the one that it is
	// assigned to, or else that of its category in its area, of its category, or of its area.
	routesSQL = `
	left join department_routes here on here.area_id = r.area_id and here.category_id = r.category_id
	left join department_routes rest on rest.area_id = r.area_id and rest.category_id = 0`
	chargeSQL = `coalesce(r.department_id, here.department_id, c.department_id, rest.department_id)`

	// departmentSQL is the code of the department in charge, empty for none.
	departmentSQL = `coalesce((select d.code from categories c` + routesSQL + `
		join departments d on d.id = ` + chargeSQL + ` where c.id = r.category_id), '')`

	// inChargeSQL is whether one of some departments is in charge: by sets that are read
	// once, instead of joins for every report.
	inChargeSQL = `(r.department_id = any(%[1]s) or r.department_id is null and (
		(r.area_id, r.category_id) in (select area_id, category_id from department_routes where department_id = any(%[1]s))
		or (r.area_id, r.category_id) not in (select area_id, category_id from department_routes) and (
			r.category_id = any(array(select id from categories where department_id = any(%[1]s)))
			or r.category_id = any(array(select id from categories where department_id is null))
				and r.area_id = any(array(select area_id from department_routes where category_id = 0 and department_id = any(%[1]s))))))`
)

// withinSQL is whether no department is in charge but some, whose codes these are.
var withinSQL = `(` + strings.ReplaceAll(inChargeSQL, `%[1]s`, `array(select d.id from departments d where d.code <> all(%[1]s))`) + `) is not true`

// assetKeySQL is the key of the thing that a report is about, or an empty text.
var assetKeySQL = assetSQL("a.layer || '/' || a.code")

// assetSQL is something of the thing that a report is about, or an empty text.
func assetSQL(of string) string {
	return `case when r.asset_id = 0 then '' else coalesce((select ` + of + ` from assets a where a.id = r.asset_id), '') end`
}

// maybe reads a field of a V that is missing while all its columns are null.
type maybe[V, F any] struct {
	of    **V
	field func(*V) *F
}

func (m maybe[V, F]) place() any {
	if *m.of == nil {
		*m.of = new(V)
	}
	return m.field(*m.of)
}

// ScanText reads a text.
func (m maybe[V, F]) ScanText(v pgtype.Text) error {
	if v.Valid {
		*m.place().(*string) = v.String
	}
	return nil
}

// ScanInt64 reads an integer.
func (m maybe[V, F]) ScanInt64(v pgtype.Int8) error {
	if v.Valid {
		*m.place().(*int32) = int32(v.Int64) //nolint:gosec // the column is an int
	}
	return nil
}

// ScanFloat64 reads a number.
func (m maybe[V, F]) ScanFloat64(v pgtype.Float8) error {
	if v.Valid {
		*m.place().(*float64) = v.Float64
	}
	return nil
}

// latitude and longitude are those of a position that may be missing.
func latitude(p *report.Position) *float64 {
	if p == nil {
		return nil
	}
	return &p.Latitude
}

func longitude(p *report.Position) *float64 {
	if p == nil {
		return nil
	}
	return &p.Longitude
}

// utc is a time in UTC, and utcOrNil one that may be missing.
type (
	utc      struct{ of *time.Time }
	utcOrNil struct{ of **time.Time }
)

// ScanTimestamptz reads the time.
func (u utc) ScanTimestamptz(v pgtype.Timestamptz) error {
	*u.of = v.Time.UTC()
	return nil
}

// ScanTimestamptz reads the time, unless it is null.
func (u utcOrNil) ScanTimestamptz(v pgtype.Timestamptz) error {
	if v.Valid {
		*u.of = new(v.Time.UTC())
	}
	return nil
}
