package postgres

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/calendar"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Move brings a report to another status, and returns it as the official sees
// it afterwards. A report that already has the status stays as it is, without
// an event. With m.Idempotent it is moved at most once per key, as Create does; a repetition
// returns it as it is then.
func (s *Reports) Move(ctx context.Context, id uuid.UUID, m report.Move) (report.View, error) {
	c, err := s.db.newStatusChange(ctx, id, m)
	if err != nil {
		return report.View{}, err
	}
	c.view = new(report.View)
	if err := s.db.committer.do(ctx, c); err != nil {
		return report.View{}, err
	}
	if c.hasDuplicates {
		s.db.follow()
	}
	return *c.view, nil
}

func (db *DB) newStatusChange(ctx context.Context, id uuid.UUID, m report.Move) (*statusChange, error) {
	days, err := db.city.Calendar(ctx)
	if err != nil {
		return nil, err
	}
	categories, err := db.city.CategoriesByID(ctx)
	if err != nil {
		return nil, err
	}
	return &statusChange{
		trace: service.TraceFrom(ctx), id: id, move: m, calendar: days, categories: categories, resolutions: db.rules.Resolutions,
		earlier: db.earlierThan(m.Idempotent),
	}, nil
}

// A statusChange moves a report, or leaves its status and adds a reply.
type statusChange struct {
	trace  string
	id     uuid.UUID
	move   report.Move
	reply  *report.Reply // nil for a move
	locked *lockedReport
	view   *report.View // the report as the official sees it afterwards; nil if nobody reads it

	earlier earlier

	calendar    calendar.Calendar
	categories  map[int32]report.Category
	resolutions report.Resolutions

	version       int64 // that the entry made; 0 without an entry
	hasDuplicates bool  // that follow, because the report was closed
}

// scope is the whole report, because the returned view must not show later
// changes.
func (c *statusChange) scope() scope { return scope{subject: c.id} }

func (c *statusChange) read(r *readBatch) {
	c.locked = r.lock(c.id, c.move.Scope)
	c.earlier.read(&r.others)
	if c.resolutions.NeedPhoto && c.move.To == report.Resolved && !c.move.Follows {
		r.others.Queue(`
			select not exists (select from photos p where p.report_id = $1 and p.purpose = 'after' and p.state in ('checking', 'held', 'ready')
				and p.created_at > coalesce((select max(changed_at) from status_history where report_id = $1 and from_status = 'resolved' and to_status <> 'resolved'), '-infinity'))`, c.id).
			QueryRow(func(row pgx.Row) error { return row.Scan(&c.move.NoPhoto) })
	}
}

func (c *statusChange) write(w *writeBatch) error {
	if err := c.locked.checkFor(c.move.Scope); err != nil {
		return err
	}
	done, err := c.earlier.done(w)
	if err != nil {
		return err
	}
	if done {
		c.queueView(w)
		return nil
	}
	filing := &c.locked.Filing
	entry, ok, err := c.decide(filing)
	if err != nil {
		return err
	}
	c.earlier.keep(&w.others)
	c.version = entry.Version
	if ok {
		c.hasDuplicates = false
		message := statusUpdate(filing, entry, c.locked.status)
		if entry.To == report.Resolved && !entry.IsReply() {
			message.VerdictUntil = c.ask(w, entry)
		}
		if err := w.enqueue(message, c.trace); err != nil {
			return err
		}
		c.locked.status = w.announced()
		w.history = append(w.history, historyRow{c.id, entry})
		w.update(c.locked)
		if c.move.ByName != "" {
			w.others.Queue(namedOfficialSQL, c.move.By, c.move.ByName)
		}
		switch {
		case entry.IsReply(): // the work is where it was
		case entry.To.Closed():
			stopClock(&w.others, c.id)
			w.others.Queue(endQuestionSQL, c.id, string(report.QuestionWithdrawn))
			w.others.Queue(endJobSQL, c.id)
			w.others.Queue(`
				insert into duplicate_ends (original, status, note, closed_by)
				select $1::uuid, $2::text, $3::text, $4::text where exists (select from reports where duplicate_of = $1)
				on conflict (original) do update set status = excluded.status, note = excluded.note, closed_by = excluded.closed_by`,
				c.id, string(entry.To), entry.Note, entry.By).
				Exec(func(tag pgconn.CommandTag) error {
					c.hasDuplicates = tag.RowsAffected() > 0
					return nil
				})
		case entry.From.Closed(): // duplicates that have not followed yet no longer need to
			w.others.Queue(`delete from duplicate_ends where original = $1`, c.id)
			endVerdicts(&w.others, c.id)
			if c.locked.disputed { // its clock began with the dispute
				c.locked.disputed = false
				w.others.Queue(`update reports set disputed_at = null where id = $1`, c.id)
				break
			}
			queueDeadline(&w.others, c.id, c.calendar.Begin(c.categories[filing.Category.ID].Target, entry.At))
		}
	} else {
		w.doneBefore = true
	}
	c.queueView(w)
	return nil
}

