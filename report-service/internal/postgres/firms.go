package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/calendar"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
)

// Firms are those that repair for departments, and the reports that they get.
type Firms struct{ db *DB }

// NewFirms returns the firms in db.
func NewFirms(db *DB) *Firms { return &Firms{db} }

const (
	// openJobSQL is whether the job $2 of report r is open.
	openJobSQL = `exists (select from firm_jobs j where j.id = $2 and j.report_id = r.id and j.ended_at is null and j.ends_at > now())`

	// endJobSQL ends the open job of a report, and its link with it.
	endJobSQL = `update firm_jobs j set ended_at = clock_timestamp(), remind_at = null, link = '' where j.report_id = $1 and j.ended_at is null`

	// endJobElsewhereSQL does so if the firm's department is no longer in charge.
	endJobElsewhereSQL = endJobSQL + `
		and not exists (select from reports r, firms f join departments d on d.id = f.department_id where r.id = $1 and f.id = j.firm_id and d.code = ` + departmentSQL + `)`

	jobsSQL = `
		select j.id, j.report_id, f.id, f.name, d.id, d.code, d.name, j.text, j.sent_at, j.ends_at, j.ended_at is not null or j.ends_at <= now(), j.said, j.said_text
		from firm_jobs j join firms f on f.id = j.firm_id join departments d on d.id = f.department_id`
)

// A reportJob is a job with its report's id.
type reportJob struct {
	report.Job
	reportID uuid.UUID
}

func scanJob(row pgx.CollectableRow) (j reportJob, err error) {
	err = row.Scan(&j.ID, &j.reportID, &j.Firm.ID, &j.Firm.Name, &j.Department.ID, &j.Department.Code, &j.Department.Name,
		&j.Text, utc{&j.SentAt}, utc{&j.EndsAt}, &j.Ended, &j.Said, &j.SaidText)
	return j, err
}

// Of returns the firms of a department, by name, for officials who work for it.
func (s *Firms) Of(ctx context.Context, department int32, by report.User) ([]report.Firm, error) {
	if err := mayList(ctx, s.db.pool, department, by); err != nil {
		return nil, err
	}
	return firmsOf(ctx, s.db.pool, department)
}

func firmsOf(ctx context.Context, q pgpool.Querier, department int32) ([]report.Firm, error) {
	return pgpool.Collect(ctx, q, "select firms", pgx.RowToStructByPos[report.Firm], `select id, name, address from firms where department_id = $1 order by name`, department)
}

// mayList returns an error if by does not work for the department.
func mayList(ctx context.Context, q pgpool.Querier, department int32, by report.User) error {
	code, err := pgpool.One(ctx, q, "select department", fault.NewInvalid("department_id", "there is no such department"), pgx.RowTo[string],
		`select code from departments where id = $1`, department)
	if err != nil {
		return err
	}
	return report.May(by, report.Handle, &report.Filing{Department: code})
}

// Replace makes firms the list of a department. One with the id of a firm is that firm; the
// links and the address of one that is left out end with it.
func (s *Firms) Replace(ctx context.Context, department int32, firms []report.Firm, by report.User) error {
	return pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
		if err := mayList(ctx, tx, department, by); err != nil {
			return err
		}
		if err := pgpool.Exec(ctx, tx, "lock firms", `lock table firms in share row exclusive mode`); err != nil { // only one at a time
			return err
		}
		before, err := firmsOf(ctx, tx, department)
		if err != nil {
			return err
		}
		var rows pgx.Batch
		var kept []uuid.UUID
		var added, changed, removed []string
		for i, f := range firms {
			old := slices.IndexFunc(before, func(b report.Firm) bool { return b.ID == f.ID })
			switch {
			case f.ID == uuid.Nil:
				f.ID = uuid.Must(uuid.NewV7())
				added = append(added, f.Name)
			case old < 0:
				return fault.NewInvalid(fmt.Sprintf("/firms/%d/id", i), "the department has no such firm; leave the id out for a new one")
			case before[old] != f:
				changed = append(changed, f.Name)
			}
			kept = append(kept, f.ID)
			rows.Queue(`insert into firms (id, department_id, name, address) values ($1, $2, $3, $4)
				on conflict (id) do update set name = excluded.name, address = excluded.address`, f.ID, department, f.Name, f.Address)
		}
		for _, b := range before {
			if !slices.Contains(kept, b.ID) {
				removed = append(removed, b.Name)
			}
		}
		var first pgx.Batch // names are unique, and may be swapped
		first.Queue(`delete from firms where department_id = $1 and id <> all($2)`, department, kept)
		first.Queue(`update firms set name = chr(1) || id where department_id = $1`, department)
		first.QueuedQueries = append(first.QueuedQueries, rows.QueuedQueries...)
		if err := tx.SendBatch(ctx, &first).Close(); err != nil {
			return fmt.Errorf("replace firms: %w", err)
		}
		return settings.Record(ctx, tx, by.AsOfficial(), "firms", settings.Present(map[string][]string{"added": added, "changed": changed, "removed": removed}))
	})
}

