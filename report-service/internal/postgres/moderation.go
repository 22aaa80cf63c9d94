package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/pseudonym"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Moderation hides and redacts reports, and keeps residents' complaints about
// them.
type Moderation struct {
	db        *DB
	abuseKeys [][]byte // of complainants, the current one first
}

// NewModeration returns the moderation of the reports in db.
func NewModeration(db *DB) *Moderation {
	return &Moderation{db: db, abuseKeys: pseudonym.Complaints(db.keys)}
}

// Hide hides a report from everybody but officials and its reporter, and
// settles the complaints about it. A hidden one stays hidden.
func (s *Moderation) Hide(ctx context.Context, id uuid.UUID, reason string, ifMatch report.Versions, by report.Official) error {
	return s.moderate(ctx, id, by, report.HidReport, func(_ pgx.Tx, l *lockedReport, w *writeBatch) (string, bool, error) {
		ok, err := l.Hide(reason, ifMatch, time.Now())
		if err != nil || !ok {
			return "", false, err
		}
		w.others.Queue(`update reports set hidden_reason = $2 where id = $1`, id, l.HiddenReason)
		w.others.Queue(settleSQL, id)
		return l.HiddenReason, true, nil
	})
}

// Unhide shows a hidden report to everybody again. If it is a duplicate whose
// original was closed while it was hidden, it follows.
func (s *Moderation) Unhide(ctx context.Context, id uuid.UUID, ifMatch report.Versions, by report.Official) error {
	err := s.moderate(ctx, id, by, report.ShowedReport, func(_ pgx.Tx, l *lockedReport, w *writeBatch) (string, bool, error) {
		reason := l.HiddenReason
		ok, err := l.Unhide(ifMatch, time.Now())
		if err != nil || !ok {
			return "", false, err
		}
		w.others.Queue(`update reports set hidden_reason = case when visibility = 'officials' then 'private' end where id = $1`, id)
		w.others.Queue(`
			insert into duplicate_ends (original, status, note, closed_by)
			select h.report_id, h.to_status, h.note, coalesce(h.changed_by, $2::text)
			from reports r join reports o on o.id = r.duplicate_of and o.status in ('resolved', 'rejected')
			join status_history h on h.report_id = o.id
			where r.id = $1 and h.from_status <> h.to_status order by h.id desc limit 1
			on conflict do nothing`, id, by.ID)
		return reason, true, nil
	})
	if err == nil {
		s.db.follow()
	}
	return err
}

// SetVisibility lets everybody see a report, or officials and its reporter alone. The
// words that others were notified of go as those of a hidden report do.
func (s *Moderation) SetVisibility(ctx context.Context, id uuid.UUID, v report.Visibility, reason string, ifMatch report.Versions, by report.Official) error {
	act := report.RestrictedReport
	if v == report.ForEverybody {
		act = report.PublishedReport
	}
	return s.moderate(ctx, id, by, act, func(tx pgx.Tx, l *lockedReport, w *writeBatch) (string, bool, error) {
		if err := l.check(true); err != nil {
			return "", false, err
		}
		if v == report.ForOfficials {
			// Duplicates.Set locks the original, too.
			original, err := pgpool.Value[bool](ctx, tx, "look for duplicates", `select exists (select from reports where duplicate_of = $1)`, id)
			if err != nil {
				return "", false, err
			}
			if original {
				return "", false, fault.New(fault.Conflict, "the report has duplicates: give them another original first")
			}
			ok, err := l.Restrict(ifMatch, time.Now())
			if ok {
				w.others.Queue(`update reports set visibility = 'officials', hidden_reason = 'private', restricted_version = $2 where id = $1`, id, l.Restricted)
			}
			return reason, ok, err
		}
		used, err := pgpool.Value[bool](ctx, tx, "look for what was added", `
			select exists (select from photos where report_id = r.id and created_at >= r.updated_at)
				or exists (select from status_history where report_id = r.id and changed_at >= r.updated_at)
			from reports r where r.id = $1`, id)
		if err != nil {
			return "", false, err
		}
		ok, err := l.Publish(used, ifMatch, time.Now())
		if ok {
			w.others.Queue(`update reports set visibility = 'public', hidden_reason = null, restricted_version = null where id = $1`, id)
		}
		return reason, ok, err
	})
}

