package upkeep

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/pseudonym"
)

// ErasureSteps returns the steps that erase a person here. Reports and comments
// are kept, with every link to their author removed. Votes are kept, each under
// a new random id, so that the scores still add up.
//
// Nobody may tell an erased person's anonymous reports from others: they are as those of
// somebody who never answers. So each has a new random reporter, open questions stay open
// until their time is over, and so do verdicts. Deleted is what the person said to
// officials alone: answers, with their questions, and the words of verdicts.
func (s *Store) ErasureSteps() []erasure.Step {
	return []erasure.Step{
		{Name: "reports", Do: s.eraseReports},
		{Name: "votes", Do: byReport(`
			update votes v set voter_id = 'erased:' || gen_random_uuid()
			from places p where v.report_id = p.id and v.voter_id = $1`)},
		{Name: "history", Do: byReport(`
			update status_history h set changed_by = '` + erasure.Someone + `'
			from places p where h.report_id = p.id and h.changed_by = $1`)},
		{Name: "work", Do: byReport(`
			update report_acts a
			set official_id = case when a.official_id = $1 then '` + erasure.Someone + `' else a.official_id end,
			    assignee_id = case when a.assignee_id = $1 then '` + erasure.Someone + `' else a.assignee_id end
			from places p where a.report_id = p.id and $1 in (a.official_id, a.assignee_id)`)},
		{Name: "intakes", Do: byReport(`
			update counter_reports i set entered_by = '` + erasure.Someone + `'
			from places p where i.report_id = p.id and i.entered_by = $1`)},
		{Name: "questions", Do: byReport(`
			update questions q set asked_by = '` + erasure.Someone + `'
			from places p where q.report_id = p.id and q.asked_by = $1`)},
		{Name: "complaints", Do: s.eraseComplaints},
		{Name: "guest", Do: s.eraseGuest},
		{Name: "officials", Do: eraseOfficial},
		// A change that was waiting for a report's lock may still know the
		// reporter.
		{Name: "messages", Pause: postgres.WorkTimeout + 2*time.Second, Do: s.eraseFromOutbox},
		{Name: "comments", Do: eraseComments}, // behind the pause, for the same reason
		{Name: "audit", Do: eraseFromAudit},
	}
}

// reportsAtOnce is how many reports are locked at a time.
const reportsAtOnce = 100

// eraseReports gives each of the person's reports a reporter of its own, after the names
// that others see are hidden as their reporters hide them.
func (s *Store) eraseReports(ctx context.Context, tx pgx.Tx, userID, _ string, _ int) (next string, removed int64, err error) {
	named, err := s.db.HideNames(ctx, tx, userID, reportsAtOnce)
	if err != nil {
		return "", 0, err
	}
	if named > 0 {
		return "more", 0, nil
	}
	return eraseAuthor(ctx, tx, userID, reportsAtOnce,
		`select report_id from reporters where reporter_id = $1 order by report_id limit $2`,
		`select from reports where id = any($1) order by id for no key update`,
		`delete from questions where report_id = any($1) and state = 'answered'`,
		`update verdicts set text = '', earlier = '[]' where report_id = any($1) and (text <> '' or earlier <> '[]')`,
		`update reporters set reporter_name = '', reporter_id = case when exists (select from counter_reports i where i.report_id = reporters.report_id)
			then '`+event.CallerPrefix+`' else 'erased:' end || gen_random_uuid()
		where report_id = any($1)`)
}

// eraseComments makes a person's comments anonymous: the text stays, and the
// link to its author is removed.
func eraseComments(ctx context.Context, tx pgx.Tx, userID, _ string, limit int) (next string, removed int64, err error) {
	return eraseAuthor(ctx, tx, userID, limit,
		`select comment_id from commenters where commenter_id = $1 order by comment_id limit $2`,
		`update comments set anonymous = true where id = any($1) and not anonymous`,
		`delete from commenters where comment_id = any($1)`)
}

// eraseAuthor removes the author of up to limit rows, whose ids find returns, by
// statements. Stored answers contain the author's name, and are deleted.
func eraseAuthor(ctx context.Context, tx pgx.Tx, userID string, limit int, find string, statements ...string) (next string, removed int64, err error) {
	ids, err := pgpool.Collect(ctx, tx, "find an author's rows", pgx.RowTo[uuid.UUID], find, userID, limit)
	if err != nil {
		return "", 0, err
	}
	const answers = `delete from idempotency_keys where convert_from(response_body, 'UTF8')::jsonb ->> 'id' = any($1::uuid[]::text[])`
	for _, sql := range append([]string{answers}, statements...) {
		if err := pgpool.Exec(ctx, tx, "remove an author", sql, ids); err != nil {
			return "", 0, err
		}
	}
	if len(ids) == limit {
		next = "more"
	}
	return next, int64(len(ids)), nil
}

// byReport returns a step that goes through all reports in the order of their
// ids, because no index leads from a person to their acts: change alters rows
// of the user $1 that belong to the reports in places.
func byReport(change string) func(context.Context, pgx.Tx, string, string, int) (string, int64, error) {
	return func(ctx context.Context, tx pgx.Tx, userID, cursor string, limit int) (next string, removed int64, err error) {
		var last *string
		var found int
		err = tx.QueryRow(ctx, `
			with places as materialized (
				select id from reports where id > $2::uuid order by id limit $3
			), changed as (`+change+` returning 1)
			select (select count(*) from changed), (select count(*) from places), (select id::text from places order by id desc limit 1)`,
			userID, cmp.Or(cursor, uuid.Nil.String()), limit).Scan(&removed, &found, &last)
		if err != nil {
			return "", 0, fmt.Errorf("go through reports: %w", err)
		}
		if found == limit {
			next = *last
		}
		return next, removed, nil
	}
}

