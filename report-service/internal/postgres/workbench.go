package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Details returns what officials know about a report, for one of them.
func (s *Workbench) Details(ctx context.Context, id uuid.UUID, by report.User) (report.TaskDetails, error) {
	if !by.Scope.City() {
		if err := s.db.may(ctx, by, report.Handle, id); err != nil {
			return report.TaskDetails{}, err
		}
	}
	task, err := pgpool.One(ctx, s.db.pool, "select work", report.ErrNotFound, worked.row, taskSQL(` where r.id = $1`), id)
	if err != nil {
		return report.TaskDetails{}, err
	}
	likely := []report.Task{task}
	if err := s.MarkLikely(ctx, likely); err != nil {
		return report.TaskDetails{}, err
	}
	task = likely[0]
	// The first entry of the history is the filing, which is not an official's
	// act.
	acts, err := pgpool.Collect(ctx, s.db.pool, "select acts", func(row pgx.CollectableRow) (a report.Act, err error) {
		return a, row.Scan(utc{&a.At}, &a.By.ID, &a.By.Name, &a.Kind, &a.Text, &a.Status,
			officialID(&a.Assignee), officialName(&a.Assignee), departmentID(&a.Department), departmentName(&a.Department), &a.Original)
	}, `
		select h.changed_at as at, h.changed_by, coalesce(by.name, h.changed_by), case when h.correction is not null then 'correct' when h.kind = 'kept' then 'keep' when h.from_status = h.to_status then 'reply' else 'move' end, h.note, h.to_status, null, null, null::int, null, null::uuid
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
		return report.TaskDetails{}, err
	}
	q := query{args: []any{id}}
	within := q.within(by.Reach(report.Handle), "")
	duplicates, err := pgpool.Collect(ctx, s.db.pool, "select duplicates", pgx.RowTo[uuid.UUID],
		`select r.id from reports r where r.duplicate_of = $1 and `+within+` order by r.id`, q.args...)
	if err != nil {
		return report.TaskDetails{}, err
	}
	work := report.TaskDetails{Task: task, Acts: acts, Duplicates: duplicates}
	if err := s.origin(ctx, &work); err != nil {
		return report.TaskDetails{}, err
	}
	if work.Job, err = s.job(ctx, id); err != nil {
		return report.TaskDetails{}, err
	}
	return work, s.verdicts(ctx, &work, by)
}

// origin adds to work how its report came: by an application, from the system before, or by
// an official who filed it for somebody.
func (s *Workbench) origin(ctx context.Context, work *report.TaskDetails) error {
	var source *report.Source
	var by report.Official
	var caller string
	err := s.db.pool.QueryRow(ctx, `
		select coalesce(k.name, ''), coalesce(m.number, ''), i.source, coalesce(i.entered_by, ''), coalesce(o.name, i.entered_by, ''), coalesce(p.reporter_id, '')
		from reports r
		left join open311_reports a on a.report_id = r.id left join open311_keys k on k.id = a.key_id
		left join imported_reports m on m.report_id = r.id
		left join counter_reports i on i.report_id = r.id left join officials o on o.id = i.entered_by
		left join reporters p on p.report_id = r.id
		where r.id = $1`, work.ID).Scan(&work.Application, &work.Imported, &source, &by.ID, &by.Name, &caller)
	if source != nil {
		work.Intake = &report.Intake{Source: *source, By: by}
		if caller != "" {
			work.Intake.Caller = s.db.keys.Seal(work.ID, caller)
		}
	}
	return pgpool.Found(err, "select origin", report.ErrNotFound)
}

// job returns the last of a report that a firm got, or nil.
func (s *Workbench) job(ctx context.Context, id uuid.UUID) (*report.Job, error) {
	jobs, err := pgpool.Collect(ctx, s.db.pool, "select job", scanJob, jobsSQL+` where j.report_id = $1 order by j.sent_at desc limit 1`, id)
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	return &jobs[0].Job, nil
}

// Assign assigns a report to an official, a department, both or none. An
// assignment that changes nothing is not recorded.
func (s *Workbench) Assign(ctx context.Context, id uuid.UUID, a report.Assignment, by report.Official) error {
	return s.db.act(ctx, id, by, report.Handle, func(tx pgx.Tx, l *lockedReport, w *writeBatch) error {
		act := actRow{reportID: id, by: by, kind: report.Assigned, department: a.Department}
		if a.Assignee != nil {
			act.assignee = a.Assignee.ID
			if err := pgpool.Exec(ctx, tx, "insert official", namedOfficialSQL, a.Assignee.ID, a.Assignee.Name); err != nil {
				return err
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
			w.others.Queue(endJobElsewhereSQL, id)
			w.record(act)
		}
		if by.Scope.City() {
			return nil
		}
		if err := tx.QueryRow(ctx, `select `+departmentSQL+` from reports r where r.id = $1`, id).Scan(&l.Department); err != nil {
			return fmt.Errorf("select department in charge: %w", err)
		}
		if report.May(by.User(), report.Handle, &l.Filing) != nil {
			return fault.NewInvalid("/department_id", "must leave the report to a department of yours: forward it to another")
		}
		return nil
	})
}

// Forward gives a report to another department than the one in charge, with a reason, and
// takes it from whoever it is assigned to.
func (s *Workbench) Forward(ctx context.Context, id uuid.UUID, department int32, reason string, by report.Official) error {
	return s.db.act(ctx, id, by, report.Handle, func(tx pgx.Tx, _ *lockedReport, w *writeBatch) error {
		var known, there bool
		err := tx.QueryRow(ctx, `
			select exists (select from departments where id = $2), coalesce(`+chargeSQL+` = $2, false)
			from reports r join categories c on c.id = r.category_id`+routesSQL+` where r.id = $1`, id, department).Scan(&known, &there)
		switch {
		case err != nil:
			return fmt.Errorf("select department in charge: %w", err)
		case !known:
			return fault.NewInvalid("/department_id", "there is no such department")
		case there:
			return fault.NewInvalid("/department_id", "must be another department than the one in charge")
		}
		w.others.Queue(`update reports set assignee_id = null, department_id = $2 where id = $1`, id, department)
		w.others.Queue(endJobSQL, id)
		w.record(actRow{reportID: id, by: by, kind: report.Forwarded, text: reason, department: department})
		return nil
	})
}

// AddNote adds an internal note to a report.
func (s *Workbench) AddNote(ctx context.Context, id uuid.UUID, text string, by report.Official) error {
	return s.db.act(ctx, id, by, report.Handle, func(_ pgx.Tx, _ *lockedReport, w *writeBatch) error {
		w.record(actRow{reportID: id, by: by, kind: report.Noted, text: text})
		return nil
	})
}

// verdicts adds to work what the reporter of its report, and those of its duplicates, have
// said about the last resolution, as far as by works on them.
func (s *Workbench) verdicts(ctx context.Context, work *report.TaskDetails, by report.User) error {
	q := query{args: []any{work.ID}}
	within := q.within(by.Reach(report.Handle), "")
	given, err := pgpool.Collect(ctx, s.db.pool, "select verdicts", func(row pgx.CollectableRow) (v report.DuplicateVerdict, err error) {
		return v, row.Scan(&v.ReportID, &v.Fixed, &v.Text, utc{&v.GivenAt}, utc{&v.Until})
	}, `
		(select report_id, fixed, text, given_at, until from verdicts where report_id = $1 and given_at is not null order by version desc limit 1)
		union all
		(select v.report_id, v.fixed, v.text, v.given_at, v.until from verdicts v join reports r on r.id = v.report_id
			where r.duplicate_of = $1 and not v.fixed and v.ended_at is null and `+within+` order by v.given_at)`, q.args...)
	for _, v := range given {
		if v.ReportID == work.ID {
			work.Verdict = &v.Verdict
		} else {
			work.Disputes = append(work.Disputes, v)
		}
	}
	return err
}
