package postgres

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/pseudonym"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Photos are the pictures of what reports are about.
type Photos struct {
	db         *DB
	digestKeys [][]byte // of uploads, the current one first
	ids        photoIDs
}

// NewPhotos returns the photos in db.
func NewPhotos(db *DB) *Photos {
	return &Photos{db, db.keys.Derive("cityconnect/report-service/photos"), newPhotoIDs(db)}
}

// CheckUpload returns an error if by may not add a photo to a report, so that
// nobody uploads in vain. Add decides. If the upload is a known photo of the report
// and digest, which may be nil, is that of its bytes, known is that photo: there is
// nothing to upload.
func (s *Photos) CheckUpload(ctx context.Context, reportID, upload uuid.UUID, after bool, digest []byte, by report.User) (photo *report.Photo, err error) {
	f := report.Filing{Report: report.Report{ID: reportID}}
	var known bool
	var ofReport, today int
	q := query{args: []any{reportID, s.ids.uploadIDsOf(reportID, upload), by.ID, after}}
	within := q.within(by.Reach(report.Handle), "")
	err = s.db.pool.QueryRow(ctx, `
		select coalesce(o.reporter_id, ''), `+departmentSQL+`, exists (select from photos where id = any($2) and report_id = $1), n.*
		from reports r left join reporters o on o.report_id = r.id, lateral (`+photoCountsSQL+`) n
		where r.id = $1 and (r.hidden_reason is null or `+within+` or o.reporter_id = $3 and `+unhiddenSQL+`)`, q.args...).
		Scan(&f.Reporter.ID, &f.Department, &known, &ofReport, &today)
	if err = pgpool.Found(err, "select report", report.ErrNotFound); err != nil {
		return nil, err
	}
	city, err := by.UploadsForCity(&f, after)
	switch {
	case err != nil:
		return nil, err
	case !known:
		return nil, report.CheckPhotos(ofReport, today, city)
	case digest == nil: // it is compared once its bytes are here
		return nil, nil
	}
	u := report.Upload{ID: upload, ReportID: reportID}
	copy(u.Hash[:], digest)
	p, err := s.knownPhoto(ctx, s.db.pool, u)
	if err != nil {
		return nil, err
	}
	return &p, nil
}

// knownPhoto returns the photo of the report that u made before, an error if it is
// another upload or was removed, or pgx.ErrNoRows.
func (s *Photos) knownPhoto(ctx context.Context, q pgpool.Querier, u report.Upload) (report.Photo, error) {
	p, err := pgpool.One(ctx, q, "select photo", pgx.ErrNoRows, scanPhoto, `
		select `+photoColumns+` from photos p where p.id = any($1) and p.report_id = $2 `+firstKnownSQL, s.ids.uploadIDsOf(u.ReportID, u.ID), u.ReportID)
	if err != nil {
		return report.Photo{}, err
	}
	digest, err := pgpool.Value[[]byte](ctx, q, "select digest", `select digest from photos where id = $1`, p.ID)
	if err != nil {
		return report.Photo{}, err
	}
	switch {
	case !slices.ContainsFunc(s.digests(u), func(known []byte) bool { return hmac.Equal(digest, known) }):
		return report.Photo{}, report.ErrOtherPhoto
	case p.State == report.PhotoRemoved:
		return report.Photo{}, report.ErrPhotoRemoved
	}
	return p, nil
}

// photoCountsSQL counts the photos of the report $1 that exist or may come to
// exist, and are of the finished work or not, as $4, and the uploads of the reporter $3
// within a day. A photo with one of the ids $2 is not counted.
const photoCountsSQL = `
	select
		(select count(*) from photos where report_id = $1 and id <> all($2) and state in ('checking', 'held', 'ready') and (purpose = 'after') = $4) as of_report,
		(select count(*) from photos p join reporters o using (report_id)
			where o.reporter_id = $3 and p.id <> all($2) and not p.official and p.created_at > now() - interval '1 day') as today`

