package postgres

import (
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A readBatch collects what the changes of a transaction have to know.
type readBatch struct {
	batch        pgx.Batch
	waitForLocks bool
	locks        map[uuid.UUID]*lockedReport
}

// A lockedReport is a report whose row the transaction has locked. All changes
// of the transaction share it, and each finds what those before it did.
type lockedReport struct {
	report.Filing
	found   bool
	changed bool
}

// lock queues the lock on a report. What it reads is as of the moment it is
// granted. Unless the batch waits for locks, a row that another session has
// locked is skipped: it must not hold up changes to other reports.
func (r *readBatch) lock(id uuid.UUID) *lockedReport {
	if l := r.locks[id]; l != nil {
		return l
	}
	l := &lockedReport{}
	r.locks[id] = l
	sql := lockSQL
	if !r.waitForLocks {
		sql += ` skip locked`
	}
	r.batch.Queue(sql, key(id)).
		QueryRow(func(row pgx.Row) error {
			var latitude, longitude *float64
			err := optional(&l.found, &l.ID, &l.Title, &l.Privacy, &l.Status, &l.Score, &l.Version, &l.Reporter.ID,
				&l.Category.ID, &latitude, &longitude, &l.HiddenReason)(row)
			if latitude != nil && longitude != nil {
				l.Position = &report.Position{Latitude: *latitude, Longitude: *longitude}
			}
			return err
		})
	return l
}

const lockSQL = `
	select r.id, r.title, r.privacy_level, r.status, r.score, r.version, coalesce(p.reporter_id, ''),
	  r.category_id, r.latitude, r.longitude, coalesce(r.hidden_reason, '')
	from reports r left join reporters p on p.report_id = r.id
	where r.id = $1
	for no key update of r`

// check refuses a change to a report that does not exist, or that is hidden:
// nothing of it is announced. Only an official is told that it is.
func (l *lockedReport) check(official bool) error {
	switch {
	case !l.found, l.HiddenReason != "" && !official:
		return report.ErrNotFound
	case l.HiddenReason != "":
		return report.ErrHidden
	}
	return nil
}

// optional scans the only row of a query that may have none, and tells which.
func optional(found *bool, dst ...any) func(pgx.Row) error {
	return func(row pgx.Row) error {
		err := row.Scan(dst...)
		*found = err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	}
}
