package postgres

import (
	"errors"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A readBatch collects what the changes of a transaction need to read, and
// reads all rows of a table by one statement.
type readBatch struct {
	waitForLocks bool
	locks        map[uuid.UUID]*lockedReport
	votes        []*earlierVote
	others       pgx.Batch // rare queries
}

func newReadBatch(waitForLocks bool) *readBatch {
	return &readBatch{waitForLocks: waitForLocks, locks: make(map[uuid.UUID]*lockedReport)}
}

// A lockedReport is a report whose row the transaction has locked. All changes
// of the transaction share it, and each sees the effects of those before it.
type lockedReport struct {
	report.Filing
	found    bool
	changed  bool
	status   statusMessage
	disputed bool // a reporter says that it is not fixed
}

// A statusMessage is the message that announced the present status of a report, and
// the version of the report there. It is null for a status from before these columns.
type statusMessage struct {
	id      pgtype.UUID
	version pgtype.Int8
}

// lock locks a report. Its data is as of the moment of the lock. Unless the
// batch waits for locks, a row that another session has locked is skipped: it
// must not hold up changes to other reports. Unless the scope of whoever acts is the whole
// city, the report has the department in charge; to a firm whose link has ended, none is.
func (r *readBatch) lock(id uuid.UUID, scope report.Scope) *lockedReport {
	l := r.locks[id]
	if l == nil {
		l = &lockedReport{}
		r.locks[id] = l
	}
	if !scope.City() {
		var found bool
		job, _ := scope.Job()
		r.others.Queue(`select `+departmentSQL+` from reports r where r.id = $1 and ($2::uuid is null or `+openJobSQL+`)`, id, optionalKey(job)).
			QueryRow(optional(&found, &l.Department))
	}
	return l
}

// An earlierVote is a voter's present vote on a report.
type earlierVote struct {
	reportID uuid.UUID
	voter    string
	vote     report.Vote
}

func (r *readBatch) vote(id uuid.UUID, voter string) *earlierVote {
	v := &earlierVote{reportID: id, voter: voter}
	r.votes = append(r.votes, v)
	return v
}

// queue queues all statements. The locks come first: only a later statement is
// certain to see the effects of earlier holders.
func (r *readBatch) queue(b *pgx.Batch) {
	if len(r.locks) > 0 {
		r.queueLocks(b)
	}
	if len(r.votes) > 0 {
		r.queueVotes(b)
	}
	b.QueuedQueries = append(b.QueuedQueries, r.others.QueuedQueries...)
}

// queueLocks looks up each report by its id: the subquery rules out other kinds
// of joins, which PostgreSQL would plan while the table is small, and keep when
// it has grown.
func (r *readBatch) queueLocks(b *pgx.Batch) {
	wait := ""
	if !r.waitForLocks {
		wait = " skip locked"
	}
	b.Queue(`
		select locked.* from unnest($1::uuid[]) as wanted (id) cross join lateral (
			select `+lockedColumns.sql()+`
			from reports r left join reporters p on p.report_id = r.id
			where r.id = wanted.id
			for no key update of r`+wait+`) as locked`,
		array(slices.Collect(maps.Keys(r.locks)), key)).
		Query(func(rows pgx.Rows) error {
			for rows.Next() {
				l, err := lockedColumns.row(rows)
				if err != nil {
					return err
				}
				l.found = true
				*r.locks[l.ID] = l
			}
			return rows.Err()
		})
}

// lockedColumns are what changes need to know of a report.
var lockedColumns = append(
	of(func(l *lockedReport) *report.Report { return &l.Report }, "id", "title", "privacy_level", "status", "score", "version",
		"category_id", "latitude", "longitude", "asset_id", "asset", "asset_name", "hidden_reason", "visibility", "withdrawn_at"),
	selected[lockedReport]{`coalesce(p.reporter_id, '')`, func(l *lockedReport) any { return &l.Reporter.ID }},
	selected[lockedReport]{`coalesce(r.restricted_version, 0)`, func(l *lockedReport) any { return &l.Restricted }},
	selected[lockedReport]{`r.status_message_id`, func(l *lockedReport) any { return &l.status.id }},
	selected[lockedReport]{`r.status_version`, func(l *lockedReport) any { return &l.status.version }},
	selected[lockedReport]{`r.disputed_at is not null`, func(l *lockedReport) any { return &l.disputed }})

// queueVotes looks up each vote by itself, as queueLocks does.
func (r *readBatch) queueVotes(b *pgx.Batch) {
	b.Queue(`
		select wanted.place, earlier.value
		from unnest($1::uuid[], $2::text[]) with ordinality as wanted (report_id, voter_id, place) cross join lateral (
			select value from votes where report_id = wanted.report_id and voter_id = wanted.voter_id limit 1) as earlier`,
		array(r.votes, func(v *earlierVote) pgtype.UUID { return key(v.reportID) }),
		array(r.votes, func(v *earlierVote) string { return v.voter })).
		Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var place int64
				var vote report.Vote
				if err := rows.Scan(&place, &vote); err != nil {
					return err
				}
				r.votes[place-1].vote = vote
			}
			return rows.Err()
		})
}

// check refuses a change to a report that does not exist or is hidden: nothing
// about a hidden report is announced. Only officials get to know that it is
// hidden.
func (l *lockedReport) check(official bool) error {
	switch {
	case !l.found, l.HiddenReason != "" && !official:
		return report.ErrNotFound
	case l.WithdrawnAt != nil:
		return report.ErrWithdrawn
	case l.HiddenReason != "":
		return report.ErrHidden
	}
	return nil
}

// checkFor refuses it also to officials and connections that do not work on the report.
func (l *lockedReport) checkFor(scope report.Scope) error {
	if l.found {
		if err := report.May(report.Official{Scope: scope}.User(), report.Handle, &l.Filing); err != nil {
			return err
		}
	}
	return l.check(true)
}

// checkPublic refuses it also to a report that only the city sees.
func (l *lockedReport) checkPublic() error {
	if l.Private() {
		return report.ErrNotFound
	}
	return l.check(false)
}

// optional scans the only row of a query that may have none, and sets found.
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
