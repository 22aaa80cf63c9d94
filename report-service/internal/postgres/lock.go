package postgres

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A reads collects what the changes of a transaction have to know.
type reads struct {
	batch   pgx.Batch
	patient bool // locks are waited for
	locks   map[uuid.UUID]*locked
}

// newReads begins the transaction.
func newReads(patient bool) *reads {
	r := &reads{patient: patient, locks: make(map[uuid.UUID]*locked)}
	r.batch.Queue("begin")
	return r
}

// A locked is a report whose row the transaction has locked. All changes of
// the transaction share it, and each finds what those before it did.
type locked struct {
	report.Filing
	found   bool
	changed bool
}

// lock queues the lock on a report. What it reads is as of the moment it is
// granted. Unless the transaction is a patient one, a row that somebody else
// has locked is passed over: nobody shall wait for a report that is not his.
func (r *reads) lock(id uuid.UUID) *locked {
	if l := r.locks[id]; l != nil {
		return l
	}
	l := &locked{}
	r.locks[id] = l
	sql := lockSQL
	if !r.patient {
		sql += ` skip locked`
	}
	r.batch.Queue(sql, key(id)).
		QueryRow(optional(&l.found, &l.ID, &l.Title, &l.Privacy, &l.Status, &l.Score, &l.Version, &l.Reporter.ID))
	return l
}

const lockSQL = `
	select r.id, r.title, r.privacy_level, r.status, r.score, r.version, p.reporter_id
	from reports r join reporters p on p.report_id = r.id
	where r.id = $1
	for no key update of r`

// missed reports whether a report was not there, and may be locked by somebody
// else: only who waits for the lock can tell.
func (r *reads) missed(id uuid.UUID) bool {
	l := r.locks[id]
	return l != nil && !l.found && !r.patient
}

// check refuses a change to a report that is not there.
func (l *locked) check() error {
	if !l.found {
		return report.NoReport()
	}
	return nil
}
