package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/schedule"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/calendar"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
)

// Questions are what officials ask the reporters of reports, with their answers.
type Questions struct{ db *DB }

// NewQuestions returns the questions in db.
func NewQuestions(db *DB) *Questions { return &Questions{db} }

// Ask adds a question to a report and stops its clock, together with the event that
// announces it to the reporter. It returns the question with its last day.
func (s *Questions) Ask(ctx context.Context, id uuid.UUID, q report.Question) (report.Question, error) {
	err := s.db.act(ctx, id, q.By, report.Handle, func(tx pgx.Tx, l *lockedReport, w *writeBatch) error {
		if err := l.check(true); err != nil {
			return err
		}
		if l.Status.Closed() {
			return fault.New(report.Closed, "the report is "+string(l.Status)+", and nothing about it is asked")
		}
		if l.ForCaller() {
			return report.ErrCallerCannotAnswer
		}
		switch _, err := openQuestion(ctx, tx, id); {
		case err == nil:
			return report.ErrAskedAlready
		case !errors.Is(err, report.ErrNotAsked):
			return err
		}
		days, d, now, err := readDeadline(ctx, tx, id)
		if err != nil {
			return err
		}
		last := days.Workday(now, s.db.rules.QuestionDays)
		q.EndsOn = last.String()
		w.others.Queue(`
			insert into questions (id, report_id, text, asked_by, asked_at, ends_on, remind_at, ends_at)
			values ($1, $2, $3, $4, $5, $6::text::date, $7, $8)`,
			q.ID, id, q.Text, q.By.ID, q.At, q.EndsOn, days.Opens(days.Workday(now, (s.db.rules.QuestionDays+1)/2)), days.Ends(last))
		queueDeadline(&w.others, id, days.Wait(d, now))
		w.record(actRow{reportID: id, by: q.By, kind: report.Asked})
		return w.enqueueFor(questionAsked(&l.Filing, q.ID, q.EndsOn, q.At), l.Reporter.ID, service.TraceFrom(ctx))
	})
	return q, err
}

// Withdraw ends an open question without an answer, and lets the clock of its report go
// on. One that is withdrawn already stays as it is.
func (s *Questions) Withdraw(ctx context.Context, id, question uuid.UUID, by report.Official) error {
	return s.db.act(ctx, id, by, report.Handle, func(tx pgx.Tx, _ *lockedReport, w *writeBatch) error {
		var state report.QuestionState
		err := tx.QueryRow(ctx, `select state from questions where id = $1 and report_id = $2`, question, id).Scan(&state)
		switch err = pgpool.Found(err, "select question", report.ErrUnknownQuestion); {
		case err != nil:
			return err
		case state == report.QuestionWithdrawn:
			w.doneBefore = true
			return nil
		case state != report.QuestionOpen:
			return fault.New(report.NotAsked, "the question is "+string(state)+": only an open one can be withdrawn")
		}
		w.record(actRow{reportID: id, by: by, kind: report.WithdrewQuestion})
		return endQuestion(ctx, tx, id, report.QuestionWithdrawn, w)
	})
}

// Answer adds the reporter's answer to the open question about a report, and lets its
// clock go on, together with the event that announces it to officials. For everybody
// but the reporter there is no such report. With idempotent it does so at most once per
// key, as Reports.Create does.
func (s *Questions) Answer(ctx context.Context, id uuid.UUID, reporter string, a report.Answer, idempotent *report.Idempotent,
) (report.StoredResponse, error) {
	before := s.db.earlierThan(idempotent)
	err := s.db.change(ctx, id, report.Scope{}, func(tx pgx.Tx, l *lockedReport, w *writeBatch) error {
		if reporter == "" || l.Reporter.ID != reporter {
			return report.ErrNotFound
		}
		if err := before.readNow(ctx, tx); err != nil {
			return err
		}
		if done, err := before.done(w); err != nil || done {
			return err
		}
		before.keep(&w.others)
		if err := l.check(true); err != nil { // reporters know that theirs is hidden
			return err
		}
		q, err := openQuestion(ctx, tx, id)
		if err != nil {
			return err
		}
		w.others.Queue(`insert into answers (question_id, id, text, answered_at) values ($1, $2, $3, $4)`, q.ID, a.ID, a.Text, a.At)
		if err := endQuestion(ctx, tx, id, report.QuestionAnswered, w); err != nil {
			return err
		}
		return w.enqueueFor(reportAnswered(&l.Filing, q.ID, a.At), q.By.ID, service.TraceFrom(ctx))
	})
	return before.response, err
}

