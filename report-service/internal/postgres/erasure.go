package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/event"
)

// ErasureSteps returns how a person is erased here. His reports stay, and are
// nobody's: what links him to them goes. So do his comments. His votes stay, each under a name of its
// own that was never anybody's, so that the scores still add up.
func (s *Upkeep) ErasureSteps() []erasure.Step {
	keys := s.db.keys
	return []erasure.Step{
		{Name: "reports", Do: eraseReports},
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
		{Name: "complaints", Do: func(ctx context.Context, tx pgx.Tx, userID, cursor string, limit int) (string, int64, error) {
			return eraseComplaints(ctx, tx, keys, userID, cursor, limit)
		}},
		{Name: "officials", Do: eraseOfficial},
		// A change that was waiting for a report's lock may know its reporter still.
		{Name: "messages", Pause: workTimeout + 2*time.Second, Do: func(ctx context.Context, tx pgx.Tx, userID, cursor string, limit int) (string, int64, error) {
			return eraseFromOutbox(ctx, tx, keys, userID, cursor, limit)
		}},
		{Name: "comments", Do: eraseComments}, // behind the pause, for the same reason
		{Name: "audit", Do: eraseFromAudit},
	}
}

// reportsAtOnce is how many reports are locked at a time.
const reportsAtOnce = 100

// eraseReports takes from reports who filed them.
func eraseReports(ctx context.Context, tx pgx.Tx, userID, _ string, _ int) (next string, removed int64, err error) {
	ids, err := collect(ctx, tx, "find reports", pgx.RowTo[uuid.UUID],
		`select report_id from reporters where reporter_id = $1 order by report_id limit $2`, userID, reportsAtOnce)
	if err != nil {
		return "", 0, err
	}
	// The answers that are kept for repetitions have his name.
	_, err = tx.Exec(ctx, `
		delete from idempotency_keys
		where convert_from(response_body, 'UTF8')::jsonb ->> 'id' = any($1::uuid[]::text[])`, ids)
	if err != nil {
		return "", 0, fmt.Errorf("delete idempotency keys: %w", err)
	}
	for _, sql := range []string{
		`select from reports where id = any($1) order by id for no key update`,
		`update reports set privacy_level = 'anonymous' where id = any($1) and privacy_level <> 'anonymous'`,
		`delete from reporters where report_id = any($1)`,
	} {
		if _, err := tx.Exec(ctx, sql, ids); err != nil {
			return "", 0, fmt.Errorf("take the reporter from reports: %w", err)
		}
	}
	if len(ids) == reportsAtOnce {
		next = "more"
	}
	return next, int64(len(ids)), nil
}

// byReport returns a step that goes through all reports in the order of their
// ids, because no index leads from a person to what he did: change alters rows
// of the user $1 that belong to the reports in places.
func byReport(change string) func(context.Context, pgx.Tx, string, string, int) (string, int64, error) {
	return func(ctx context.Context, tx pgx.Tx, userID, cursor string, limit int) (next string, removed int64, err error) {
		var last *string
		var found int
		if cursor == "" {
			cursor = uuid.Nil.String()
		}
		err = tx.QueryRow(ctx, `
			with places as materialized (
				select id from reports where id > $2::uuid order by id limit $3
			), changed as (`+change+` returning 1)
			select (select count(*) from changed), (select count(*) from places), (select id::text from places order by id desc limit 1)`,
			userID, cursor, limit).Scan(&removed, &found, &last)
		if err != nil {
			return "", 0, fmt.Errorf("go through reports: %w", err)
		}
		if found == limit {
			next = *last
		}
		return next, removed, nil
	}
}