// Send asks a firm of the department in charge to repair what a report is about, in the
// place of any other firm.
func (s *Firms) Send(ctx context.Context, id, firm uuid.UUID, text string, by report.Official) error {
	return s.db.act(ctx, id, by, report.Handle, func(tx pgx.Tx, l *lockedReport, w *writeBatch) error {
		if err := l.check(true); err != nil {
			return err
		}
		if l.Status.Closed() {
			return fault.New(report.Closed, "the report is "+string(l.Status)+", and no firm gets it")
		}
		if l.Private() && text == "" {
			return fault.NewInvalid("/text", "must say what to repair: the firm does not read the words of a report that only the city sees")
		}
		days, err := settings.ReadCalendar(ctx, tx)
		if err != nil {
			return err
		}
		now := time.Now()
		ends := days.Ends(calendar.DateOf(now.In(days.Zone).AddDate(0, 0, report.JobDays)))
		job, token := uuid.Must(uuid.NewV7()), report.NewJobToken()
		if err := pgpool.Exec(ctx, tx, "end job", endJobSQL, id); err != nil {
			return err
		}
		err = pgpool.Exec(ctx, tx, "write job", `
			insert into firm_jobs (id, report_id, firm_id, hash, link, text, sent_at, remind_at, ends_at)
			select $3, r.id, f.id, $4, $5, $6, $7, $8, $9 from reports r, firms f join departments d on d.id = f.department_id
			where r.id = $1 and f.id = $2 and d.code = `+departmentSQL,
			id, firm, job, report.HashKey(token), s.db.keys.SealPadded(job, token, tokenSize), text, now, now.Add(ends.Sub(now)/2), ends)
		if err != nil {
			return err
		}
		j, err := pgpool.One(ctx, tx, "read job", fault.NewInvalid("/firm_id", "the department in charge has no such firm"), dueJobs.row, dueSQL+` where j.id = $1`, job)
		if err != nil {
			return err
		}
		said := j.firm
		if text != "" {
			said += ": " + text
		}
		w.record(actRow{reportID: id, by: by, kind: report.SentToFirm, text: said})
		return w.enqueueFor(firmNotice(j, event.FirmAsked, days.Zone, s.db.keys), "", service.TraceFrom(ctx))
	})
}

// Sizes to which texts are padded before they are sealed, so that their lengths reveal nothing.
const (
	tokenSize   = 32
	mailboxSize = 256
)

// A dueJob is a job that a firm gets a mail about, with its report.
type dueJob struct {
	report.Filing
	now             time.Time
	job             uuid.UUID
	link            string // sealed
	firm, mailbox   string
	category, text  string
	photos          []uuid.UUID
	endsAt          time.Time
	said            report.JobState
	expired, theirs bool // whether the time is over, and whether the link would open the report
}

var dueJobs = append(
	of(func(j *dueJob) *report.Report { return &j.Report }, "id", "title", "version", "privacy_level", "visibility", "latitude", "longitude", "address"),
	selection[dueJob]{
		{`clock_timestamp()`, func(j *dueJob) any { return &j.now }},
		{`j.id`, func(j *dueJob) any { return &j.job }},
		{`j.link`, func(j *dueJob) any { return &j.link }},
		{`f.name`, func(j *dueJob) any { return &j.firm }},
		{`f.address`, func(j *dueJob) any { return &j.mailbox }},
		{`c.name`, func(j *dueJob) any { return &j.category }},
		{`j.text`, func(j *dueJob) any { return &j.text }},
		{photosSQL, func(j *dueJob) any { return &j.photos }},
		{`j.ends_at`, func(j *dueJob) any { return &j.endsAt }},
		{`j.said`, func(j *dueJob) any { return &j.said }},
		{`j.ends_at <= now()`, func(j *dueJob) any { return &j.expired }},
		{unhiddenSQL + ` and d.code = ` + departmentSQL, func(j *dueJob) any { return &j.theirs }},
	}...)