// Add adds an upload to a report, together with the message for the worker that
// checks it. If the same bytes arrived as the same upload before, nothing
// changes, added is false, and the photo is returned in its present state. The
// uploader is not stored, unless that is the city.
func (s *Photos) Add(ctx context.Context, u report.Upload, by report.User) (p report.Photo, added bool, err error) {
	now := time.Now().UTC().Truncate(time.Microsecond) // as exact as the database
	ids := s.ids.uploadIDsOf(u.ReportID, u.ID)
	err = s.changePhotos(ctx, u.ReportID, by, report.Read, func(tx pgx.Tx, l *lockedReport, _ bool, w *writeBatch) error {
		if p, err = s.knownPhoto(ctx, tx, u); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		city, err := by.UploadsForCity(&l.Filing, u.After)
		if err != nil {
			return err
		}
		var ofReport, today int
		if err := tx.QueryRow(ctx, photoCountsSQL, u.ReportID, ids, by.ID, u.After).Scan(&ofReport, &today); err != nil {
			return fmt.Errorf("count photos: %w", err)
		}
		if err := report.CheckPhotos(ofReport, today, city); err != nil {
			return err
		}
		id, err := s.ids.free(ctx, tx, u.ReportID, u.ID)
		if err != nil {
			return err
		}
		p = report.Photo{ID: id, ReportID: u.ReportID, State: report.PhotoChecking, Alt: u.Alt, Official: city, CreatedAt: now, After: u.After, Hold: by.Holds()}
		added = true
		w.others.Queue(`
			insert into photos (id, report_id, alt, official, bytes, digest, upload, created_at, changed_at, purpose, hold)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $8, case when $9 then 'after' else '' end, $10)`,
			p.ID, u.ReportID, u.Alt, city, u.Bytes, s.digests(u)[0], u.Key, now, u.After, p.Hold)
		if city {
			w.record(photoAct(u.ReportID, by, report.AddedPhoto, p.ID))
		}
		return w.enqueueFor(photoUploaded(&l.Filing, p.ID, now), "", service.TraceFrom(ctx)) // the worker needs no recipient
	})
	if pgpool.Constraint(err) == "photos_pkey" { // another report's, at the same moment
		return report.Photo{}, false, report.ErrOtherPhoto
	}
	return p, added && err == nil, err
}

// digests returns the hashes under which an upload may be kept, the one in use first. With a
// plain hash anybody who can read the table, and has a person's file, could find out whether
// that person uploaded it.
func (s *Photos) digests(u report.Upload) [][]byte {
	return pseudonym.Of(s.digestKeys, u.ID[:], u.Hash[:])
}

// changePhotos changes the photos of a report by do, if by may change them; an official needs
// to be one who may do a.
func (s *Photos) changePhotos(ctx context.Context, id uuid.UUID, by report.User, a report.Action, do func(tx pgx.Tx, l *lockedReport, city bool, w *writeBatch) error) error {
	return s.db.change(ctx, id, by.Scope, func(tx pgx.Tx, l *lockedReport, w *writeBatch) error {
		connection, _ := by.Scope.Connection()
		if !by.Official {
			a = report.Read
		}
		if err := report.May(by, a, &l.Filing); err != nil && (by.Official || connection || l.Private()) {
			return err
		}
		if err := l.check(by.Official); err != nil {
			return err
		}
		city, err := by.ActsForCity(&l.Filing)
		if err != nil {
			return err
		}
		return do(tx, l, city, w)
	})
}

// photoAct returns what an official did to a photo, for other officials.
func photoAct(reportID uuid.UUID, by report.User, kind report.ActKind, photo uuid.UUID) actRow {
	return actRow{reportID: reportID, by: by.AsOfficial(), kind: kind, photo: photo}
}

// List returns the photos of a report that by may see, oldest first: the ready
// ones, and for users who may change them all but the removed ones.
func (s *Photos) List(ctx context.Context, reportID uuid.UUID, by report.User) ([]report.Photo, error) {
	q := query{args: []any{reportID}}
	within := q.within(by.Reach(report.Read), "o")
	found, err := pgpool.Value[bool](ctx, s.db.pool, "select report", `
		select exists (select from reports r left join reporters o on o.report_id = r.id
			where r.id = $1 and `+within+`)`, q.args...)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, report.ErrNotFound
	}
	q = query{args: []any{reportID}}
	within = q.within(by.Reach(report.Converse), "o")
	return pgpool.Collect(ctx, s.db.pool, "select photos", scanPhoto, `
		select `+photoColumns+` from photos p join reports r on r.id = p.report_id left join reporters o on o.report_id = p.report_id
		where p.report_id = $1 and (p.state = 'ready' or p.state <> 'removed' and `+within+`)
		order by p.created_at, p.id`, q.args...)
}

// Get returns a photo whose pictures by may see. A photo of a hidden report is
// returned as held: no cache may keep it.
func (s *Photos) Get(ctx context.Context, id uuid.UUID, by report.User) (report.Photo, error) {
	q := query{args: []any{s.ids.knownAs(id)}}
	within := q.within(by.Reach(report.Converse), "o")
	seen := q.within(by.Reach(report.Read), "o")
	return pgpool.One(ctx, s.db.pool, "select photo", report.ErrNoPhoto, scanPhoto, `
		select `+photoColumns+` from (
			select q.state = 'ready' as shown, q.id, q.report_id, q.reason, q.alt, q.official, q.width, q.height, q.created_at, q.purpose, q.hold,
				case when r.hidden_reason is not null and q.state = 'ready' then 'held' else q.state end as state
			from photos q join reports r on r.id = q.report_id
		) p join reports r on r.id = p.report_id left join reporters o on o.report_id = p.report_id
		where p.id = any($1) and (p.state = 'ready' or p.state = 'held' and (`+within+` or p.shown and `+seen+`)) `+firstKnownSQL, q.args...)
}

