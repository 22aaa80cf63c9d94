package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// viewSQL selects reports as the reader $1 may see them; the reader is empty
// for someone who is not signed in. The id of a reporter, and the name of an
// anonymous one, do not leave the database.
const viewSQL = `
	select r.id, r.title, r.description, r.category_id, c.name, r.latitude, r.longitude, r.address,
		r.privacy_level, r.status, r.score, r.version, r.created_at, r.updated_at,
		case when r.privacy_level = 'public' then p.reporter_name else '' end,
		p.reporter_id = $1, coalesce(v.value, 0)
	from reports r
	join categories c on c.id = r.category_id
	join reporters p on p.report_id = r.id
	left join votes v on v.report_id = r.id and v.voter_id = $1`

// Get returns a report as reader may see it.
func (s *Store) Get(ctx context.Context, id uuid.UUID, reader string) (report.View, error) {
	v, err := scanView(s.pool.QueryRow(ctx, viewSQL+` where r.id = $2`, reader, id))
	if errors.Is(err, pgx.ErrNoRows) {
		return v, report.ErrNotFound
	}
	if err != nil {
		return v, fmt.Errorf("select report: %w", err)
	}
	return v, nil
}

// queueView queues reading what Get would return.
func queueView(b *pgx.Batch, id uuid.UUID, reader string, dst *report.View) {
	b.Queue(viewSQL+` where r.id = $2`, reader, id).QueryRow(func(row pgx.Row) (err error) {
		*dst, err = scanView(row)
		return err
	})
}

func scanView(row pgx.Row) (report.View, error) {
	var v report.View
	var lat, lon *float64
	err := row.Scan(&v.ID, &v.Title, &v.Description, &v.Category.ID, &v.Category.Name, &lat, &lon, &v.Address,
		&v.Privacy, &v.Status, &v.Score, &v.Version, &v.CreatedAt, &v.UpdatedAt,
		&v.ReporterName, &v.Mine, &v.MyVote)
	if lat != nil && lon != nil {
		v.Position = &report.Position{Latitude: *lat, Longitude: *lon}
	}
	v.CreatedAt, v.UpdatedAt = v.CreatedAt.UTC(), v.UpdatedAt.UTC()
	return v, err
}

// History returns the status changes of a report, oldest first.
func (s *Store) History(ctx context.Context, id uuid.UUID) ([]report.Change, error) {
	rows, err := s.pool.Query(ctx, `
		select coalesce(from_status, ''), to_status, note, report_version, changed_at
		from status_history where report_id = $1 order by id`, id)
	if err != nil {
		return nil, fmt.Errorf("select history: %w", err)
	}
	changes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c report.Change, err error) {
		err = row.Scan(&c.From, &c.To, &c.Note, &c.Version, &c.At)
		c.At = c.At.UTC()
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("select history: %w", err)
	}
	if len(changes) == 0 { // every report has the entry of its filing
		return nil, report.ErrNotFound
	}
	return changes, nil
}
