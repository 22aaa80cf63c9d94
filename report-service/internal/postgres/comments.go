package postgres

import (
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Comments are what residents said about reports.
type Comments struct{ db *DB }

// NewComments returns the comments in db.
func NewComments(db *DB) *Comments { return &Comments{db} }

// Add adds c to its report, together with the event that announces it. With
// idempotent it does so at most once per key, as Reports.Create does.
func (s *Comments) Add(ctx context.Context, c *report.WrittenComment, idempotent *report.Idempotent) (earlier report.StoredResponse, err error) {
	ch := &commentChange{trace: service.TraceFrom(ctx), comment: c, earlier: s.db.earlierThan(idempotent)}
	if err := s.db.do(ctx, c.Author.ID, c.Author.Guest, ch); err != nil {
		return nil, err
	}
	return ch.earlier.response, nil
}

type commentChange struct {
	trace   string
	comment *report.WrittenComment
	locked  *lockedReport
	earlier earlier
}

// scope keeps requests with the same key apart, because a key is one report's:
// see createChange.scope.
func (c *commentChange) scope() scope { return scope{subject: c.comment.ReportID} }

func (c *commentChange) read(r *readBatch) {
	c.locked = r.lock(c.comment.ReportID, report.Scope{})
	c.earlier.read(&r.others)
}

func (c *commentChange) write(w *writeBatch) error {
	if err := c.locked.checkPublic(); err != nil {
		return err
	}
	if done, err := c.earlier.done(w); err != nil || done {
		return err
	}
	// The reporter is notified of their own comments, too: a message without a
	// recipient would give them away as the author.
	if err := w.enqueueFor(reportCommented(&c.locked.Filing, c.comment.CreatedAt), c.locked.Reporter.ID, c.trace); err != nil {
		return err
	}
	c.earlier.keep(&w.others)
	w.others.Queue(`insert into comments (id, report_id, text, anonymous, created_at) values ($1, $2, $3, $4, $5)`,
		c.comment.ID, c.comment.ReportID, c.comment.Text, c.comment.Anonymous, c.comment.CreatedAt)
	w.others.Queue(`insert into commenters (comment_id, commenter_id, commenter_name) values ($1, $2, $3)`,
		c.comment.ID, c.comment.Author.ID, c.comment.Author.Name)
	return nil
}

// List returns a page of a report's comments as reader may see them, oldest
// first: those after the cursor, or the first ones without one. Officials and
// its author also see a hidden comment.
func (s *Comments) List(ctx context.Context, reportID uuid.UUID, after *report.Cursor, limit int, reader report.User) (report.CommentPage, error) {
	q := query{args: []any{reportID}}
	visible := `
		from reports r left join reporters p on p.report_id = r.id
		where r.id = $1 and ` + q.within(reader.Reach(report.Read), "p")
	var page report.CommentPage
	err := s.db.pool.QueryRow(ctx, `
		select (select count(*) from comments where report_id = $1 and hidden_reason is null)`+visible, q.args...).Scan(&page.Count)
	if err = pgpool.Found(err, "count comments", report.ErrNotFound); err != nil {
		return page, err
	}
	var at *time.Time
	var last uuid.UUID
	if after != nil {
		at, last = new(time.UnixMicro(after.Key).UTC()), after.ID
	}
	seesHidden := q.within(reader.Reach(report.Handle), "")
	author, from, lastID, size := q.arg(reader.ID), q.arg(at), q.arg(last), q.arg(limit+1)
	// The report may have been hidden since the count.
	page.Comments, err = pgpool.Collect(ctx, s.db.pool, "select comments", func(row pgx.CollectableRow) (v report.CommentView, err error) {
		return v, row.Scan(&v.ID, &v.ReportID, &v.Text, &v.Anonymous, utc{&v.CreatedAt}, &v.HiddenReason, &v.AuthorName, &v.Mine)
	}, `
		select c.id, c.report_id, c.text, c.anonymous, c.created_at, coalesce(c.hidden_reason, ''),
			case when c.anonymous then '' else coalesce(w.commenter_name, '') end, coalesce(w.commenter_id = `+author+`, false)
		from comments c join reports r on r.id = c.report_id left join commenters w on w.comment_id = c.id
		where c.report_id = $1 and (c.hidden_reason is null or w.commenter_id = `+author+` or `+seesHidden+`)
			and (`+from+`::timestamptz is null or (c.created_at, c.id) > (`+from+`, `+lastID+`))
			and exists (select `+visible+`)
		order by c.created_at, c.id limit `+size, q.args...)
	if err != nil {
		return page, err
	}
	if len(page.Comments) > limit {
		page.Comments = page.Comments[:limit]
		page.Next = page.Comments[limit-1].Cursor()
	}
	return page, nil
}

// Hide hides a comment from everybody but officials and its author. A hidden
// one stays hidden.
func (s *Comments) Hide(ctx context.Context, reportID, id uuid.UUID, reason string, by report.Official) error {
	return s.moderate(ctx, reportID, id, report.HidComment, reason, by)
}

// Show shows a hidden comment to everybody again.
func (s *Comments) Show(ctx context.Context, reportID, id uuid.UUID, by report.Official) error {
	return s.moderate(ctx, reportID, id, report.ShowedComment, "", by)
}

// moderate sets the reason for which a comment is hidden; an empty one shows
// it.
func (s *Comments) moderate(ctx context.Context, reportID, id uuid.UUID, act report.ActKind, reason string, by report.Official) error {
	return s.db.act(ctx, reportID, by, report.Moderate, func(tx pgx.Tx, l *lockedReport, w *writeBatch) error {
		var before string
		err := tx.QueryRow(ctx, `select coalesce(hidden_reason, '') from comments where id = $1 and report_id = $2`, id, reportID).Scan(&before)
		if err = pgpool.Found(err, "select comment", report.ErrNoComment); err != nil {
			return err
		}
		if (before == "") == (reason == "") {
			return nil
		}
		w.others.Queue(`update comments set hidden_reason = nullif($2::text, '') where id = $1`, id, reason)
		w.record(actRow{reportID: reportID, by: by, kind: act, text: cmp.Or(reason, before), comment: id})
		if l.HiddenReason != "" { // nothing is announced of a hidden report
			return nil
		}
		return w.enqueueFor(reportCommented(&l.Filing, time.Now()), "", service.TraceFrom(ctx))
	})
}

// See notes that officials have seen a comment and those before it. Nobody else
// learns of it.
func (s *Comments) See(ctx context.Context, reportID, id uuid.UUID, by report.User) error {
	if err := s.db.may(ctx, by, report.Handle, reportID); err != nil {
		return err
	}
	found, err := pgpool.Value[bool](ctx, s.db.pool, "note that comments are seen", `
		with last as (
			select created_at, id from comments where id = $1 and report_id = $2
		), seen as (
			update comments c set seen = true from last
			where c.report_id = $2 and not c.seen and (c.created_at, c.id) <= (last.created_at, last.id)
		)
		select exists (select from last)`, id, reportID)
	if err == nil && !found {
		return report.ErrNoComment
	}
	return err
}
