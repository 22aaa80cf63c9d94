package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// An Unchecked is a photo that the worker has to check.
type Unchecked struct {
	Key      string // of the upload
	Checking bool   // false if no verdict is needed
	Uploader string // the id of the user who sees the progress; empty for nobody
}

// PhotoChecks is the photo worker's side of Photos.
type PhotoChecks struct {
	db  *DB
	ids photoIDs
}

// NewPhotoChecks returns the checks of the photos in db.
func NewPhotoChecks(db *DB) *PhotoChecks { return &PhotoChecks{db, newPhotoIDs(db)} }

// UploadToCheck returns the upload of a photo, the zero value if it is deleted. The uploader is the report's
// reporter, or the official who added it.
func (s *PhotoChecks) UploadToCheck(ctx context.Context, photo uuid.UUID) (Unchecked, error) {
	return pgpool.One(ctx, s.db.pool, "select photo", nil, pgx.RowToStructByPos[Unchecked], `
		select coalesce(p.upload, ''), p.state = 'checking', coalesce(
			case when p.official then (
				select a.official_id from report_acts a
				where a.report_id = p.report_id and a.photo_id = p.id and a.action = 'add_photo' limit 1)
			else (select o.reporter_id from reporters o where o.report_id = p.report_id) end, '')
		from photos p where p.id = $1`, photo)
}

// Judge writes the worker's verdict on the photo of a message from queue,
// together with its announcement and the record that the message was handled.
// Seen is true if the message was handled before. Kept is true if the pictures
// are to stay: those of a photo that was refused, or removed while it was
// checked, are not.
func (s *PhotoChecks) Judge(ctx context.Context, queue string, m consumer.Message, v report.Judgement) (seen, kept bool, err error) {
	uploaded := m.Event.(*event.PhotoUploaded)
	trace, _ := m.Headers[event.TraceHeader].(string)
	err = s.db.transaction(ctx, func(tx pgx.Tx, w *writeBatch) error {
		fresh, err := consumer.Note(ctx, tx, queue, []consumer.Message{m})
		if seen = err == nil && len(fresh) == 0; err != nil || seen {
			return err
		}
		kept, err = s.judge(ctx, tx, w, uploaded.ReportID, uploaded.PhotoID, v, trace)
		return err
	})
	return seen, kept, err
}

func (s *PhotoChecks) judge(ctx context.Context, tx pgx.Tx, w *writeBatch, reportID, photo uuid.UUID, v report.Judgement, trace string) (kept bool, err error) {
	l, err := lockReport(ctx, tx, reportID, report.Scope{})
	var p report.Photo
	if err == nil {
		p, err = s.ids.lock(ctx, tx, reportID, photo)
	}
	switch {
	case fault.KindOf(err) == fault.NotFound: // deleted
		return false, nil
	case err != nil:
		return false, err
	}
	if p.State != report.PhotoChecking {
		return p.State == report.PhotoHeld || p.State == report.PhotoReady, nil
	}
	state := p.Judge(v)
	w.others.Queue(`
		update photos set state = $2, reason = $3, width = nullif($4, 0), height = nullif($5, 0), changed_at = now() where id = $1`,
		p.ID, string(state), string(v.Reason), v.Width, v.Height)
	switch {
	case l.HiddenReason != "": // nothing about the report is announced: its readers list the photos
	case state == report.PhotoReady:
		l.ShowPhoto(time.Now())
		w.update(l)
		err = w.enqueueFor(photoReady(&l.Filing, p.ID), l.Reporter.ID, trace)
	case state == report.PhotoRefused:
		uploader := l.Reporter.ID
		if p.Official { // the list of the report's photos has the reason
			uploader = ""
		}
		err = w.enqueueFor(photoRefused(&l.Filing, p.ID, v.Reason, time.Now()), uploader, trace)
	}
	if err != nil {
		return false, err
	}
	return state != report.PhotoRefused, nil
}

// A Leftover is a photo with files that are no longer needed.
type Leftover struct {
	Photo    uuid.UUID
	Upload   string // its key; empty if it is deleted
	Pictures bool   // whether its pictures are to be deleted, too
}

// Leftovers returns photos with files to delete: the upload once there is a
// verdict, and all files of refused and removed photos.
func (s *PhotoChecks) Leftovers(ctx context.Context, limit int) ([]Leftover, error) {
	return pgpool.Collect(ctx, s.db.pool, "select leftovers", pgx.RowToStructByPos[Leftover], `
		(select id, upload, false from photos where upload is not null and state in ('held', 'ready') limit $1)
		union all
		(select id, coalesce(upload, ''), true from photos where state in ('refused', 'removed') and not cleaned order by changed_at limit $1)`, limit)
}

// Cleaned records that the files of a leftover are deleted.
func (s *PhotoChecks) Cleaned(ctx context.Context, l Leftover) error {
	return pgpool.Exec(ctx, s.db.pool, "update photo", `
		update photos set upload = null, cleaned = $2 and state in ('refused', 'removed')
		where id = $1 and state <> 'checking'`, l.Photo, l.Pictures)
}

// UnknownUploads returns the keys that are not the upload of any photo.
func (s *PhotoChecks) UnknownUploads(ctx context.Context, keys []string) ([]string, error) {
	return pgpool.Collect(ctx, s.db.pool, "compare files", pgx.RowTo[string], `
		select k from unnest($1::text[]) k where not exists (select from photos where upload = k)`, keys)
}

// UnknownPhotos returns the ids without a photo that has pictures, or may get
// some.
func (s *PhotoChecks) UnknownPhotos(ctx context.Context, ids []string) ([]string, error) {
	return pgpool.Collect(ctx, s.db.pool, "compare files", pgx.RowTo[string], `
		select i from unnest($1::text[]) i
		where not exists (select from photos where id = i::uuid and state in ('checking', 'held', 'ready'))`, ids)
}

// RefuseDead refuses the photos whose message became a dead letter of queue,
// for instance because they crash the worker, and closes those letters. It
// returns their number.
func (s *PhotoChecks) RefuseDead(ctx context.Context, queue string) (refused int, err error) {
	dead, err := pgpool.Collect(ctx, s.db.pool, "select dead letters", pgx.RowToStructByPos[struct {
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
			err := pgpool.Exec(ctx, tx, "close dead letter", `
				update dead_letters set state = 'discarded', closed_at = now(), close_reason = 'the photo was refused'
				where id = $1 and state = 'open'`, d.Letter)
			if err != nil {
				return err
			}
			_, err = s.judge(ctx, tx, w, d.Report, d.Photo, report.Judgement{Reason: report.PhotoFailed}, "")
			return err
		})
		if err != nil {
			return refused, err
		}
		refused++
	}
	return refused, nil
}
