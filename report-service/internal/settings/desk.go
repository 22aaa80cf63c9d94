package settings

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A Desk is the settings of the officials' work.
type Desk struct{ city *City }

// NewDesk returns those of a city.
func NewDesk(city *City) *Desk { return &Desk{city} }

// Departments returns all departments, each with the categories whose reports
// it gets, by id.
func (s *Desk) Departments(ctx context.Context) ([]report.Department, error) {
	return selectDepartments(ctx, s.city.pool)
}

func selectDepartments(ctx context.Context, q pgpool.Querier) ([]report.Department, error) {
	return pgpool.Collect(ctx, q, "select departments", pgx.RowToStructByPos[report.Department], `
		select d.id, d.code, d.name, array(select c.id from categories c where c.department_id = d.id order by c.id),
			coalesce((select jsonb_agg(jsonb_build_object('area', a.code, 'category', r.category_id) order by a.code, r.category_id)
				from department_routes r join areas a on a.id = r.area_id and a.retired_at is null where r.department_id = d.id), '[]')
		from departments d order by d.id`)
}

// SetDepartments replaces all departments, and the categories and areas whose reports
// they get. Reports that were assigned to a removed department fall back to
// that of their category, and its connections are revoked. A department without a code keeps its own.
func (s *Desk) SetDepartments(ctx context.Context, departments []report.Department, by report.Official) error {
	ids := make([]int32, len(departments))
	names, codes := make([]string, len(departments)), make([]string, len(departments))
	var categories, owners, routed, receivers []int32 // routed has the categories of routes
	var areas []string
	for i, d := range departments {
		ids[i], names[i], codes[i] = d.ID, d.Name, d.Code
		for _, category := range d.Categories {
			categories, owners = append(categories, category), append(owners, d.ID)
		}
		for _, r := range d.Routes {
			areas, routed, receivers = append(areas, r.Area), append(routed, r.Category), append(receivers, d.ID)
		}
	}
	return pgx.BeginFunc(ctx, s.city.pool, func(tx pgx.Tx) error {
		// Only one at a time, or two of them would mix. Readers are not
		// blocked.
		if err := pgpool.Exec(ctx, tx, "lock departments", `lock table departments in share row exclusive mode`); err != nil {
			return err
		}
		before, err := selectDepartments(ctx, tx)
		if err != nil {
			return err
		}
		var known, routable int
		err = tx.QueryRow(ctx, `
			select (select count(*) from categories where id = any($1)),
				(select count(*) from unnest($2::text[], $3::int[]) as r (code, category_id) join areas a on a.code = r.code and a.retired_at is null
					where r.category_id = 0 or exists (select from categories c where c.id = r.category_id))`,
			categories, areas, routed).Scan(&known, &routable)
		switch {
		case err != nil:
			return fmt.Errorf("select categories and areas: %w", err)
		case known != len(categories):
			return fault.NewInvalid("/departments", "must name existing categories only")
		case routable != len(areas):
			return fault.NewInvalid("/departments", "must have routes of existing areas and categories only")
		}
		var replace pgx.Batch
		replace.Queue(`update connections set revoked_at = now() where department_id <> all($1) and revoked_at is null`, ids)
		replace.Queue(`delete from departments where id <> all($1)`, ids)
		// Names and codes are unique, and may be swapped: first each department gets
		// others, which nobody chooses.
		replace.Queue(`update departments set name = chr(1) || id, code = '0-' || id || repeat('0', 25) where id = any($1)`, ids)
		replace.Queue(`
			insert into departments (id, name, code) select id, name, nullif(code, '') from unnest($1::int[], $2::text[], $3::text[]) as d (id, name, code)
			on conflict (id) do update set name = excluded.name, code = excluded.code`, ids, names, keptCodes(before, ids, codes))
		replace.Queue(`
			update categories c set department_id = r.department_id
			from (
				select c.id, r.department_id from categories c
				left join unnest($1::int[], $2::int[]) as r(id, department_id) on r.id = c.id
			) r
			where r.id = c.id and c.department_id is distinct from r.department_id`, categories, owners)
		replace.Queue(`delete from department_routes`)
		replace.Queue(`
			insert into department_routes (area_id, category_id, department_id)
			select a.id, r.category_id, r.department_id
			from unnest($1::text[], $2::int[], $3::int[]) as r (code, category_id, department_id) join areas a on a.code = r.code`,
			areas, routed, receivers)
		err = tx.SendBatch(ctx, &replace).Close()
		switch {
		case pgpool.Constraint(err) == "departments_code_key":
			return fault.NewInvalid("/departments", "must have codes that no other department keeps")
		case err != nil:
			return fmt.Errorf("replace departments: %w", err)
		}
		return Record(ctx, tx, by, "departments", departmentsChanged(before, departments))
	})
}

