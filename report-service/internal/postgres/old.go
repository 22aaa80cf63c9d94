package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Old is what is done with reports that were closed long ago. A report without words has
// nothing left that anybody wrote, and nothing that leads to a person.
type Old struct{ db *DB }

// NewOld returns that of the reports in db.
func NewOld(db *DB) *Old { return &Old{db} }

// oldSQL are reports r that have words, and were closed.
const oldSQL = `r.status in ('resolved', 'rejected') and r.words_removed_at is null`

// FirstMonth returns the first month in which a report was closed that still has words. ok
// is false if there is none before a time.
func (s *Old) FirstMonth(ctx context.Context, tx pgx.Tx, before time.Time) (m report.YearMonth, ok bool, err error) {
	closed, err := pgpool.Value[*time.Time](ctx, tx, "look for old reports", `select min(r.updated_at) from reports r where `+oldSQL+` and r.created_at < $1`, before)
	if err != nil || closed == nil || !closed.Before(before) {
		return "", false, err
	}
	return report.YearMonthOf(*closed), true, nil
}

// A Record is a report as the city's archive has it, in JSON. It has no reporter, and of
// nobody who wrote something the name.
type Record struct {
	ID   uuid.UUID
	JSON json.RawMessage
}

// recordSQL is the JSON of a Record of the report r.
var recordSQL = `jsonb_build_object('id', r.id, 'title', r.title, 'description', r.description, 'category', c.name,
	'area', ` + areaSQL + `, 'latitude', r.latitude, 'longitude', r.longitude, 'address', r.address, 'asset', ` + assetKeySQL + `,
	'visibility', r.visibility, 'hidden_reason', ` + hiddenReasonSQL + `, 'status', r.status, 'score', r.score,
	'created_at', r.created_at, 'closed_at', r.updated_at, 'duplicate_of', r.duplicate_of,
	'photos', (select count(*) from photos p where p.report_id = r.id and p.state = 'ready'),
	'history', coalesce((select jsonb_agg(jsonb_build_object('status', h.to_status, 'note', h.note, 'at', h.changed_at) order by h.id)
		from status_history h where h.report_id = r.id), '[]'),
	'comments', coalesce((select jsonb_agg(jsonb_build_object('text', m.text, 'hidden_reason', coalesce(m.hidden_reason, ''), 'at', m.created_at) order by m.created_at, m.id)
		from comments m where m.report_id = r.id), '[]'),
	'notes', coalesce((select jsonb_agg(jsonb_build_object('action', a.action, 'text', a.text, 'at', a.at) order by a.id)
		from report_acts a where a.report_id = r.id and a.text <> ''), '[]'),
	'questions', coalesce((select jsonb_agg(jsonb_build_object('text', q.text, 'at', q.asked_at, 'answer', coalesce(w.text, ''), 'answered_at', w.answered_at) order by q.asked_at, q.id)
		from questions q left join answers w on w.question_id = q.id where q.report_id = r.id), '[]'),
	'verdicts', coalesce((select jsonb_agg(jsonb_build_object('fixed', v.fixed, 'text', v.text, 'at', v.given_at) order by v.version)
		from verdicts v where v.report_id = r.id and v.fixed is not null), '[]'))`

// Lock returns up to limit reports with words that were closed in a month, in the order of
// their ids. Nobody changes them until the end of the transaction.
func (s *Old) Lock(ctx context.Context, tx pgx.Tx, m report.YearMonth, limit int) ([]Record, error) {
	from, to, err := m.Bounds()
	if err != nil {
		return nil, err
	}
	// Locked first, and read then: what was committed while the lock was waited for counts.
	ids, err := pgpool.Collect(ctx, tx, "lock old reports", pgx.RowTo[uuid.UUID], `
		select r.id from reports r where `+oldSQL+` and r.updated_at >= $1 and r.updated_at < $2 and r.created_at < $2
		order by r.id limit $3 for no key update`, from, to, limit)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return pgpool.Collect(ctx, tx, "read old reports", pgx.RowToStructByPos[Record], `
		select r.id, `+recordSQL+` from reports r join categories c on c.id = r.category_id where r.id = any($1) order by r.id`, ids)
}

// Archived returns which of some reports have no words any more.
func (s *Old) Archived(ctx context.Context, tx pgx.Tx, ids []uuid.UUID) ([]uuid.UUID, error) {
	return pgpool.Collect(ctx, tx, "look for archived reports", pgx.RowTo[uuid.UUID],
		`select id from reports where id = any($1) and words_removed_at is not null`, ids)
}

// removals delete what people wrote about the reports $1, and what leads to people. The
// files of photos are deleted by photo-worker. Votes count as before, each by nobody, and
// a correction of the place would tell it.
var removals = []string{
	`delete from idempotency_keys k using comments m
		where m.report_id = any($1) and m.created_at > now() - interval '25 hours' and convert_from(k.response_body, 'UTF8')::jsonb ->> 'id' = m.id::text`,
	`update photos set state = 'removed', changed_at = now() where report_id = any($1) and state <> 'removed'`,
	`update photos set alt = '' where report_id = any($1) and alt <> ''`,
	`delete from comments where report_id = any($1)`,
	`delete from questions where report_id = any($1)`,
	`update verdicts set text = '', earlier = '[]' where report_id = any($1) and (text <> '' or earlier <> '[]')`,
	`delete from report_acts where report_id = any($1)`,
	`delete from counter_reports where report_id = any($1)`,
	`delete from external_refs where report_id = any($1)`,
	`delete from firm_jobs where report_id = any($1)`,
	`delete from abuse_reports where report_id = any($1)`,
	`delete from duplicate_ends where original = any($1)`,
	`delete from status_history where report_id = any($1) and correction is not null`,
	`update status_history set note = '', changed_by = null where report_id = any($1) and (note <> '' or changed_by is not null)`,
	`update votes set voter_id = 'erased:' || gen_random_uuid() where report_id = any($1) and voter_id not like 'erased:%'`,
	`update reporters set reporter_id = 'erased:' || gen_random_uuid(), reporter_name = '' where report_id = any($1)`,
}

// RemoveWords takes the words from reports that are locked, and announces it.
func (s *Old) RemoveWords(ctx context.Context, tx pgx.Tx, ids []uuid.UUID) error {
	w := s.db.newWrites()
	for _, id := range ids {
		l, err := lockReport(ctx, tx, id, report.Scope{})
		if err != nil {
			return err
		}
		notes, err := pgpool.Collect(ctx, tx, "select notes", pgx.RowTo[int64],
			`select report_version from status_history where report_id = $1 and (note <> '' or redacted_at is not null) order by id`, id)
		if err != nil {
			return err
		}
		l.RemoveWords()
		m := reportModerated(&l.Filing, event.WordsRemoved, notes)
		m.Note, m.Timestamp = "", time.Now().Unix()
		if err := w.enqueueFor(m, "", ""); err != nil { // nobody is notified
			return err
		}
		// By itself, since the time of its last change stays.
		w.others.Queue(`
			update reports r set version = $5, title = $2, description = '', address = '', asset_id = 0, latitude = $3, longitude = $4, privacy_level = 'anonymous',
				hidden_reason = case when `+unhiddenSQL+` then hidden_reason else 'hidden' end, assignee_id = null, not_answered = false, disputed_at = null, words_removed_at = now()
			where id = $1`, id, l.Title, latitude(l.Position), longitude(l.Position), l.Version)
	}
	for _, sql := range removals {
		w.others.Queue(sql, ids)
	}
	return w.send(ctx, tx)
}
