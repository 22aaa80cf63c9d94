package postgres

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/calendar"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// A writeBatch collects the rows of a transaction's changes, and writes those
// of a table by one statement.
type writeBatch struct {
	keys *event.Keyring // seals the recipients
	desk bool           // messages for officials name the department in charge

	filings []newFiling
	history []historyRow
	changed []*lockedReport
	votes   []voteRow // of voters without a vote on the report
	revotes []voteRow
	outbox  []outboxRow
	others  pgx.Batch // rare statements, after all rows above are written
	acts    []actRow  // last, because they may refer to rows of others

	doneBefore bool // a change had been made before, and its caller gets the same answer
}

type newFiling struct {
	*report.Filing
	deadline calendar.Deadline
	status   statusMessage
}

type historyRow struct {
	reportID uuid.UUID
	report.Change
}

type voteRow struct {
	reportID uuid.UUID
	voter    string
	vote     report.Vote
	at       time.Time
}

type outboxRow struct {
	id       uuid.UUID
	key      string
	payload  json.RawMessage
	reportID uuid.UUID
	shard    int16
	version  int64
	headers  json.RawMessage
}

// An actRow is an official's act on a report. Only officials see it.
type actRow struct {
	reportID uuid.UUID
	by       report.Official
	kind     report.ActKind
	text     string

	// The subject of the act; zero for none.
	assignee                 string
	department               int32
	original, photo, comment uuid.UUID
}

// enqueue adds the outbox row of m, which is for whoever filed the report: the relay
// seals them when it reads the row.
func (w *writeBatch) enqueue(m event.Message, trace string) error {
	return w.enqueueSealed(m, "", trace)
}

// enqueueFor adds the outbox row of m, which is for a user, or for nobody.
func (w *writeBatch) enqueueFor(m event.Message, userID, trace string) error {
	return w.enqueueSealed(m, w.keys.Seal(m.About().ReportID, userID), trace)
}

// enqueueSealed adds the outbox row of m, which is for a sealed recipient, or for the
// reporter without one. The caller holds the lock on the report. A message that breaks
// the contract fails the change, because no consumer would accept it.
func (w *writeBatch) enqueueSealed(m event.Message, recipient, trace string) error {
	if err := m.Validate(); err != nil {
		return fmt.Errorf("message %s breaks the contract: %w", m.Key(), err)
	}
	id, version := m.About().ReportID, m.About().ReportVersion
	payload, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	headers, err := json.Marshal(outboxHeaders{trace, recipient})
	if err != nil {
		return fmt.Errorf("encode headers: %w", err)
	}
	w.outbox = append(w.outbox, outboxRow{uuid.Must(uuid.NewV7()), string(m.Key()), payload, id, shards.Of(id), version, headers})
	return nil
}

// announced returns the message that was enqueued last, for a change of a status.
func (w *writeBatch) announced() statusMessage {
	last := w.outbox[len(w.outbox)-1]
	return statusMessage{key(last.id), pgtype.Int8{Int64: last.version, Valid: true}}
}

// outboxHeaders are event.TraceHeader and, unless it is the reporter, event.RecipientHeader.
type outboxHeaders struct {
	Trace     string `json:"traceparent"`
	Recipient string `json:"x-recipient,omitempty"`
}

// record adds an act, together with the name that its official has now.
func (w *writeBatch) record(a actRow) { w.acts = append(w.acts, a) }

// vote adds a vote. The lock on the report, under which the vote before was read, keeps
// others from adding one of the same voter.
func (w *writeBatch) vote(v voteRow, before report.Vote) {
	if before == report.None {
		w.votes = append(w.votes, v)
	} else {
		w.revotes = append(w.revotes, v)
	}
}

// update marks the report's row as changed.
func (w *writeBatch) update(l *lockedReport) {
	if !l.changed {
		l.changed = true
		w.changed = append(w.changed, l)
	}
}

// queue queues all statements. Within each, the rows keep their order.
func (w *writeBatch) queue(b *pgx.Batch) {
	if len(w.filings) > 0 {
		w.queueFilings(b)
	}
	if len(w.changed) > 0 {
		w.queueChanged(b)
	}
	if len(w.history) > 0 {
		w.queueHistory(b)
	}
	if len(w.votes) > 0 {
		queueVotes(b, w.votes, "")
	}
	if len(w.revotes) > 0 { // an erasure may have taken the vote since
		queueVotes(b, w.revotes, " on conflict (report_id, voter_id) do update set value = excluded.value, voted_at = excluded.voted_at")
	}
	if len(w.outbox) > 0 {
		w.queueOutbox(b)
	}
	b.QueuedQueries = append(b.QueuedQueries, w.others.QueuedQueries...)
	if len(w.acts) > 0 {
		w.queueActs(b)
	}
	w.queueActed(b)
	if w.doneBefore && len(w.outbox) == 0 { // with outbox rows, the commit itself waits for the standby
		b.Queue(pgpool.BarrierSQL)
	}
}