// eraseOfficial takes from an official the reports that he has, and his name.
// What he did is nobody's by then.
func eraseOfficial(ctx context.Context, tx pgx.Tx, userID, _ string, limit int) (next string, removed int64, err error) {
	tag, err := tx.Exec(ctx, `
		update reports set assignee_id = null
		where id in (select id from reports where assignee_id = $1 order by id limit $2)`, userID, limit)
	if err != nil {
		return "", 0, fmt.Errorf("take reports from an official: %w", err)
	}
	if tag.RowsAffected() == int64(limit) {
		return "more", tag.RowsAffected(), nil
	}
	for _, sql := range []string{
		`update bulk_moves set official_id = '` + erasure.Someone + `' where official_id = $1`,
		`update duplicate_ends set closed_by = '` + erasure.Someone + `' where closed_by = $1`,
		`delete from officials where id = $1`,
	} {
		if _, err := tx.Exec(ctx, sql, userID); err != nil {
			return "", 0, fmt.Errorf("forget an official: %w", err)
		}
	}
	return "", tag.RowsAffected(), nil
}

// eraseFromOutbox goes through all messages. Those about the person's reports
// stay, because others are told of them, and are for nobody any more.
func eraseFromOutbox(ctx context.Context, tx pgx.Tx, keys *event.Keyring, userID, cursor string, limit int) (next string, removed int64, err error) {
	if cursor == "" {
		cursor = uuid.Nil.String()
	}
	type message struct {
		ID, Report uuid.UUID
		Payload    json.RawMessage
		Headers    map[string]string
	}
	messages, err := collect(ctx, tx, "read messages", pgx.RowToStructByPos[message], `
		select id, report_id, payload, headers from outbox_messages where id > $1::uuid order by id limit $2`, cursor, limit)
	if err != nil {
		return "", 0, err
	}
	him := func(id string) bool { return id == userID }
	for _, m := range messages {
		payload, named := erasure.Scrub(m.Payload, him)
		recipient, meant := erasure.Reseal(keys, m.Report, m.Headers[event.RecipientHeader], him)
		if !named && !meant {
			continue
		}
		m.Headers[event.RecipientHeader] = recipient
		_, err := tx.Exec(ctx, `update outbox_messages set payload = $2, headers = $3 where id = $1`, m.ID, json.RawMessage(payload), m.Headers)
		if err != nil {
			return "", 0, fmt.Errorf("change message: %w", err)
		}
		removed++
	}
	if len(messages) == limit {
		next = messages[limit-1].ID.String()
	}
	return next, removed, nil
}

// eraseFromAudit takes an operator's name from what he did, and a person's from
// the reasons that operators wrote.
func eraseFromAudit(ctx context.Context, tx pgx.Tx, userID, cursor string, limit int) (next string, removed int64, err error) {
	if cursor == "" {
		if _, err := tx.Exec(ctx, `update erasures set actor = $2 where actor = $1`, userID, erasure.Someone); err != nil {
			return "", 0, fmt.Errorf("change erasures: %w", err)
		}
		_, err := tx.Exec(ctx, `
			update schedule_audit
			set actor = case when actor = $1 then $3 else actor end, reason = case when reason ~ $2 then '' else reason end
			where actor = $1 or reason ~ $2`, userID, erasure.Mentioned(userID), erasure.Someone)
		if err != nil {
			return "", 0, fmt.Errorf("change audit of schedules: %w", err)
		}
		cursor = "0"
	}
	var last *string
	var found int
	err = tx.QueryRow(ctx, `
		with places as materialized (
			select id from outbox_audit where id > $2::text::bigint order by id limit $3
		), changed as (
			update outbox_audit a
			set actor = case when actor = $1 then $5 else actor end, reason = case when reason ~ $4 then '' else reason end
			from places p where a.id = p.id and (actor = $1 or reason ~ $4) returning 1
		)
		select (select count(*) from changed), (select count(*) from places), (select max(id)::text from places)`,
		userID, cursor, limit, erasure.Mentioned(userID), erasure.Someone).Scan(&removed, &found, &last)
	if err != nil {
		return "", 0, fmt.Errorf("change audit: %w", err)
	}
	if found == limit {
		next = *last
	}
	return next, removed, nil
}
