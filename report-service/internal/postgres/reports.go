package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Reports are what residents filed, with their votes and their history.
type Reports struct{ db *DB }

// NewReports returns the reports in db.
func NewReports(db *DB) *Reports { return &Reports{db} }

// Get returns a report as reader may see it. Only officials and its reporter
// see a hidden one.
func (s *Reports) Get(ctx context.Context, id uuid.UUID, reader report.User) (report.View, error) {
	q := query{args: []any{reader.ID, id}}
	within := q.within(reader.Reach(report.Read), "p")
	return pgpool.One(ctx, s.db.pool, "select report", report.ErrNotFound, viewed.row, viewSQL+` where r.id = $2 and `+within, q.args...)
}

// Outlook returns what the reporter of a report learns about the work on it. For
// everybody else there is none.
func (s *Reports) Outlook(ctx context.Context, id uuid.UUID, reporter string) (report.Outlook, error) {
	return pgpool.One(ctx, s.db.pool, "select outlook", report.ErrNotFound, pgx.RowToStructByPos[report.Outlook], `
		select coalesce(d.name, ''), case when r.status in ('pending', 'in_progress') or r.disputed_at is not null then r.due_at end
		from reports r
		join reporters p on p.report_id = r.id and p.reporter_id = $2
		join categories c on c.id = r.category_id`+routesSQL+`
		left join departments d on d.id = `+chargeSQL+`
		where r.id = $1`, id, reporter)
}

// History returns the changes of a report that reader may see, oldest first.
func (s *Reports) History(ctx context.Context, id uuid.UUID, reader report.User) ([]report.Change, error) {
	q := query{args: []any{id}}
	within := q.within(reader.Reach(report.Read), "p")
	changes, err := pgpool.Collect(ctx, s.db.pool, "select history", func(row pgx.CollectableRow) (c report.Change, err error) {
		return c, row.Scan(&c.From, &c.To, &c.Note, &c.Version, utc{&c.At}, &c.Corrected, &c.Kind, &c.Department)
	}, `
		select coalesce(from_status, ''), to_status, note, report_version, changed_at, correction, coalesce(kind, ''),
			coalesce((select d.name from connections k join departments d on d.id = k.department_id where k.id::text = h.changed_by), '')
		from status_history h where report_id = $1 and exists (
			select from reports r left join reporters p on p.report_id = r.id
			where r.id = $1 and `+within+`)
		order by id`, q.args...)
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
		sql = viewOf(`(select r.* from reports r`+page+`) r`) + order
	}
	views, err := pgpool.Collect(ctx, s.db.pool, "select reports", viewed.row, sql, q.values(filter)...)
	if err != nil {
		return report.Page{}, err
	}
	if len(views) <= limit {
		return report.Page{Reports: views}, nil
	}
	return report.Page{Reports: views[:limit], Next: filter.CursorAt(views[limit-1].Report)}, nil
}

// figuresLife is how old figures may be: they read most of an index, and are the same for
// everybody.
const figuresLife = 5 * time.Minute

// keptFigures are those that were read last. A request during a reading waits for it.
type keptFigures struct {
	mu sync.Mutex
	report.Figures
	readAt time.Time
}

// Figures returns what becomes of the reports that everybody sees.
func (s *Reports) Figures(ctx context.Context) (report.Figures, error) {
	kept := &s.db.figures
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if time.Since(kept.readAt) < figuresLife {
		return kept.Figures, nil
	}
	f, err := s.readFigures(ctx)
	if err == nil {
		kept.Figures, kept.readAt = f, time.Now()
	}
	return f, err
}

func (s *Reports) readFigures(ctx context.Context) (report.Figures, error) {
	days, err := s.db.city.Calendar(ctx)
	if err != nil {
		return report.Figures{}, err
	}
	now := time.Now().In(days.Zone)
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, days.Zone)
	return pgpool.One(ctx, s.db.pool, "select figures", pgx.ErrNoRows, pgx.RowToStructByPos[report.Figures], `
		with resolved as (
			select max(h.changed_at) as at, extract(epoch from max(h.changed_at) - r.created_at)::float8 as seconds
			from status_history h join reports r on r.id = h.report_id
			where h.changed_at >= $1 and h.from_status is not null and h.from_status <> h.to_status and h.to_status = 'resolved'
			  and r.status = 'resolved' and r.hidden_reason is null
			group by r.id
		)
		select (select count(*) from reports where status in ('pending', 'in_progress') and hidden_reason is null),
			count(*) filter (where at >= $2), make_interval(secs => percentile_cont(0.5) within group (order by seconds))
		from resolved`, now.AddDate(0, 0, -report.FiguresDays), month)
}