func (w *writeBatch) queueFilings(b *pgx.Batch) {
	b.Queue(fileSQL, fileValues(w.filings)...)
	b.Queue(`
		insert into reporters (report_id, reporter_id, reporter_name)
		select * from unnest($1::uuid[], $2::text[], $3::text[]) as new (report_id, reporter_id, reporter_name)
		where reporter_id <> ''`, // an application is not a reporter
		array(w.filings, func(f newFiling) pgtype.UUID { return key(f.ID) }),
		array(w.filings, func(f newFiling) string { return f.Reporter.ID }),
		array(w.filings, func(f newFiling) string { return f.Reporter.Name }))
}

// queueChanged makes PostgreSQL look up each report by its id: it must not plan
// a join that suits a small table, and keep it when the table has grown. The
// settings end with the transaction.
func (w *writeBatch) queueChanged(b *pgx.Batch) {
	b.Queue(`select set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('enable_seqscan', 'off', true)`)
	b.Queue(`
		update reports set status = new.status, score = new.score, version = new.version, updated_at = new.updated_at,
			status_message_id = new.status_message_id, status_version = new.status_version
		from unnest($1::uuid[], $2::text[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::uuid[], $7::bigint[])
			as new (id, status, score, version, updated_at, status_message_id, status_version)
		where reports.id = new.id`,
		array(w.changed, func(l *lockedReport) pgtype.UUID { return key(l.ID) }),
		array(w.changed, func(l *lockedReport) string { return string(l.Status) }),
		array(w.changed, func(l *lockedReport) int64 { return l.Score }),
		array(w.changed, func(l *lockedReport) int64 { return l.Version }),
		array(w.changed, func(l *lockedReport) time.Time { return l.UpdatedAt }),
		array(w.changed, func(l *lockedReport) pgtype.UUID { return l.status.id }),
		array(w.changed, func(l *lockedReport) pgtype.Int8 { return l.status.version }))
}

func (w *writeBatch) queueHistory(b *pgx.Batch) {
	b.Queue(`
		insert into status_history (report_id, from_status, to_status, note, changed_by, report_version, changed_at, correction, kind)
		select report_id, nullif(from_status, ''), to_status, note, nullif(changed_by, ''), report_version, changed_at, correction, nullif(kind, '')
		from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::timestamptz[], $8::jsonb[], $9::text[])
			as new (report_id, from_status, to_status, note, changed_by, report_version, changed_at, correction, kind)`,
		array(w.history, func(e historyRow) pgtype.UUID { return key(e.reportID) }),
		array(w.history, func(e historyRow) string { return string(e.From) }),
		array(w.history, func(e historyRow) string { return string(e.To) }),
		array(w.history, func(e historyRow) string { return e.Note }),
		array(w.history, func(e historyRow) string { return e.By }),
		array(w.history, func(e historyRow) int64 { return e.Version }),
		array(w.history, func(e historyRow) time.Time { return e.At }),
		array(w.history, func(e historyRow) *report.Corrected { return e.Corrected }),
		array(w.history, func(e historyRow) string { return string(e.Kind) }))
}

// queueVotes writes votes. An insert that expects conflicts confirms each row in the log.
func queueVotes(b *pgx.Batch, votes []voteRow, onConflict string) {
	b.Queue(`
		insert into votes (report_id, voter_id, value, voted_at)
		select * from unnest($1::uuid[], $2::text[], $3::smallint[], $4::timestamptz[])`+onConflict,
		array(votes, func(v voteRow) pgtype.UUID { return key(v.reportID) }),
		array(votes, func(v voteRow) string { return v.voter }),
		array(votes, func(v voteRow) int16 { return int16(v.vote) }),
		array(votes, func(v voteRow) time.Time { return v.at }))
}