// Redact replaces words of a report, hidden or not. The old words are kept
// nowhere.
func (s *Moderation) Redact(ctx context.Context, id uuid.UUID, r report.Rewording, by report.Official) error {
	return s.moderate(ctx, id, by, report.RedactedWords, func(tx pgx.Tx, l *lockedReport, w *writeBatch) (string, bool, error) {
		if err := l.Redact(r, time.Now()); err != nil {
			return "", false, err
		}
		for version, note := range r.Notes {
			tag, err := tx.Exec(ctx, `
				update status_history set note = $3, redacted_at = now() where report_id = $1 and report_version = $2 and note <> ''`, id, version, note)
			if err != nil {
				return "", false, fmt.Errorf("redact note: %w", err)
			}
			if tag.RowsAffected() == 0 {
				return "", false, fault.NewInvalid("/notes", fmt.Sprintf("the history has no note of version %d", version))
			}
			// The duplicates that follow must not bring the old words back.
			w.others.Queue(`
				update duplicate_ends e set note = $2 from (
					select to_status from status_history where report_id = $1 and report_version = $3 and from_status <> to_status
				) h where e.original = $1 and e.status = h.to_status`, id, note, version)
		}
		queueWords(&w.others, id, l.Title, r.Description)
		return r.Reason, true, nil
	})
}

// queueWords queues the statements that replace a report's words; the description stays if
// it is nil. A repetition of the request that filed it gets the stored answer.
func queueWords(b *pgx.Batch, id uuid.UUID, title string, description *string) {
	b.Queue(`update reports set title = $2, description = coalesce($3, description) where id = $1`, id, title, description)
	b.Queue(`
		update idempotency_keys set response_body = convert_to((convert_from(response_body, 'UTF8')::jsonb
			|| jsonb_build_object('title', $2::text, 'description', coalesce($3, r.description)))::text, 'UTF8')
		from reports r
		where r.id = $1 and convert_from(response_body, 'UTF8')::jsonb ->> 'id' = $1::uuid::text`, id, title, description)
}

// moderate changes a report by do and announces the change. do returns the note
// that other officials see, and whether anything changed.
func (s *Moderation) moderate(ctx context.Context, id uuid.UUID, by report.Official, act report.ActKind,
	do func(tx pgx.Tx, l *lockedReport, w *writeBatch) (note string, changed bool, err error),
) error {
	return s.db.act(ctx, id, by, report.Moderate, func(tx pgx.Tx, l *lockedReport, w *writeBatch) error {
		note, changed, err := do(tx, l, w)
		if err != nil || !changed {
			return err
		}
		redacted, err := redactedNotes(ctx, tx, id)
		if err != nil {
			return err
		}
		w.update(l)
		w.record(actRow{reportID: id, by: by, kind: act, text: note})
		return w.enqueueFor(reportModerated(&l.Filing, moderations[act], redacted), l.Reporter.ID, service.TraceFrom(ctx))
	})
}

// moderations are what messages say of officials' acts.
var moderations = map[report.ActKind]event.Moderation{
	report.HidReport: event.Hidden, report.ShowedReport: event.ShownAgain, report.RedactedWords: event.Redacted,
	report.RestrictedReport: event.Restricted, report.PublishedReport: event.ShownAgain,
}

// redactedNotes returns the versions of a report whose notes were redacted
// after they had been announced.
func redactedNotes(ctx context.Context, tx pgx.Tx, id uuid.UUID) ([]int64, error) {
	return pgpool.Collect(ctx, tx, "select redacted notes", pgx.RowTo[int64],
		`select report_version from status_history where report_id = $1 and redacted_at is not null order by id`, id)
}