// eraseOfficial unassigns an official's reports and removes their name. The
// steps before have anonymised their acts.
func eraseOfficial(ctx context.Context, tx pgx.Tx, userID, _ string, limit int) (next string, removed int64, err error) {
	tag, err := tx.Exec(ctx, `
		update reports set assignee_id = null
		where id in (select id from reports where assignee_id = $1 order by id limit $2)`, userID, limit)
	if err != nil {
		return "", 0, fmt.Errorf("unassign reports: %w", err)
	}
	if tag.RowsAffected() == int64(limit) {
		return "more", tag.RowsAffected(), nil
	}
	for _, sql := range []string{
		`update bulk_moves set official_id = '` + erasure.Someone + `' where official_id = $1`,
		`update duplicate_ends set closed_by = '` + erasure.Someone + `' where closed_by = $1`,
		`delete from queue_views where official_id = $1`,
		`delete from officials where id = $1`,
	} {
		if err := pgpool.Exec(ctx, tx, "delete official", sql, userID); err != nil {
			return "", 0, err
		}
	}
	return "", tag.RowsAffected(), nil
}

// eraseFromOutbox goes through all messages. Messages about the person's
// reports are kept, because others receive them, but lose their recipient.
func (s *Store) eraseFromOutbox(ctx context.Context, tx pgx.Tx, userID, cursor string, limit int) (next string, removed int64, err error) {
	type message struct {
		ID, Report uuid.UUID
		Payload    json.RawMessage
		Headers    map[string]string
	}
	messages, err := pgpool.Collect(ctx, tx, "read messages", pgx.RowToStructByPos[message], `
		select id, report_id, payload, headers from outbox_messages where id > $1::uuid order by id limit $2`, cmp.Or(cursor, uuid.Nil.String()), limit)
	if err != nil {
		return "", 0, err
	}
	erased := func(id string) bool { return id == userID }
	for _, m := range messages {
		payload, named := erasure.Scrub(m.Payload, erased)
		recipient, meant := erasure.Reseal(s.keys, m.Report, m.Headers[event.RecipientHeader], erased)
		if !named && !meant {
			continue
		}
		if meant {
			m.Headers[event.RecipientHeader] = recipient
		}
		err := pgpool.Exec(ctx, tx, "change message", `update outbox_messages set payload = $2, headers = $3 where id = $1`, m.ID, json.RawMessage(payload), m.Headers)
		if err != nil {
			return "", 0, err
		}
		removed++
	}
	if len(messages) == limit {
		next = messages[limit-1].ID.String()
	}
	return next, removed, nil
}

// eraseFromAudit removes an operator's name from their acts, and a person's
// name from the reasons that operators wrote.
func eraseFromAudit(ctx context.Context, tx pgx.Tx, userID, cursor string, limit int) (next string, removed int64, err error) {
	if cursor == "" {
		for _, table := range []string{"category_audit", "settings_audit"} {
			if err := pgpool.Exec(ctx, tx, "change audit of settings", `update `+table+` set actor = $2, actor_name = '' where actor = $1`, userID, erasure.Someone); err != nil {
				return "", 0, err
			}
		}
		err := pgpool.Exec(ctx, tx, "change audit of schedules", `
			update schedule_audit
			set actor = case when actor = $1 then $3 else actor end, reason = case when reason ~ $2 then '' else reason end
			where actor = $1 or reason ~ $2`, userID, erasure.Mentioned(userID), erasure.Someone)
		if err != nil {
			return "", 0, err
		}
	}
	return erasure.FromAudit(ctx, tx, userID, cursor, limit, "outbox_audit", "reason", "")
}

// eraseComplaints removes a person's complaints. A row does not identify its
// author, so that the hash of each report is compared.
func (s *Store) eraseComplaints(ctx context.Context, tx pgx.Tx, userID, cursor string, limit int) (next string, removed int64, err error) {
	ids, err := pgpool.Collect(ctx, tx, "select complaints", pgx.RowTo[uuid.UUID],
		`select distinct report_id from abuse_reports where report_id > $1::uuid order by report_id limit $2`, cmp.Or(cursor, uuid.Nil.String()), limit)
	if err != nil {
		return "", 0, err
	}
	secrets := pseudonym.Complaints(s.keys)
	var deletes pgx.Batch
	for _, id := range ids {
		deletes.Queue(`delete from abuse_reports where report_id = $1 and user_mac = any($2)`, id, pseudonym.OfComplainant(secrets, id, userID)).
			Exec(func(tag pgconn.CommandTag) error {
				removed += tag.RowsAffected()
				return nil
			})
	}
	if len(ids) > 0 {
		if err := tx.SendBatch(ctx, &deletes).Close(); err != nil {
			return "", 0, fmt.Errorf("delete complaints: %w", err)
		}
	}
	if len(ids) == limit {
		next = ids[limit-1].String()
	}
	return next, removed, nil
}

// eraseGuest removes what is kept of a person as a guest, and that an account has taken over
// a guest.
func (s *Store) eraseGuest(ctx context.Context, tx pgx.Tx, userID, _ string, _ int) (next string, removed int64, err error) {
	for _, sql := range []string{
		`delete from guest_codes where guest_mac = any($1)`,
		`delete from guests where mac = any($1)`,
		`update guests set adopted_by = null where adopted_by = any($1)`,
	} {
		tag, err := tx.Exec(ctx, sql, pseudonym.OfGuest(s.keys, userID))
		if err != nil {
			return "", 0, fmt.Errorf("erase guest: %w", err)
		}
		removed += tag.RowsAffected()
	}
	return "", removed, nil
}