// Dialogue returns the questions about a report, the answers, and what the reporter said
// about its resolutions; for officials also what reporters of its duplicates said. For
// everybody but officials and the reporter there is no such report.
func (s *Questions) Dialogue(ctx context.Context, id uuid.UUID, reader report.User) (d report.Dialogue, err error) {
	if err := s.db.may(ctx, reader, report.Converse, id); err != nil {
		return d, err
	}
	d.Exchanges, err = pgpool.Collect(ctx, s.db.pool, "select dialogue", func(row pgx.CollectableRow) (e report.Exchange, err error) {
		var answer *uuid.UUID
		var text *string
		var at *time.Time
		err = row.Scan(&e.ID, &e.Text, &e.By.ID, &e.By.Name, utc{&e.At}, &e.EndsOn, &e.State, &answer, &text, &at)
		if answer != nil {
			e.Answer = &report.Answer{ID: *answer, Text: *text, At: at.UTC()}
		}
		return e, err
	}, `
		select q.id, q.text, q.asked_by, coalesce(o.name, q.asked_by), q.asked_at, q.ends_on::text, q.state, a.id, a.text, a.answered_at
		from questions q left join officials o on o.id = q.asked_by left join answers a on a.question_id = q.id
		where q.report_id = $1 order by q.asked_at, q.id`, id)
	if err != nil {
		return d, err
	}
	d.Verdicts, err = s.saidVerdicts(ctx, id, reader)
	return d, err
}

// saidVerdicts returns all that was said about the resolutions of a report, oldest first, by
// its reporter; for officials also by those of its duplicates.
func (s *Questions) saidVerdicts(ctx context.Context, id uuid.UUID, reader report.User) ([]report.SaidVerdict, error) {
	q := query{args: []any{id}}
	within := q.within(reader.Reach(report.Handle), "")
	return pgpool.Collect(ctx, s.db.pool, "select all verdicts", func(row pgx.CollectableRow) (v report.SaidVerdict, err error) {
		var version, n int64
		err = row.Scan(&v.ReportID, &version, &n, &v.Fixed, &v.Text, utc{&v.GivenAt}, utc{&v.Until})
		v.ID = uuid.NewSHA1(v.ReportID, fmt.Appendf(nil, "%d/%d", version, n))
		return v, err
	}, `
		select v.report_id, v.version, said.n, said.fixed, said.text, said.given_at, v.until
		from verdicts v cross join lateral (
			select n, (e ->> 'fixed')::boolean as fixed, e ->> 'text' as text, (e ->> 'given_at')::timestamptz as given_at
			from jsonb_array_elements(v.earlier) with ordinality as earlier (e, n)
			union all
			select jsonb_array_length(v.earlier) + 1, v.fixed, v.text, v.given_at
		) said
		where v.given_at is not null and (v.report_id = $1 or v.report_id in (select r.id from reports r where r.duplicate_of = $1 and `+within+`))
		order by said.given_at, v.report_id, v.version, said.n`, q.args...)
}

// openQuestion returns the open question about a locked report, or ErrNotAsked.
func openQuestion(ctx context.Context, tx pgx.Tx, id uuid.UUID) (q report.Question, err error) {
	err = tx.QueryRow(ctx, `select id, asked_by from questions where report_id = $1 and state = 'open'`, id).Scan(&q.ID, &q.By.ID)
	return q, pgpool.Found(err, "select question", report.ErrNotAsked)
}

// endQuestion queues the end of the open question about a locked report, whose clock
// goes on.
func endQuestion(ctx context.Context, tx pgx.Tx, id uuid.UUID, state report.QuestionState, w *writeBatch) error {
	days, d, now, err := readDeadline(ctx, tx, id)
	if err != nil {
		return err
	}
	w.others.Queue(endQuestionSQL, id, string(state))
	queueDeadline(&w.others, id, days.Resume(d, now))
	return nil
}

// Job returns the job that reminds reporters of open questions, ends those whose time is
// over, and lets the clocks of their reports go on. It needs no catching up: its next
// run finds what missed ones left. A hidden report is left alone until it is shown
// again, because nothing about it is announced.
func (s *Questions) Job() schedule.Job {
	return schedule.Job{Name: "questions", When: schedule.Every(time.Minute), Step: s.step}
}

// questionRows is how many questions are due in one transaction.
const questionRows = 200

// A dueQuestion is an open question with a reminder or its end due.
type dueQuestion struct {
	timed
	question uuid.UUID
	by       string // who asked
	endsOn   string
	expired  bool
}