// keptCodes returns codes, those of departments by ids, with what they have before in the
// place of empty ones.
func keptCodes(before []report.Department, ids []int32, codes []string) []string {
	kept := slices.Clone(codes)
	for i, id := range ids {
		if d := slices.IndexFunc(before, func(d report.Department) bool { return d.ID == id }); d >= 0 && codes[i] == "" {
			kept[i] = before[d].Code
		}
	}
	return kept
}

// Templates returns the response templates, by id.
func (s *Desk) Templates(ctx context.Context) ([]report.Template, error) {
	return pgpool.Collect(ctx, s.city.pool, "select templates", pgx.RowToStructByPos[report.Template],
		`select id, title, text, status from response_templates order by id`)
}

// SetTemplates replaces all response templates.
func (s *Desk) SetTemplates(ctx context.Context, templates []report.Template) error {
	var replace pgx.Batch
	replace.Queue(`lock table response_templates in share row exclusive mode`) // only one at a time, or two of them would mix
	replace.Queue(`delete from response_templates`)
	for _, t := range templates {
		replace.Queue(`insert into response_templates (id, title, text, status) values ($1, $2, $3, $4)`, t.ID, t.Title, t.Text, t.Status)
	}
	err := pgx.BeginFunc(ctx, s.city.pool, func(tx pgx.Tx) error { return tx.SendBatch(ctx, &replace).Close() })
	if err != nil {
		return fmt.Errorf("replace templates: %w", err)
	}
	return nil
}

// Views returns an official's views of the queue, in their order, and keeps those
// that are still in use from retention.
func (s *Desk) Views(ctx context.Context, official string) ([]report.QueueView, error) {
	err := pgpool.Exec(ctx, s.city.pool, "keep views", `
		update queue_views set used_at = now() where official_id = $1 and used_at < now() - interval '1 day'`, official)
	if err != nil {
		return nil, err
	}
	return pgpool.Collect(ctx, s.city.pool, "select views", pgx.RowToStructByPos[report.QueueView],
		`select name, filters from queue_views where official_id = $1 order by position`, official)
}

// SetViews replaces an official's views of the queue.
func (s *Desk) SetViews(ctx context.Context, official string, views []report.QueueView) error {
	names, filters := make([]string, len(views)), make([]string, len(views))
	for i, v := range views {
		names[i], filters[i] = v.Name, v.Filters
	}
	err := pgx.BeginFunc(ctx, s.city.pool, func(tx pgx.Tx) error {
		var replace pgx.Batch
		replace.Queue(`select pg_advisory_xact_lock(hashtextextended('views of ' || $1, 0))`, official) // only one at a time, or two of them would mix
		replace.Queue(`delete from queue_views where official_id = $1`, official)
		replace.Queue(`
			insert into queue_views (official_id, position, name, filters)
			select $1, position, name, filters from unnest($2::text[], $3::text[]) with ordinality as v(name, filters, position)`, official, names, filters)
		return tx.SendBatch(ctx, &replace).Close()
	})
	if err != nil {
		return fmt.Errorf("replace views: %w", err)
	}
	return nil
}

// SettingChanges returns the last changes of the city's settings, the newest first.
func (s *Desk) SettingChanges(ctx context.Context, limit int) ([]report.SettingChange, error) {
	return pgpool.Collect(ctx, s.city.pool, "read audit of settings", func(row pgx.CollectableRow) (c report.SettingChange, err error) {
		err = row.Scan(&c.At, &c.By.ID, &c.By.Name, &c.Setting, &c.Detail)
		c.At = c.At.UTC()
		return c, err
	}, `
		(select at, actor, actor_name, setting, detail from settings_audit order by id desc limit $1)
		union all
		(select at, actor, actor_name, 'categories', jsonb_build_object('added', added, 'changed', changed, 'retired', retired, 'moved', moved)
			from category_audit order by id desc limit $1)
		order by at desc limit $1`, limit)
}
