package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/pseudonym"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// photoIDs derive the ids of photos from what clients call their uploads.
type photoIDs struct{ keys [][]byte } // the current one first

func newPhotoIDs(db *DB) photoIDs {
	return photoIDs{db.keys.Derive("cityconnect/report-service/photo-ids")}
}

// uploadIDs returns the ids that the photo of an upload may have: a hash of the client's id
// under a secret that the database does not have, so that a repetition finds the photo, and
// the photo's id tells nothing of the client's. A new photo gets the first.
func (s photoIDs) uploadIDs(upload uuid.UUID) []uuid.UUID { return s.of(upload[:]) }

// uploadIDsOf returns the ids that the photo of a report's upload may have. The last
// ones are those of an upload whose name a photo of another report has already: the
// uploader must not find out that there is one, which may be hidden.
func (s photoIDs) uploadIDsOf(reportID, upload uuid.UUID) []uuid.UUID {
	return append(s.uploadIDs(upload), s.of(upload[:], reportID[:])...)
}

func (s photoIDs) of(parts ...[]byte) []uuid.UUID {
	hashes := pseudonym.Of(s.keys, parts...)
	ids := make([]uuid.UUID, len(hashes))
	for i, hash := range hashes {
		ids[i] = report.PhotoID([16]byte(hash))
	}
	return ids
}

// free returns the id of a new photo of a report's upload.
func (s photoIDs) free(ctx context.Context, tx pgx.Tx, reportID, upload uuid.UUID) (uuid.UUID, error) {
	ids := s.uploadIDsOf(reportID, upload)
	taken, err := pgpool.Value[bool](ctx, tx, "select photos of other reports", `select exists (select from photos where id = any($1))`, s.uploadIDs(upload))
	if err != nil {
		return uuid.Nil, err
	}
	if taken {
		return ids[len(ids)-len(s.keys)], nil
	}
	return ids[0], nil
}

// knownAs returns the ids of the photo that somebody calls id, who may be its uploader.
func (s photoIDs) knownAs(id uuid.UUID) []uuid.UUID {
	if report.IsPhotoID(id) {
		return []uuid.UUID{id}
	}
	return s.uploadIDs(id)
}

// firstKnownSQL picks one of several photos with the ids $1, which there may be after a change
// of keys.
const firstKnownSQL = `order by array_position($1, p.id) limit 1`

const photoColumns = `p.id, p.report_id, p.state, p.reason, p.alt, p.official, coalesce(p.width, 0), coalesce(p.height, 0), p.created_at, p.purpose = 'after', p.hold`

func scanPhoto(row pgx.CollectableRow) (report.Photo, error) {
	p, err := pgx.RowToStructByPos[report.Photo](row)
	p.CreatedAt = p.CreatedAt.UTC()
	return p, err
}

// lock returns a photo of a report whose row is locked: every change of a photo
// locks the report first.
func (s photoIDs) lock(ctx context.Context, tx pgx.Tx, reportID, id uuid.UUID) (report.Photo, error) {
	ids := s.knownAs(id)
	if !report.IsPhotoID(id) {
		ids = s.uploadIDsOf(reportID, id)
	}
	return pgpool.One(ctx, tx, "select photo", report.ErrNoPhoto, scanPhoto, `
		select `+photoColumns+` from photos p where p.id = any($1) and p.report_id = $2 `+firstKnownSQL, ids, reportID)
}