// queueOutbox numbers the rows in the order in which the changes were decided,
// which is the order of the versions.
func (w *writeBatch) queueOutbox(b *pgx.Batch) {
	payload := `payload`
	if w.desk {
		payload = chargedSQL
	}
	b.Queue(`
		insert into outbox_messages (id, routing_key, payload, report_id, report_version, shard, headers)
		select id, routing_key, `+payload+`, report_id, report_version, shard, headers
		from unnest($1::uuid[], $2::text[], $3::jsonb[], $4::uuid[], $5::bigint[], $6::smallint[], $7::jsonb[])
			with ordinality as new (id, routing_key, payload, report_id, report_version, shard, headers, place)
		order by place`,
		array(w.outbox, func(r outboxRow) pgtype.UUID { return key(r.id) }),
		array(w.outbox, func(r outboxRow) string { return r.key }),
		array(w.outbox, func(r outboxRow) json.RawMessage { return r.payload }),
		array(w.outbox, func(r outboxRow) pgtype.UUID { return key(r.reportID) }),
		array(w.outbox, func(r outboxRow) int64 { return r.version }),
		array(w.outbox, func(r outboxRow) int16 { return r.shard }),
		array(w.outbox, func(r outboxRow) json.RawMessage { return r.headers }))
}

// chargedSQL is the payload of a message with the department in charge, if officials are
// notified of it.
const chargedSQL = `case when routing_key in ('report.created', 'report.overdue', 'report.disputed', 'report.answered', 'report.question.expired')
	then payload || jsonb_build_object('department', (select ` + departmentSQL + ` from reports r where r.id = new.report_id)) else payload end`

// queueActs writes the acts and the names of their officials.
func (w *writeBatch) queueActs(b *pgx.Batch) {
	var officials []report.Official
	for _, a := range w.acts {
		if a.by != system {
			officials = append(officials, a.by)
		}
	}
	if len(officials) > 0 {
		queueOfficials(b, officials...)
	}
	b.Queue(`
		insert into report_acts (report_id, official_id, action, text, assignee_id, department_id, original, photo_id, comment_id)
		select report_id, official_id, action, text, nullif(assignee_id, ''), nullif(department_id, 0), original, photo_id, comment_id
		from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int[], $7::uuid[], $8::uuid[], $9::uuid[])
			as new (report_id, official_id, action, text, assignee_id, department_id, original, photo_id, comment_id)`,
		array(w.acts, func(a actRow) pgtype.UUID { return key(a.reportID) }),
		array(w.acts, func(a actRow) string { return a.by.ID }),
		array(w.acts, func(a actRow) string { return string(a.kind) }),
		array(w.acts, func(a actRow) string { return a.text }),
		array(w.acts, func(a actRow) string { return a.assignee }),
		array(w.acts, func(a actRow) int32 { return a.department }),
		array(w.acts, func(a actRow) pgtype.UUID { return optionalKey(a.original) }),
		array(w.acts, func(a actRow) pgtype.UUID { return optionalKey(a.photo) }),
		array(w.acts, func(a actRow) pgtype.UUID { return optionalKey(a.comment) }))
}

// queueActed ends that reports are not answered, because officials have acted on them.
func (w *writeBatch) queueActed(b *pgx.Batch) {
	var ids pgtype.FlatArray[pgtype.UUID]
	for _, e := range w.history {
		if e.By != "" {
			ids = append(ids, key(e.reportID))
		}
	}
	for _, a := range w.acts {
		if job, _ := a.by.Scope.Job(); a.by != system && job == uuid.Nil {
			ids = append(ids, key(a.reportID))
		}
	}
	if len(ids) > 0 {
		b.Queue(`update reports set not_answered = false where not_answered and id = any($1)`, ids)
	}
}

// queueOfficials writes the names of officials as they signed in.
func queueOfficials(b *pgx.Batch, officials ...report.Official) {
	b.Queue(`
		insert into officials (id, name)
		select distinct on (id) id, name from unnest($1::text[], $2::text[]) as new (id, name)
		on conflict (id) do update set name = excluded.name where officials.name <> excluded.name`,
		array(officials, func(o report.Official) string { return o.ID }),
		array(officials, func(o report.Official) string { return o.Name }))
}

// namedOfficialSQL writes the name that another user gave for an official: a
// known one stays, because it comes from the official's own sign-in.
const namedOfficialSQL = `insert into officials (id, name) values ($1, $2) on conflict do nothing`

// array returns one value of each row, as a type that pgx encodes without
// reflection.
func array[R, V any](rows []R, value func(R) V) pgtype.FlatArray[V] {
	values := make(pgtype.FlatArray[V], len(rows))
	for i, row := range rows {
		values[i] = value(row)
	}
	return values
}

// key returns id as a type that pgx encodes without a detour through its text.
func key(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

// optionalKey is key, and null for the zero id.
func optionalKey(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: id != uuid.Nil} }