var dueQuestions = append(
	of(func(q *dueQuestion) *report.Report { return &q.Report }, "id", "title", "version", "privacy_level", "visibility", "latitude", "longitude"),
	append(deadlineOf(func(q *dueQuestion) *calendar.Deadline { return &q.deadline }), selection[dueQuestion]{
		{`clock_timestamp()`, func(q *dueQuestion) any { return &q.now }},
		{`coalesce((select p.reporter_id from reporters p where p.report_id = r.id), '')`, func(q *dueQuestion) any { return &q.Reporter.ID }},
		{`q.id`, func(q *dueQuestion) any { return &q.question }},
		{`q.asked_by`, func(q *dueQuestion) any { return &q.by }},
		{`q.ends_on::text`, func(q *dueQuestion) any { return &q.endsOn }},
		{`q.ends_at <= now()`, func(q *dueQuestion) any { return &q.expired }},
	}...)...)

// step announces some questions that are due. Reports and questions that another
// transaction has locked are left to the next minute.
func (s *Questions) step(ctx context.Context, tx pgx.Tx, _ schedule.Run) (schedule.Progress, error) {
	days, err := settings.ReadCalendar(ctx, tx)
	if err != nil {
		return schedule.Progress{}, err
	}
	// The question is locked, too: what is known of an answer must be as new as what is
	// known of the report.
	due, err := pgpool.Collect(ctx, tx, "find due questions", dueQuestions.row, `
		select `+dueQuestions.sql()+`
		from questions q join reports r on r.id = q.report_id
		where q.state = 'open' and coalesce(q.remind_at, q.ends_at) <= now() and r.waiting and `+unhiddenSQL+`
		order by coalesce(q.remind_at, q.ends_at) limit $1 for no key update of r, q skip locked`, questionRows)
	if err != nil {
		return schedule.Progress{}, err
	}
	w := s.db.newWrites()
	for _, q := range due {
		if !q.expired {
			w.others.Queue(`update questions set remind_at = null where id = $1`, q.question)
			if err := w.enqueueFor(questionReminded(&q.Filing, q.question, q.endsOn, q.now), q.Reporter.ID, service.TraceFrom(ctx)); err != nil {
				return schedule.Progress{}, err
			}
			continue
		}
		w.others.Queue(endQuestionSQL, q.ID, string(report.QuestionExpired))
		w.others.Queue(`update reports set not_answered = true where id = $1`, q.ID)
		queueDeadline(&w.others, q.ID, days.Resume(q.deadline, q.now))
		w.record(actRow{reportID: q.ID, by: system, kind: report.GotNoAnswer})
		if err := w.enqueueFor(questionExpired(&q.Filing, q.question, q.now), q.by, service.TraceFrom(ctx)); err != nil {
			return schedule.Progress{}, err
		}
	}
	repaired, err := s.repair(ctx, tx, days, w)
	if err != nil {
		return schedule.Progress{}, err
	}
	if err := w.send(ctx, tx); err != nil {
		return schedule.Progress{}, fmt.Errorf("announce questions: %w", err)
	}
	return schedule.Progress{
		Done: int64(len(due)), Last: len(due) < questionRows && repaired < questionRows,
		AfterCommit: func() { w.wake(s.db.committer.committed) },
	}, nil
}

// repair restores the rule that a report waits if and only if it has an open question. It
// restarts the clock of waiting reports without one (the reporter was erased, or an older
// replica left them), and closes questions of reports that no longer wait.
func (s *Questions) repair(ctx context.Context, tx pgx.Tx, days calendar.Calendar, w *writeBatch) (found int, err error) {
	w.others.Queue(`
		update questions q set state = 'withdrawn', ended_at = clock_timestamp() from reports r
		where q.state = 'open' and r.id = q.report_id and not r.waiting`)
	ids, err := pgpool.Collect(ctx, tx, "lock reports that wait", pgx.RowTo[uuid.UUID], `
		select r.id from reports r
		where r.waiting and not exists (select from questions q where q.report_id = r.id and q.state = 'open')
		order by r.id limit $1 for no key update of r skip locked`, questionRows)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	// Only a statement that begins after the locks sees all questions.
	waiting, err := pgpool.Collect(ctx, tx, "select deadlines", onlyTimed.row, `
		select `+onlyTimed.sql()+` from reports r
		where r.id = any($1) and r.waiting and not exists (select from questions q where q.report_id = r.id and q.state = 'open')`, ids)
	for _, t := range waiting {
		queueDeadline(&w.others, t.ID, days.Resume(t.deadline, t.now))
	}
	return len(ids), err
}
