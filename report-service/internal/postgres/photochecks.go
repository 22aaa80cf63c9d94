package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// An Unchecked is a photo that the worker has to look at.
type Unchecked struct {
	Key      string // of what was uploaded
	Checking bool   // false if nobody waits for the verdict any more
	Uploader string // the id of who is told how far it is; empty for nobody
}

// PhotoChecks is the photo worker's side of Photos.
type PhotoChecks struct{ db *DB }

// NewPhotoChecks returns the checks of the photos in db.
func NewPhotoChecks(db *DB) *PhotoChecks { return &PhotoChecks{db} }

// UploadToCheck returns what was uploaded as a photo. The uploader is the
// report's reporter, or the official whose act it was.
func (s *PhotoChecks) UploadToCheck(ctx context.Context, photo uuid.UUID) (Unchecked, error) {
	var u Unchecked
	err := s.db.pool.QueryRow(ctx, `
		select coalesce(p.upload, ''), p.state = 'checking', coalesce(
			case when p.official then (
				select a.official_id from report_acts a
				where a.report_id = p.report_id and a.photo_id = p.id and a.action = 'add_photo' limit 1)
			else (select o.reporter_id from reporters o where o.report_id = p.report_id) end, '')
		from photos p where p.id = $1`, photo).Scan(&u.Key, &u.Checking, &u.Uploader)
	if errors.Is(err, pgx.ErrNoRows) {
		return Unchecked{}, nil
	}
	if err != nil {
		return Unchecked{}, fmt.Errorf("select photo: %w", err)
	}
	return u, nil
}

// Judge writes what the worker found about the photo of a message from queue,
// together with who is told of it and with the note that the message had its
// effect. Seen is true if it had it before. Kept is true if the pictures are to
// stay: of a photo that was refused, or removed meanwhile, they are not.
func (s *PhotoChecks) Judge(ctx context.Context, queue string, m consumer.Message, v report.Verdict) (seen, kept bool, err error) {
	uploaded := m.Event.(*event.PhotoUploaded)
	trace, _ := m.Headers[event.TraceHeader].(string)
	err = s.db.transaction(ctx, func(tx pgx.Tx, w *writeBatch) error {
		fresh, err := consumer.Note(ctx, tx, queue, []consumer.Message{m})
		if seen = err == nil && len(fresh) == 0; err != nil || seen {
			return err
		}
		kept, err = judge(ctx, tx, w, uploaded.ReportID, uploaded.PhotoID, v, trace)
		return err
	})
	return seen, kept, err
}

func judge(ctx context.Context, tx pgx.Tx, w *writeBatch, reportID, photo uuid.UUID, v report.Verdict, trace string) (kept bool, err error) {
	l, err := lockReport(ctx, tx, reportID)
	if errors.Is(err, report.ErrNotFound) { // and its photos with it
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p, err := lockPhoto(ctx, tx, reportID, photo)
	if errors.Is(err, report.ErrNoPhoto) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if p.State != report.PhotoChecking {
		return p.State == report.PhotoHeld || p.State == report.PhotoReady, nil
	}
	state := p.Judge(v)
	w.others.Queue(`
		update photos set state = $2, reason = $3, width = nullif($4, 0), height = nullif($5, 0), changed_at = now() where id = $1`,
		photo, string(state), string(v.Reason), v.Width, v.Height)
	switch {
	case l.HiddenReason != "": // nothing of the report is announced: who sees it asks for its photos
	case state == report.PhotoReady:
		l.ShowPhoto(time.Now())
		w.update(l)
		err = w.enqueue(photoReady(&l.Filing, photo), l.Reporter.ID, trace)
	case state == report.PhotoRefused:
		uploader := l.Reporter.ID
		if p.Official { // who asks for the photos of the report finds the reason
			uploader = ""
		}
		err = w.enqueue(photoRefused(&l.Filing, photo, v.Reason, time.Now()), uploader, trace)
	}
	if err != nil {
		return false, err
	}
	return state != report.PhotoRefused, nil
}

// A Leftover is a photo of which files are left that nobody needs any more.
type Leftover struct {
	Photo    uuid.UUID
	Upload   string // its key; empty if it is gone
	Pictures bool   // whether its pictures are to go, too
}

// Leftovers returns photos of which files are to be deleted: what was uploaded,
// once there is a verdict; and everything of those that nobody sees any more.
func (s *PhotoChecks) Leftovers(ctx context.Context, limit int) ([]Leftover, error) {
	return collect(ctx, s.db.pool, "select leftovers", pgx.RowToStructByPos[Leftover], `
		(select id, upload, false from photos where upload is not null and state in ('held', 'ready') limit $1)
		union all
		(select id, coalesce(upload, ''), true from photos where state in ('refused', 'removed') and not cleaned order by changed_at limit $1)`, limit)
}

// Cleaned notes that the files of a leftover are gone.
func (s *PhotoChecks) Cleaned(ctx context.Context, l Leftover) error {
	_, err := s.db.pool.Exec(ctx, `
		update photos set upload = null, cleaned = $2 and state in ('refused', 'removed')
		where id = $1 and state <> 'checking'`, l.Photo, l.Pictures)
	if err != nil {
		return fmt.Errorf("update photo: %w", err)
	}
	return nil
}

// UnknownUploads returns those of the keys under which nothing was uploaded that
// a photo has.
func (s *PhotoChecks) UnknownUploads(ctx context.Context, keys []string) ([]string, error) {
	return s.unknown(ctx, `
		select k from unnest($1::text[]) k where not exists (select from photos where upload = k)`, keys)
}

// UnknownPhotos returns those of the ids that belong to no photo which has
// pictures, or may come to have some.
func (s *PhotoChecks) UnknownPhotos(ctx context.Context, ids []string) ([]string, error) {
	return s.unknown(ctx, `
		select i from unnest($1::text[]) i
		where not exists (select from photos where id = i::uuid and state in ('checking', 'held', 'ready'))`, ids)
}

func (s *PhotoChecks) unknown(ctx context.Context, sql string, names []string) ([]string, error) {
	return collect(ctx, s.db.pool, "compare files", pgx.RowTo[string], sql, names)
}

// RefuseDead refuses the photos whose message became a dead letter of queue,
// because the worker dies of them for instance, and closes those letters. It
// returns how many there were.
func (s *PhotoChecks) RefuseDead(ctx context.Context, queue string) (refused int, err error) {
	dead, err := collect(ctx, s.db.pool, "select dead letters", pgx.RowToStructByPos[struct {
		Letter        int64
		Report, Photo uuid.UUID
	}], `
		select l.id, p.report_id, p.id from dead_letters l
		join photos p on p.state = 'checking' and position(p.id::text in encode(l.body, 'escape')) > 0
		where l.queue = $1 and l.state = 'open'`, queue)
	if err != nil {
		return 0, err
	}
	for _, d := range dead {
		err := s.db.transaction(ctx, func(tx pgx.Tx, w *writeBatch) error {
			_, err := tx.Exec(ctx, `
				update dead_letters set state = 'discarded', closed_at = now(), close_reason = 'the photo was refused'
				where id = $1 and state = 'open'`, d.Letter)
			if err != nil {
				return fmt.Errorf("close dead letter: %w", err)
			}
			_, err = judge(ctx, tx, w, d.Report, d.Photo, report.Verdict{Reason: report.PhotoFailed}, "")
			return err
		})
		if err != nil {
			return refused, err
		}
		refused++
	}
	return refused, nil
}