func (c *statusChange) decide(f *report.Filing) (entry report.Change, ok bool, err error) {
	if c.reply != nil {
		return f.Reply(*c.reply), true, nil
	}
	return f.Move(c.move, time.Now())
}

func (c *statusChange) queueView(w *writeBatch) {
	if c.view != nil {
		queueView(&w.others, c.move.By, c.id, c.view)
	}
}

// Update does what a connection's update by Open311 says, at most once for the hash of the
// update's id for as long as the report exists. It returns the report's version after the
// entry in its history, also to a repetition; 0 if there was nothing to do.
func (s *Reports) Update(ctx context.Context, id uuid.UUID, m report.Move, update [sha256.Size]byte) (version int64, err error) {
	status, err := s.db.newStatusChange(ctx, id, m)
	if err != nil {
		return 0, err
	}
	c := &updateChange{statusChange: status, update: update}
	if err := s.db.committer.do(ctx, c); err != nil {
		return 0, err
	}
	if c.hasDuplicates {
		s.db.follow()
	}
	return c.version, nil
}

type updateChange struct {
	*statusChange
	update [sha256.Size]byte
	before bool // it was done before
}

// read needs no lock but the report's, since an id counts for one report.
func (c *updateChange) read(r *readBatch) {
	c.statusChange.read(r)
	r.others.Queue(`select report_version from connection_updates where report_id = $1 and connection_id = $2 and update_hash = $3`, c.id, c.move.By, c.update[:]).
		QueryRow(optional(&c.before, &c.version))
}

func (c *updateChange) write(w *writeBatch) error {
	if c.before {
		w.doneBefore = true
		return c.locked.checkFor(c.move.Scope)
	}
	if err := c.statusChange.write(w); err != nil {
		return err
	}
	w.others.Queue(`insert into connection_updates (report_id, connection_id, update_hash, report_version) values ($1, $2, $3, $4)`, c.id, c.move.By, c.update[:], c.version)
	return nil
}

// ask asks the reporter whether the report is fixed that entry has resolved, and returns
// until when in Unix seconds; 0 if nobody is asked.
func (c *statusChange) ask(w *writeBatch, entry report.Change) int64 {
	if c.resolutions.VerdictDays == 0 || c.locked.Reporter.ID == "" {
		return 0
	}
	until := c.calendar.EndOfWorkday(entry.At, c.resolutions.VerdictDays)
	w.others.Queue(`insert into verdicts (report_id, version, until) values ($1, $2, $3)`, c.id, entry.Version, until)
	return until.Unix()
}

// Reply adds an official's reply to a report's history, together with the
// event that announces it. With idempotent it does so at most once per key, as
// Create does.
func (s *Reports) Reply(ctx context.Context, id uuid.UUID, reply report.Reply, idempotent *report.Idempotent) (earlier report.StoredResponse, err error) {
	c := &statusChange{
		trace: service.TraceFrom(ctx), id: id, reply: &reply, earlier: s.db.earlierThan(idempotent),
		move: report.Move{By: reply.By, ByName: reply.ByName, Scope: reply.Scope},
	}
	if err := s.db.committer.do(ctx, c); err != nil {
		return nil, err
	}
	return c.earlier.response, nil
}
