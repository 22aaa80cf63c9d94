package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/settings"
)

// Open311 are the applications that file reports by Open311, and what they read.
type Open311 struct{ db *DB }

// NewOpen311 returns the applications in db.
func NewOpen311(db *DB) *Open311 { return &Open311{db} }

// Applications returns all applications, the newest first.
func (s *Open311) Applications(ctx context.Context) ([]report.Application, error) {
	return pgpool.Collect(ctx, s.db.pool, "select applications", scanApplication, `
		select id, name, made_at, revoked_at, (select count(*) from open311_reports where key_id = id)
		from open311_keys order by made_at desc, id desc`)
}

func scanApplication(row pgx.CollectableRow) (a report.Application, err error) {
	return a, row.Scan(&a.ID, &a.Name, utc{&a.MadeAt}, utcOrNil{&a.RevokedAt}, &a.Reports)
}

// Add keeps a new application, of whose key hash is.
func (s *Open311) Add(ctx context.Context, a report.Application, hash []byte, by report.Official) error {
	return pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
		err := pgpool.Exec(ctx, tx, "insert application", `insert into open311_keys (id, name, hash, made_at) values ($1, $2, $3, $4)`, a.ID, a.Name, hash, a.MadeAt)
		if err != nil {
			return err
		}
		return settings.Record(ctx, tx, by, "open311", map[string]any{"keys_made": []string{a.Name}})
	})
}

// Revoke ends the key of an application, for ever. One that has ended stays as it is.
func (s *Open311) Revoke(ctx context.Context, id uuid.UUID, by report.Official) error {
	return pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
		var name string
		var revoked bool
		err := tx.QueryRow(ctx, `select name, revoked_at is not null from open311_keys where id = $1 for update`, id).Scan(&name, &revoked)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return report.ErrNoApplication
		case err != nil:
			return fmt.Errorf("select key: %w", err)
		case revoked:
			return nil
		}
		if err := pgpool.Exec(ctx, tx, "revoke key", `update open311_keys set revoked_at = now() where id = $1`, id); err != nil {
			return err
		}
		return settings.Record(ctx, tx, by, "open311", map[string]any{"keys_revoked": []string{name}})
	})
}

// Application returns the id of the application whose key has the hash, if it is valid.
func (s *Open311) Application(ctx context.Context, hash []byte) (id uuid.UUID, err error) {
	err = s.db.pool.QueryRow(ctx, `select id from open311_keys where hash = $1 and revoked_at is null`, hash).Scan(&id)
	return id, pgpool.Found(err, "select application", report.ErrNoApplication)
}

// earthSQL is the distance in metres of a report from a latitude and longitude.
const earthSQL = `2 * 6371000 * asin(least(1, sqrt(power(sin(radians(r.latitude - %[1]s) / 2), 2)
	+ cos(radians(%[1]s)) * cos(radians(r.latitude)) * power(sin(radians(r.longitude - %[2]s) / 2), 2))))`

// metresPerDegree are those of a degree of latitude, rather too few.
const metresPerDegree = 111_000

// Requests returns the reports that q asks for. Everybody sees them.
func (s *Open311) Requests(ctx context.Context, q report.RequestQuery) ([]report.ServiceRequest, error) {
	var sql query
	q.Filter.Official, q.Filter.Hidden, q.Filter.Withdrawn, q.Filter.Reporter = false, false, false, "" // whoever asks
	sql.filter(q.Filter)
	sql.when(q.IDs != nil, `r.id = any(%s)`, q.IDs)
	sql.when(!q.ChangedFrom.IsZero(), `r.updated_at >= %s`, q.ChangedFrom)
	if q.Near != nil {
		degrees := q.Radius / metresPerDegree
		sql.and(`r.latitude between %s and %s`, q.Near.Latitude-degrees, q.Near.Latitude+degrees)
		sql.and(earthSQL+` <= %[3]s`, q.Near.Latitude, q.Near.Longitude, q.Radius)
	}
	return pgpool.Collect(ctx, s.db.pool, "select requests", requested.row, `
		select `+requested.sql()+`
		from reports r`+sql.where()+` order by r.created_at desc, r.id desc limit `+sql.arg(q.Limit)+` offset `+sql.arg(q.Offset), sql.fresh()...)
}

// requested is what Open311 shows of a report.
var requested = append(
	of(func(r *report.ServiceRequest) *report.Report { return &r.Report },
		"id", "title", "description", "category_id", "latitude", "longitude", "asset", "address", "status", "created_at", "updated_at"),
	selected[report.ServiceRequest]{
		`coalesce((select h.note from status_history h where h.report_id = r.id and h.note <> '' order by h.id desc limit 1), '')`,
		func(r *report.ServiceRequest) any { return &r.Note },
	},
	selected[report.ServiceRequest]{photosSQL, func(r *report.ServiceRequest) any { return &r.Photos }})

// Updates returns what officials did to reports that everybody sees, and said to everybody.
func (s *Open311) Updates(ctx context.Context, q report.UpdateQuery) ([]report.RequestUpdate, error) {
	var sql query
	sql.and(`r.hidden_reason is null`)
	sql.and(`h.from_status is not null`)
	sql.and(`(h.kind is null or h.kind = %s)`, report.Upheld)
	sql.when(q.IDs != nil, `h.report_id = any(%s)`, q.IDs)
	sql.when(!q.From.IsZero(), `h.changed_at >= %s`, q.From)
	sql.when(!q.To.IsZero(), `h.changed_at < %s`, q.To)
	return pgpool.Collect(ctx, s.db.pool, "select updates", pgx.RowToStructByPos[report.RequestUpdate], `
		select h.report_id, h.report_version, h.to_status, h.note, h.changed_at
		from status_history h join reports r on r.id = h.report_id`+sql.where()+`
		order by h.changed_at, h.id limit `+sql.arg(q.Limit)+` offset `+sql.arg(q.Offset), sql.args...)
}