// Held returns the photos that wait for an official and are in reach of by, oldest first.
func (s *Photos) Held(ctx context.Context, limit int, by report.User) ([]report.Photo, error) {
	q := query{args: []any{limit}}
	within := q.within(by.Reach(report.Handle), "")
	return pgpool.Collect(ctx, s.db.pool, "select photos", scanPhoto, `
		select `+photoColumns+` from photos p join reports r on r.id = p.report_id
		where p.state = 'held' and `+within+` order by p.created_at, p.id limit $1`, q.args...)
}

// Remove removes a photo from a report. If an official removes a held photo it
// is refused, and its uploader is notified. A removed photo stays removed.
func (s *Photos) Remove(ctx context.Context, reportID, id uuid.UUID, by report.User) error {
	return s.changePhotos(ctx, reportID, by, report.Read, func(tx pgx.Tx, l *lockedReport, city bool, w *writeBatch) error {
		p, err := s.ids.lock(ctx, tx, reportID, id)
		if err != nil || p.State == report.PhotoRemoved {
			return err
		}
		state, reason, err := p.Remove(city)
		if err == nil && city && !p.Official {
			err = report.May(by, report.Moderate, &l.Filing)
		}
		if err != nil {
			return err
		}
		w.others.Queue(`update photos set state = $2, reason = $3, changed_at = now() where id = $1`, p.ID, string(state), string(reason))
		if city {
			w.record(photoAct(reportID, by, report.RemovedPhoto, p.ID))
		}
		if state == report.PhotoRefused {
			return w.enqueueFor(photoRefused(&l.Filing, p.ID, reason, time.Now()), l.Reporter.ID, service.TraceFrom(ctx))
		}
		return nil
	})
}

// Show shows a held photo, which a moderator does, unless a firm has added it. A shown one
// stays as it is.
func (s *Photos) Show(ctx context.Context, reportID, id uuid.UUID, by report.User) error {
	ofFirm, err := pgpool.Value[bool](ctx, s.db.pool, "look whose photo it is", `select exists (select from photos where id = any($1) and hold)`, s.ids.knownAs(id))
	if err != nil {
		return err
	}
	needed := report.Moderate
	if ofFirm {
		needed = report.Handle
	}
	return s.changePhotos(ctx, reportID, by, needed, func(tx pgx.Tx, l *lockedReport, city bool, w *writeBatch) error {
		p, err := s.ids.lock(ctx, tx, reportID, id)
		if err != nil || p.State == report.PhotoReady {
			return err
		}
		if err := p.Show(city); err != nil {
			return err
		}
		w.others.Queue(`update photos set state = 'ready', changed_at = now() where id = $1`, p.ID)
		w.record(photoAct(reportID, by, report.ShowedPhoto, p.ID))
		return announceReady(ctx, w, l, p.ID)
	})
}

// Replace replaces a photo by its redacted picture, under a new id: caches keep
// the old one for a year.
func (s *Photos) Replace(ctx context.Context, reportID, id uuid.UUID, redacted report.Photo, by report.User) (report.Photo, error) {
	err := s.changePhotos(ctx, reportID, by, report.Moderate, func(tx pgx.Tx, l *lockedReport, city bool, w *writeBatch) error {
		p, err := s.ids.lock(ctx, tx, reportID, id)
		if err != nil {
			return err
		}
		replaced := p.ID
		if redacted, err = p.Redacted(redacted, city); err != nil {
			return err
		}
		w.others.Queue(`
			insert into photos (id, report_id, state, alt, official, bytes, digest, width, height, created_at, purpose)
			select $2, report_id, state, alt, official, bytes, digest, $3, $4, created_at, purpose from photos where id = $1`,
			replaced, redacted.ID, redacted.Width, redacted.Height)
		w.others.Queue(`update photos set state = 'removed', changed_at = now() where id = $1`, replaced)
		w.record(photoAct(reportID, by, report.RedactedPhoto, redacted.ID))
		if redacted.State != report.PhotoReady { // still held
			return nil
		}
		return announceReady(ctx, w, l, redacted.ID)
	})
	return redacted, err
}

// announceReady announces that everybody can see a photo.
func announceReady(ctx context.Context, w *writeBatch, l *lockedReport, photo uuid.UUID) error {
	l.ShowPhoto(time.Now())
	w.update(l)
	return w.enqueueFor(photoReady(&l.Filing, photo), l.Reporter.ID, service.TraceFrom(ctx))
}
