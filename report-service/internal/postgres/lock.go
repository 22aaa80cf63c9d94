package postgres

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A locked is a report whose row the transaction has locked.
type locked struct {
	report.Filing
	found bool
}

// read queues the lock. What it reads is as of the moment it is granted.
func (l *locked) read(b *pgx.Batch, id uuid.UUID) {
	b.Queue(`
		select r.id, r.title, r.privacy_level, r.status, r.score, r.version, p.reporter_id
		from reports r join reporters p on p.report_id = r.id
		where r.id = $1
		for no key update of r`, id).
		QueryRow(optional(&l.found, &l.ID, &l.Title, &l.Privacy, &l.Status, &l.Score, &l.Version, &l.Reporter.ID))
}

// check refuses a change to a report that is not there.
func (l *locked) check() error {
	if !l.found {
		return report.NoReport()
	}
	return nil
}

// update queues what a change did to the report's row.
func (l *locked) update(b *pgx.Batch) {
	b.Queue(`update reports set status = $2, score = $3, version = $4, updated_at = $5 where id = $1`,
		l.ID, string(l.Status), l.Score, l.Version, l.UpdatedAt)
}
