package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// endsInterval is about how often closed originals are searched whose
// duplicates did not follow at once, because the replica that closed them died.
// followTimeout bounds one search.
const (
	endsInterval  = 30 * time.Second
	followTimeout = 20 * time.Second
)

// Duplicates are reports about the same problem as another report, the
// original.
type Duplicates struct {
	db      *DB
	reports *Reports
}

// NewDuplicates returns the duplicates in db.
func NewDuplicates(db *DB) *Duplicates { return &Duplicates{db, NewReports(db)} }

// Set marks a report as a duplicate of the original, or with uuid.Nil as none.
// If the original is closed the report follows it soon.
func (s *Duplicates) Set(ctx context.Context, id, original uuid.UUID, by report.Official) error {
	err := s.db.transaction(ctx, func(tx pgx.Tx, w *writeBatch) error {
		// Both rows are locked, always in the same order, so that until the
		// commit the original is not closed and neither gets an original of its
		// own.
		locked, err := pgpool.Collect(ctx, tx, "lock reports", pgx.RowToStructByPos[report.Relation], `
			select r.id, r.status, r.duplicate_of, exists (select from reports d where d.duplicate_of = r.id), r.visibility = 'officials'
			from reports r where r.id = any($1) and r.withdrawn_at is null order by r.id for no key update`, []uuid.UUID{id, original})
		if err != nil {
			return err
		}
		if !by.Scope.City() {
			for _, other := range []uuid.UUID{id, original} {
				l, err := lockReport(ctx, tx, other, by.Scope)
				if err == nil {
					err = report.May(by.User(), report.Handle, &l.Filing)
				}
				switch {
				case other == uuid.Nil, err == nil:
				case other == id:
					return err
				case fault.KindOf(err) == fault.NotFound:
					locked = slices.DeleteFunc(locked, func(r report.Relation) bool { return r.ID == other })
				default:
					return fault.NewInvalid("/original", "must be a report of a department of yours")
				}
			}
		}
		changed, closed, err := report.CheckDuplicate(id, original, locked)
		if err != nil || !changed {
			return err
		}
		kind := report.MarkedDuplicate
		if original == uuid.Nil {
			kind = report.UnmarkedDuplicate
		}
		w.others.Queue(`update reports set duplicate_of = $2 where id = $1`, id, optionalKey(original))
		w.record(actRow{reportID: id, by: by, kind: kind, original: original})
		if closed {
			w.others.Queue(`
				insert into duplicate_ends (original, status, note, closed_by)
				select report_id, to_status, note, coalesce(changed_by, $2::text)
				from status_history where report_id = $1 and from_status <> to_status order by id desc limit 1 -- replies close nothing
				on conflict do nothing`, original, by.ID)
		}
		return nil
	})
	if err == nil {
		s.db.follow()
	}
	return err
}

// likelySQL selects open reports t that may be marked as duplicates, each with those before it
// that may be their originals. reports_alike has as many of these as are open. Where hundreds
// are open around one place, some of them are enough: a page has twenty such questions.
const likelySQL = `
	select t.id, t.title, t.description, t.latitude, t.longitude, t.asset_id, t.created_at,
		o.id, o.title, o.description, o.latitude, o.longitude, o.asset_id, o.created_at
	from reports t cross join lateral (
		select r.* from (
			select r.* from reports r
			where r.category_id = t.category_id and r.latitude between t.latitude - $2 and t.latitude + $2 and r.longitude between t.longitude - $2 * 3 and t.longitude + $2 * 3
				and r.status in ('pending', 'in_progress') and r.hidden_reason is null and r.duplicate_of is null
				and r.id <> t.id and r.created_at <= t.created_at and r.created_at > t.created_at - $3::interval
			order by r.latitude limit 300) r
		order by r.created_at desc limit 30) o
	where t.id = any($1) and t.status in ('pending', 'in_progress') and t.duplicate_of is null and t.withdrawn_at is null
		and not exists (select from reports d where d.duplicate_of = t.id)
	order by t.id, o.created_at, o.id`

// MarkLikely marks the tasks that are probably duplicates of older reports.
func (s *Workbench) MarkLikely(ctx context.Context, tasks []report.Task) error {
	ids := array(tasks, func(t report.Task) pgtype.UUID { return key(t.ID) })
	var task, older report.Likeness
	places := func(l *report.Likeness) []any {
		return []any{&l.ID, &l.Title, &l.Description, &l.Position.Latitude, &l.Position.Longitude, &l.Asset, &l.CreatedAt}
	}
	subjects, originals := make(map[uuid.UUID]report.Likeness), make(map[uuid.UUID][]report.Likeness)
	err := pgpool.ForEach(ctx, s.db.pool, "select likely duplicates", append(places(&task), places(&older)...), func() error {
		subjects[task.ID] = task
		originals[task.ID] = append(originals[task.ID], older)
		return nil
	}, likelySQL, ids, report.LikelyMetres/metresPerDegree, report.LikelyTime)
	for i, t := range tasks {
		tasks[i].Perhaps = subjects[t.ID].PerhapsOf(originals[t.ID])
	}
	return err
}

// follow wakes Duplicates.Run. It never blocks.
func (db *DB) follow() {
	select {
	case db.ends <- struct{}{}:
	default: // it is awake already
	}
}

// Run moves duplicates to the status in which their original was closed, each
// with an event of its own, until ctx ends. Any number of replicas may run it:
// a report that already has the status stays as it is.
func (s *Duplicates) Run(ctx context.Context, log zerolog.Logger) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.db.ends:
		case <-timer.C:
		}
		if err := s.end(ctx); err != nil && ctx.Err() == nil {
			log.Warn().Str("error", pgpool.LogText(err)).Msg("moving duplicates failed, will retry")
		}
		timer.Reset(backoff.Jitter(endsInterval))
	}
}

// end moves the duplicates of all closed originals. An original is done when
// each of its duplicates is closed: if this process dies before, another
// continues.
func (s *Duplicates) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	ends, err := pgpool.Collect(ctx, s.db.pool, "select ends", pgx.RowToStructByPos[struct {
		Original   uuid.UUID
		Status     report.Status
		Note, By   string
		Duplicates []uuid.UUID
	}], `
		select e.original, e.status, e.note, e.closed_by,
			array(select d.id from reports d where d.duplicate_of = e.original)
		from duplicate_ends e`)
	if err != nil {
		return err
	}
	for _, end := range ends {
		for _, id := range end.Duplicates {
			_, err := s.reports.Move(ctx, id, report.Move{To: end.Status, Note: end.Note, By: end.By, Follows: true})
			refused, ok := errors.AsType[*fault.Error](err)
			// A duplicate that was closed otherwise, or deleted, is done.
			if err != nil && (!ok || refused.Kind == fault.Unavailable) {
				return fmt.Errorf("move duplicate: %w", err)
			}
		}
		// Another end of the same original may have replaced this one.
		err := pgpool.Exec(ctx, s.db.pool, "delete end", `
			delete from duplicate_ends where original = $1 and status = $2 and note = $3`, end.Original, end.Status, end.Note)
		if err != nil {
			return err
		}
	}
	return nil
}