// reportModerated announces what was done to f. For a hidden report it
// contains no words but the reason, which is for the reporter. So it does for one that
// everybody could see before officials restricted it: those who had its words must not
// get new ones. Of one that was filed for the city alone nobody else had any.
func reportModerated(f *report.Filing, action event.Moderation, redactedNotes []int64) *event.ReportModerated {
	m := &event.ReportModerated{
		Subject: subject(f, f.Version, f.UpdatedAt), CategoryID: f.Category.ID, Action: action,
		Hidden: f.HiddenReason != "" || f.Restricted != 0, RedactedNotes: redactedNotes, Note: f.HiddenReason,
	}
	if m.Hidden {
		m.ReportTitle = report.Reference(f.ID)
	}
	if f.WithdrawnAt != nil { // the reporter knows why
		m.Note = ""
	}
	return m
}

// Complain records a complaint about a report. Each user has one complaint per report:
// further ones change nothing. Complaints of clients without an account, whose userID is
// empty, count as one if reason and text are the same. Nothing else about such a client
// is kept.
func (s *Moderation) Complain(ctx context.Context, id uuid.UUID, c report.Complaint, userID string) error {
	who := userID
	if who == "" {
		who = "\x00" + string(c.Reason) + "\x00" + c.Text // no user's id has a NUL
	}
	hashes := pseudonym.OfComplainant(s.abuseKeys, id, who)
	found, err := pgpool.Value[bool](ctx, s.db.pool, "insert complaint", `
		with report as (
			select id from reports where id = $1 and hidden_reason is null for key share
		), noted as (
			insert into abuse_reports (report_id, user_mac, reason, text)
			select id, $2, $3, $4 from report
			where not exists (select from abuse_reports where report_id = $1 and user_mac = any($5))
			on conflict do nothing
		)
		select exists (select from report)`, id, hashes[0], string(c.Reason), c.Text, hashes)
	if err == nil && !found {
		return report.ErrNotFound
	}
	return err
}

// DismissComplaints records that an official has found nothing wrong with a
// report.
func (s *Moderation) DismissComplaints(ctx context.Context, id uuid.UUID, by report.Official) error {
	return s.db.act(ctx, id, by, report.Handle, func(tx pgx.Tx, _ *lockedReport, w *writeBatch) error {
		tag, err := tx.Exec(ctx, settleSQL, id)
		if err != nil {
			return fmt.Errorf("settle complaints: %w", err)
		}
		if tag.RowsAffected() > 0 {
			w.record(actRow{reportID: id, by: by, kind: report.DismissedAbuse})
		}
		return nil
	})
}

// maxComplaints is how many complaints about a report officials see: more would
// add nothing.
const maxComplaints = 20

// Flagged returns the reports in reach of by with open complaints, those with most complaints
// first.
func (s *Moderation) Flagged(ctx context.Context, limit int, by report.User) ([]report.FlaggedReport, error) {
	q := query{args: []any{limit}}
	within := q.within(by.Reach(report.Handle), "")
	tasks, err := pgpool.Collect(ctx, s.db.pool, "select suspects", worked.row, taskSQL(`
		where r.id in (
			select a.report_id from abuse_reports a join reports r on r.id = a.report_id where a.settled_at is null and `+within+`
			group by a.report_id order by count(*) desc, min(a.created_at), a.report_id limit $1)`), q.args...)
	if err != nil {
		return nil, err
	}
	suspects := make([]report.FlaggedReport, 0, len(tasks))
	for _, task := range tasks {
		complaints, err := pgpool.Collect(ctx, s.db.pool, "select complaints", func(row pgx.CollectableRow) (c report.Complaint, err error) {
			return c, row.Scan(&c.Reason, &c.Text, utc{&c.At})
		}, `
			select reason, text, created_at from abuse_reports
			where report_id = $1 and settled_at is null order by created_at limit $2`, task.ID, maxComplaints)
		if err != nil {
			return nil, err
		}
		if len(complaints) > 0 { // otherwise they were settled just now
			suspects = append(suspects, report.FlaggedReport{Task: task, Complaints: complaints})
		}
	}
	slices.SortStableFunc(suspects, func(a, b report.FlaggedReport) int {
		return cmp.Or(cmp.Compare(b.Abuse, a.Abuse), a.Complaints[0].At.Compare(b.Complaints[0].At))
	})
	return suspects, nil
}