var dueSQL = `
	select ` + dueJobs.sql() + ` from firm_jobs j join reports r on r.id = j.report_id join categories c on c.id = r.category_id
		join firms f on f.id = j.firm_id join departments d on d.id = f.department_id`

// Schedule returns the job of the scheduler that reminds firms at half of their time, and ends
// links whose time is over, with a mail and an act for officials. A firm that was done, or
// could not, gets neither mail. It needs no catching up: its next run finds what missed ones left.
func (s *Firms) Schedule() schedule.Job {
	return schedule.Job{Name: "firms", When: schedule.Every(time.Minute), Step: s.step}
}

// jobRows is how many jobs are due in one transaction.
const jobRows = 100

func (s *Firms) step(ctx context.Context, tx pgx.Tx, _ schedule.Run) (schedule.Progress, error) {
	days, err := settings.ReadCalendar(ctx, tx)
	if err != nil {
		return schedule.Progress{}, err
	}
	due, err := pgpool.Collect(ctx, tx, "find due jobs", dueJobs.row, dueSQL+`
		where j.ended_at is null and coalesce(j.remind_at, j.ends_at) <= now()
		order by coalesce(j.remind_at, j.ends_at) limit $1 for no key update of r, j skip locked`, jobRows)
	if err != nil {
		return schedule.Progress{}, err
	}
	w := s.db.newWrites()
	for _, j := range due {
		kind := event.FirmReminded
		if j.expired {
			kind = event.FirmEnded
			w.others.Queue(endJobSQL, j.ID)
		} else {
			w.others.Queue(`update firm_jobs set remind_at = null where id = $1`, j.job)
		}
		if !j.theirs || j.said == report.JobDone || j.said == report.JobRefused {
			continue
		}
		if j.expired {
			w.record(actRow{reportID: j.ID, by: system, kind: report.JobEnded})
		}
		if err := w.enqueueFor(firmNotice(j, kind, days.Zone, s.db.keys), "", service.TraceFrom(ctx)); err != nil {
			return schedule.Progress{}, err
		}
	}
	if err := w.send(ctx, tx); err != nil {
		return schedule.Progress{}, fmt.Errorf("announce jobs: %w", err)
	}
	return schedule.Progress{
		Done: int64(len(due)), Last: len(due) < jobRows, AfterCommit: func() { w.wake(s.db.committer.committed) },
	}, nil
}

// ByToken returns the firm whose link has the hash, as the author of requests.
func (s *Firms) ByToken(ctx context.Context, hash []byte) (report.User, error) {
	j, err := pgpool.One(ctx, s.db.pool, "select job", report.ErrNoJob, scanJob, jobsSQL+` where j.hash = $1 and j.ended_at is null and j.ends_at > now()`, hash)
	return j.User(j.reportID), err
}

// Job returns the job by whose link a firm asks, and its report as the firm reads it: nothing
// of its reporter, and none of the words and photos of one that only the city sees.
func (s *Firms) Job(ctx context.Context, by report.User) (report.Job, report.ConnectedReport, error) {
	job, id := by.Scope.Job()
	q := query{args: []any{id}}
	within := q.within(by.Reach(report.Read), "")
	c, err := pgpool.One(ctx, s.db.pool, "select report", report.ErrNoJob, connected.row, `
		select `+connected.sql()+` from reports r join categories c on c.id = r.category_id where r.id = $1 and `+within, q.args...)
	if err != nil {
		return report.Job{}, c, err
	}
	if c.Private() {
		c.Title, c.Description, c.Address, c.Photos = "", "", "", nil
	}
	j, err := pgpool.One(ctx, s.db.pool, "select job", report.ErrNoJob, scanJob, jobsSQL+` where j.id = $1`, job)
	return j.Job, c, err
}

// Say records what a firm says, as an act for officials. Saying the same twice is one act.
func (s *Firms) Say(ctx context.Context, state report.JobState, text string, by report.User) error {
	job, id := by.Scope.Job()
	return s.db.act(ctx, id, by.AsOfficial(), report.Handle, func(tx pgx.Tx, _ *lockedReport, w *writeBatch) error {
		tag, err := tx.Exec(ctx, `update firm_jobs set said = $2, said_text = $3 where id = $1 and (said, said_text) is distinct from ($2, $3)`, job, string(state), text)
		switch {
		case err != nil:
			return fmt.Errorf("record what a firm says: %w", err)
		case tag.RowsAffected() == 0:
			w.doneBefore = true
		default:
			w.record(actRow{reportID: id, by: by.AsOfficial(), kind: state.Act(), text: text})
		}
		return nil
	})
}
