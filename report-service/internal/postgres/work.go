package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Work returns what officials know of a report.
func (s *Store) Work(ctx context.Context, id uuid.UUID) (report.Work, error) {
	rows, err := s.pool.Query(ctx, taskSQL+` where r.id = $1`+taskJoinSQL, id)
	if err != nil {
		return report.Work{}, fmt.Errorf("select work: %w", err)
	}
	task, err := pgx.CollectExactlyOneRow(rows, scanTask)
	if errors.Is(err, pgx.ErrNoRows) {
		return report.Work{}, report.ErrNotFound
	}
	if err != nil {
		return report.Work{}, fmt.Errorf("select work: %w", err)
	}
	// The first entry of the history is the filing, which is no official's act.
	rows, err = s.pool.Query(ctx, `
		select h.changed_at as at, h.changed_by, coalesce(by.name, h.changed_by), 'move', h.note, h.to_status, null, null, null::int, null, null::uuid
		from status_history h left join officials by on by.id = h.changed_by
		where h.report_id = $1 and h.changed_by is not null
		union all
		select a.at, by.id, by.name, a.action, a.text, '', o.id, o.name, d.id, d.name, a.original
		from report_acts a
		join officials by on by.id = a.official_id
		left join officials o on o.id = a.assignee_id
		left join departments d on d.id = a.department_id
		where a.report_id = $1
		order by at`, id)
	if err != nil {
		return report.Work{}, fmt.Errorf("select acts: %w", err)
	}
	acts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a report.Act, err error) {
		var assignee, assigneeName, department *string
		var departmentID *int32
		err = row.Scan(&a.At, &a.By.ID, &a.By.Name, &a.Kind, &a.Text, &a.Status, &assignee, &assigneeName, &departmentID, &department, &a.Original)
		if assignee != nil {
			a.Assignee = &report.Official{ID: *assignee, Name: *assigneeName}
		}
		if departmentID != nil {
			a.Department = &report.Department{ID: *departmentID, Name: *department}
		}
		a.At = a.At.UTC()
		return a, err
	})
	if err != nil {
		return report.Work{}, fmt.Errorf("select acts: %w", err)
	}
	rows, err = s.pool.Query(ctx, `select id from reports where duplicate_of = $1 order by id`, id)
	if err != nil {
		return report.Work{}, fmt.Errorf("select duplicates: %w", err)
	}
	duplicates, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return report.Work{}, fmt.Errorf("select duplicates: %w", err)
	}
	return report.Work{Task: task, Acts: acts, Duplicates: duplicates}, nil
}

// Assign gives a report to an official, a department, both or none. Who has it
// already keeps it, and nothing is noted.
func (s *Store) Assign(ctx context.Context, id uuid.UUID, a report.Assignment, by report.Official) error {
	return s.change(ctx, id, func(tx pgx.Tx, _ *lockedReport, w *writeBatch) error {
		act := actRow{reportID: id, by: by, kind: report.Assigned, department: a.Department}
		if a.Assignee != nil {
			act.assignee = a.Assignee.ID
			if _, err := tx.Exec(ctx, namedOfficialSQL, a.Assignee.ID, a.Assignee.Name); err != nil {
				return fmt.Errorf("insert official: %w", err)
			}
		}
		tag, err := tx.Exec(ctx, `
			update reports set assignee_id = nullif($2::text, ''), department_id = nullif($3::int, 0)
			where id = $1 and (assignee_id, department_id) is distinct from (nullif($2::text, ''), nullif($3::int, 0))`,
			id, act.assignee, act.department)
		switch {
		case pgpool.Constraint(err) == "reports_department_id_fkey":
			return fault.NewInvalid("/department_id", "there is no such department")
		case err != nil:
			return fmt.Errorf("assign report: %w", err)
		case tag.RowsAffected() > 0:
			w.record(act)
		}
		return nil
	})
}

// Note adds an internal note to a report.
func (s *Store) Note(ctx context.Context, id uuid.UUID, text string, by report.Official) error {
	return s.change(ctx, id, func(_ pgx.Tx, _ *lockedReport, w *writeBatch) error {
		w.record(actRow{reportID: id, by: by, kind: report.Noted, text: text})
		return nil
	})
}

// Departments returns all departments with the categories whose reports they
// get, by id.
func (s *Store) Departments(ctx context.Context) ([]report.Department, error) {
	rows, err := s.pool.Query(ctx, `
		select d.id, d.name, array(select c.id from categories c where c.department_id = d.id order by c.id)
		from departments d order by d.id`)
	if err != nil {
		return nil, fmt.Errorf("select departments: %w", err)
	}
	departments, err := pgx.CollectRows(rows, pgx.RowToStructByPos[report.Department])
	if err != nil {
		return nil, fmt.Errorf("select departments: %w", err)
	}
	return departments, nil
}

// SetDepartments replaces all departments, and which of them get the reports of
// which categories. What was assigned to one that is gone is its category's
// again.
func (s *Store) SetDepartments(ctx context.Context, departments []report.Department) error {
	ids := make([]int32, len(departments))
	names := make([]string, len(departments))
	var categories, owners []int32
	for i, d := range departments {
		ids[i], names[i] = d.ID, d.Name
		for _, category := range d.Categories {
			categories, owners = append(categories, category), append(owners, d.ID)
		}
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// One at a time: two of them would mix. Readers go on.
		if _, err := tx.Exec(ctx, `lock table departments in share row exclusive mode`); err != nil {
			return fmt.Errorf("lock departments: %w", err)
		}
		var known int
		err := tx.QueryRow(ctx, `select count(*) from categories where id = any($1)`, categories).Scan(&known)
		if err != nil {
			return fmt.Errorf("select categories: %w", err)
		}
		if known != len(categories) {
			return fault.NewInvalid("/departments", "want categories that exist")
		}
		var replace pgx.Batch
		replace.Queue(`delete from departments where id <> all($1)`, ids)
		// Names may be swapped: they are unique, so first each gets one that nobody
		// can choose.
		replace.Queue(`update departments set name = chr(1) || id`)
		replace.Queue(`
			insert into departments (id, name) select * from unnest($1::int[], $2::text[])
			on conflict (id) do update set name = excluded.name`, ids, names)
		replace.Queue(`
			update categories c set department_id = r.department_id
			from (
				select c.id, r.department_id from categories c
				left join unnest($1::int[], $2::int[]) as r(id, department_id) on r.id = c.id
			) r
			where r.id = c.id and c.department_id is distinct from r.department_id`, categories, owners)
		if err := tx.SendBatch(ctx, &replace).Close(); err != nil {
			return fmt.Errorf("replace departments: %w", err)
		}
		return nil
	})
}
