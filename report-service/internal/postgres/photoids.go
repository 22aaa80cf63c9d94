package postgres

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// photoIDs derive the ids of photos from what clients call their uploads.
type photoIDs struct{ keys [][]byte } // the current one first

func newPhotoIDs(db *DB) photoIDs {
	return photoIDs{db.keys.Derive("cityconnect/report-service/photo-ids")}
}

// uploadIDs returns the ids that the photo of an upload may have. A new one gets
// the first: an HMAC of the client's id under a secret that the database does not
// have, so that a repetition finds the photo, and the photo's id tells nothing of
// the client's. Photos of earlier versions have the client's own.
func (s photoIDs) uploadIDs(upload uuid.UUID) []uuid.UUID {
	ids := make([]uuid.UUID, 0, len(s.keys)+1)
	for _, key := range s.keys {
		mac := hmac.New(sha256.New, key)
		mac.Write(upload[:])
		ids = append(ids, report.PhotoID([16]byte(mac.Sum(nil))))
	}
	if !report.IsPhotoID(upload) {
		ids = append(ids, upload)
	}
	return ids
}

// uploadIDsOf returns the ids that the photo of a report's upload may have. The last
// ones are those of an upload whose name a photo of another report has already: the
// uploader must not find out that there is one, which may be hidden.
func (s photoIDs) uploadIDsOf(reportID, upload uuid.UUID) []uuid.UUID {
	ids := s.uploadIDs(upload)
	for _, key := range s.keys {
		mac := hmac.New(sha256.New, key)
		mac.Write(upload[:])
		mac.Write(reportID[:])
		ids = append(ids, report.PhotoID([16]byte(mac.Sum(nil))))
	}
	return ids
}

// free returns the id of a new photo of a report's upload.
func (s photoIDs) free(ctx context.Context, tx pgx.Tx, reportID, upload uuid.UUID) (uuid.UUID, error) {
	ids := s.uploadIDsOf(reportID, upload)
	var taken bool
	if err := tx.QueryRow(ctx, `select exists (select from photos where id = any($1))`, s.uploadIDs(upload)).Scan(&taken); err != nil {
		return uuid.Nil, fmt.Errorf("select photos of other reports: %w", err)
	}
	if taken {
		return ids[len(ids)-len(s.keys)], nil
	}
	return ids[0], nil
}

// knownAs returns the ids of the photo that somebody calls id. Those of earlier
// versions are still in links and in messages.
func (s photoIDs) knownAs(id uuid.UUID) []uuid.UUID {
	if report.IsPhotoID(id) {
		return []uuid.UUID{id}
	}
	return s.uploadIDs(id)
}

// firstKnownSQL picks one of several photos with the ids $1, which there are after
// an upload that replicas of two versions took.
const firstKnownSQL = `order by array_position($1, p.id) limit 1`

// lock returns a photo of a report whose row is locked: every change of a photo
// locks the report first.
func (s photoIDs) lock(ctx context.Context, tx pgx.Tx, reportID, id uuid.UUID) (report.Photo, error) {
	ids := s.knownAs(id)
	if !report.IsPhotoID(id) {
		ids = s.uploadIDsOf(reportID, id)
	}
	rows, err := tx.Query(ctx, `
		select `+photoColumns+` from photos p where p.id = any($1) and p.report_id = $2 `+firstKnownSQL, ids, reportID)
	if err != nil {
		return report.Photo{}, fmt.Errorf("select photo: %w", err)
	}
	p, err := pgx.CollectExactlyOneRow(rows, scanPhoto)
	return p, pgpool.Found(err, "select photo", report.ErrNoPhoto)
}

// A Renaming is a photo under an id that this service did not choose, and the one
// that it is to have.
type Renaming struct {
	From, To uuid.UUID
	Pictures bool // whether there are pictures under the id
	reportID uuid.UUID
	state    report.PhotoState
	// double says that there is the same photo already under the new id: the
	// upload was sent to replicas of two versions.
	double bool
}

// Renamings returns photos that came to an end before a time, under ids that
// clients chose. Such an id may have the time of a device in it.
func (s *PhotoChecks) Renamings(ctx context.Context, before time.Time, limit int) ([]Renaming, error) {
	rows, err := s.db.pool.Query(ctx, `
		select id, report_id, state, digest from photos
		where substr(id::text, 15, 1) <> '8' and changed_at < $1
			and (upload is null and state in ('held', 'ready') or cleaned)
		order by changed_at limit $2`, before, limit)
	if err != nil {
		return nil, fmt.Errorf("select photos to rename: %w", err)
	}
	type photo struct {
		ID, Report uuid.UUID
		State      report.PhotoState
		Digest     []byte
	}
	photos, err := pgx.CollectRows(rows, pgx.RowToStructByPos[photo])
	if err != nil {
		return nil, fmt.Errorf("select photos to rename: %w", err)
	}
	renamings := make([]Renaming, len(photos))
	for i, p := range photos {
		r := Renaming{
			From: p.ID, To: s.ids.uploadIDs(p.ID)[0], reportID: p.Report, state: p.State,
			Pictures: p.State == report.PhotoHeld || p.State == report.PhotoReady,
		}
		var taken, same bool
		err := s.db.pool.QueryRow(ctx, `
			select count(*) > 0, coalesce(bool_or(report_id = $2 and digest = $3 and state in ('checking', 'held', 'ready')), false)
			from photos where id = any($1) and id <> $4`, s.ids.uploadIDs(p.ID), p.Report, p.Digest, p.ID).Scan(&taken, &same)
		if err != nil {
			return nil, fmt.Errorf("look for the new id: %w", err)
		}
		if taken {
			r.To = report.PhotoID(uuid.New())
			r.double = same && r.Pictures
			r.Pictures = r.Pictures && !r.double
		}
		renamings[i] = r
	}
	return renamings, nil
}

// Rename gives a photo its new id, under which its pictures are already. It
// returns false if the photo has changed since, and then does nothing. One that is
// there twice is removed.
func (s *PhotoChecks) Rename(ctx context.Context, r Renaming) (renamed bool, err error) {
	err = pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
		if _, err := lockReport(ctx, tx, r.reportID); err != nil {
			return err
		}
		state := r.state
		if r.double {
			state = report.PhotoRemoved
		}
		tag, err := tx.Exec(ctx, `
			update photos set id = $2, state = $4, changed_at = case when $4 = $3 then changed_at else now() end
			where id = $1 and state = $3`, r.From, r.To, string(r.state), string(state))
		if err != nil {
			return fmt.Errorf("update photo: %w", err)
		}
		if renamed = tag.RowsAffected() > 0; !renamed {
			return nil
		}
		if _, err := tx.Exec(ctx, `update report_acts set photo_id = $3 where report_id = $1 and photo_id = $2`, r.reportID, r.From, r.To); err != nil {
			return fmt.Errorf("update acts: %w", err)
		}
		return nil
	})
	return renamed && err == nil, err
}
