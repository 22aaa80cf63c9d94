package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/erasure"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// ErasureSteps returns how a person is erased here: first the address and the devices,
// then the stream with its notifications, marks and follows, then the name in officials'
// notifications, in dead letters and in the operators' audit log. A dead letter about the person's report is
// kept, because others are notified of it, and loses its recipient.
func ErasureSteps(keys *event.Keyring) []erasure.Step {
	return []erasure.Step{
		{Name: "contact", Do: eraseTargets(email.Channel, "contacts", "digests", "mail_consents", "contact_codes", "caller_mails")},
		{Name: "devices", Do: eraseTargets(push.Channel, "push_subscriptions", "push_preferences")},
		{Name: "notifications", Do: eraseNotifications},
		{Name: "stream", Do: eraseStream},
		{Name: "askers", Do: eraseAsker},
		{Name: "dead_letters", Do: func(ctx context.Context, tx pgx.Tx, userID, cursor string, _ int) (string, int64, error) {
			return eraseFromDeadLetters(ctx, tx, keys, userID, cursor)
		}},
		{Name: "delayed_messages", Do: func(ctx context.Context, tx pgx.Tx, userID, cursor string, _ int) (string, int64, error) {
			return eraseFromDelayed(ctx, tx, keys, userID, cursor)
		}},
		{Name: "audit", Do: func(ctx context.Context, tx pgx.Tx, userID, cursor string, limit int) (string, int64, error) {
			return erasure.FromAudit(ctx, tx, userID, cursor, limit, "operations_audit", "detail", "{}")
		}},
	}
}

// Erased are the erased users, for whom nothing is written.
type Erased struct {
	pool   *pgxpool.Pool
	eraser *erasure.Eraser // may be nil
	keys   *event.Keyring
}

// hashes returns by which hashes the owners of streams would be known if they
// were erased, and the stream of each.
func (s *Erased) hashes(streams ...string) (names []string, hashes [][]byte) {
	if s.eraser == nil {
		return nil, nil
	}
	seen := make(map[string]bool, len(streams)) // a report may have thousands of followers
	for _, name := range streams {
		user, own := strings.CutPrefix(name, string(notification.UserStream("")))
		if !own || seen[name] {
			continue
		}
		seen[name] = true
		for _, hash := range s.eraser.Hashes(user) {
			names, hashes = append(names, name), append(hashes, hash)
		}
	}
	return names, hashes
}

// hideAskers removes officials who were erased from what the officials' stream is to say
// of their questions. Each replica knows of an erasure before its first step.
func (s *Erased) hideAskers(batch []Message) {
	if s.eraser == nil {
		return
	}
	for _, m := range batch {
		for i := range m.Value.Drafts {
			if data := &m.Value.Drafts[i].Data; data.AskedBy != "" && s.eraser.Erased(data.AskedBy) {
				data.AskedBy = ""
			}
		}
	}
}

// eraseTargets returns a step that removes a person's rows from tables by their stream,
// after the deliveries of the channel whose targets are in the first of them.
func eraseTargets(channel string, tables ...string) func(context.Context, pgx.Tx, string, string, int) (string, int64, error) {
	return func(ctx context.Context, tx pgx.Tx, userID, _ string, limit int) (next string, removed int64, err error) {
		err = tx.QueryRow(ctx, `
			with gone as (
			  delete from deliveries where id = any(array(
			    select d.id from deliveries d join `+tables[0]+` t on d.channel = '`+channel+`' and d.target = t.id::text
			    join streams s on s.id = t.stream_id where s.name = $1 limit $2))
			  returning id
			), attempts as (
			  delete from delivery_attempts where delivery_id in (select id from gone)
			)
			select count(*) from gone`, notification.UserStream(userID), limit).Scan(&removed)
		if err != nil {
			return "", 0, fmt.Errorf("delete deliveries: %w", err)
		}
		if removed == int64(limit) {
			return "more", removed, nil
		}
		gone, err := removeAll(ctx, tx, "delete what was chosen", notification.UserStream(userID), column(tables, func(table string) string {
			return `delete from ` + table + ` where stream_id = (select id from streams where name = $1)`
		})...)
		return "", removed + gone, err
	}
}

// eraseNotifications removes the first notifications of the stream, and notes up to where:
// others are found to be deleted by hand.
func eraseNotifications(ctx context.Context, tx pgx.Tx, userID, _ string, limit int) (next string, removed int64, err error) {
	err = tx.QueryRow(ctx, `
		with gone as (
		  delete from notifications n using (
		    select o.stream_id, o.seq from notifications o join streams s on s.id = o.stream_id
		    where s.name = $1 order by o.seq limit $2) as first
		  where n.stream_id = first.stream_id and n.seq = first.seq returning n.seq
		), noted as (
		  update streams set removed_to = last.seq from (select max(seq) as seq from gone) last where name = $1 and last.seq > removed_to
		)
		select count(*) from gone`, notification.UserStream(userID), limit).Scan(&removed)
	if err != nil {
		return "", 0, fmt.Errorf("delete notifications: %w", err)
	}
	if removed == int64(limit) {
		next = "more"
	}
	return next, removed, nil
}

// eraseStream removes the stream, with notifications that came since the others were
// removed: with its row locked nobody can add to it. A replica that has it open finds
// out when it compares its streams with the database, and ends it.
func eraseStream(ctx context.Context, tx pgx.Tx, userID, _ string, limit int) (next string, removed int64, err error) {
	if err := pgpool.Exec(ctx, tx, "lock stream", `select from streams where name = $1 for update`, notification.UserStream(userID)); err != nil {
		return "", 0, err
	}
	if _, removed, err = eraseNotifications(ctx, tx, userID, "", limit); err != nil || removed > 0 {
		return "more", removed, err
	}
	tag, err := tx.Exec(ctx, `
		delete from notification_reads where ctid = any(array(
		  select r.ctid from notification_reads r join streams s on s.id = r.reader where s.name = $1 limit $2))`,
		notification.UserStream(userID), limit)
	if err != nil {
		return "", 0, fmt.Errorf("delete what was read: %w", err)
	}
	if removed = tag.RowsAffected(); removed == int64(limit) {
		return "more", removed, nil
	}
	gone, err := removeAll(ctx, tx, "delete stream", notification.UserStream(userID),
		`delete from follows where stream_id = (select id from streams where name = $1)`,
		`delete from read_marks where reader = (select id from streams where name = $1)`,
		`delete from streams where name = $1`)
	return "", removed + gone, err
}

// removeAll executes statements that have the same parameter, and returns how many rows they
// removed.
func removeAll(ctx context.Context, tx pgx.Tx, what string, parameter any, statements ...string) (removed int64, err error) {
	for _, sql := range statements {
		tag, err := tx.Exec(ctx, sql, parameter)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", what, err)
		}
		removed += tag.RowsAffected()
	}
	return removed, nil
}

// eraseAsker removes who asked from officials' notifications about questions.
func eraseAsker(ctx context.Context, tx pgx.Tx, userID, _ string, limit int) (next string, removed int64, err error) {
	tag, err := tx.Exec(ctx, `
		update notifications n set data = n.data - 'asked_by' from (
		  select o.stream_id, o.seq from notifications o join streams s on s.id = o.stream_id
		  where (s.name = $1 or s.name like 'role:official:%') and o.type = any($2) and o.data ->> 'asked_by' = $3 limit $4) as named
		where n.stream_id = named.stream_id and n.seq = named.seq`,
		notification.Officials, []string{string(event.AnsweredKey), string(event.ExpiredKey)}, userID, limit)
	if err != nil {
		return "", 0, fmt.Errorf("change notifications: %w", err)
	}
	if tag.RowsAffected() == int64(limit) {
		next = "more"
	}
	return next, tag.RowsAffected(), nil
}

// lettersAtOnce is how many dead letters are read at a time: their bodies may
// have a megabyte each.
const lettersAtOnce = 50

func eraseFromDeadLetters(ctx context.Context, tx pgx.Tx, keys *event.Keyring, userID, cursor string) (next string, removed int64, err error) {
	if cursor == "" {
		if removed, err = eraseFromNotes(ctx, tx, userID); err != nil {
			return "", 0, err
		}
		cursor = "0"
	}
	type letter struct {
		ID      int64
		Body    []byte
		Headers json.RawMessage
		Reason  string
	}
	letters, err := pgpool.Collect(ctx, tx, "read dead letters", pgx.RowToStructByPos[letter], `
		select id, body, headers, close_reason from dead_letters where id > $1::text::bigint order by id limit $2`, cursor, lettersAtOnce)
	if err != nil {
		return "", 0, err
	}
	for _, l := range letters {
		body, headers, changed := eraseFromLetter(keys, l.Body, l.Headers, userID)
		tag, err := tx.Exec(ctx, `
			update dead_letters set body = $2, headers = $3, close_reason = case when close_reason ~ $4 then '' else close_reason end
			where id = $1 and ($5 or close_reason ~ $4)`, l.ID, body, headers, erasure.Mentioned(userID), changed)
		if err != nil {
			return "", 0, fmt.Errorf("change dead letter: %w", err)
		}
		removed += tag.RowsAffected()
	}
	if len(letters) == lettersAtOnce {
		next = strconv.FormatInt(letters[lettersAtOnce-1].ID, 10)
	}
	return next, removed, nil
}

// eraseFromNotes removes what operators noted about the person, and an operator's name
// from what they noted.
func eraseFromNotes(ctx context.Context, tx pgx.Tx, userID string) (removed int64, err error) {
	about, err := tx.Exec(ctx, `delete from dead_letter_notes where text ~ $1`, erasure.Mentioned(userID))
	if err != nil {
		return 0, fmt.Errorf("remove notes: %w", err)
	}
	by, err := tx.Exec(ctx, `update dead_letter_notes set author = $2 where author = $1`, userID, erasure.Someone)
	if err != nil {
		return 0, fmt.Errorf("change notes: %w", err)
	}
	return about.RowsAffected() + by.RowsAffected(), nil
}

// eraseFromDelayed does the same for messages that wait until a time.
func eraseFromDelayed(ctx context.Context, tx pgx.Tx, keys *event.Keyring, userID, cursor string) (next string, removed int64, err error) {
	queue, id, _ := strings.Cut(cursor, "\n")
	type message struct {
		Queue, ID string
		Body      []byte
		Headers   json.RawMessage
	}
	messages, err := pgpool.Collect(ctx, tx, "read delayed messages", pgx.RowToStructByPos[message], `
		select queue, message_id, body, headers from delayed_messages
		where (queue, message_id) > ($1, $2) order by queue, message_id limit $3`, queue, id, lettersAtOnce)
	if err != nil {
		return "", 0, err
	}
	for _, m := range messages {
		body, headers, changed := eraseFromLetter(keys, m.Body, m.Headers, userID)
		if !changed {
			continue
		}
		err := pgpool.Exec(ctx, tx, "change delayed message", `update delayed_messages set body = $3, headers = $4 where queue = $1 and message_id = $2`, m.Queue, m.ID, body, headers)
		if err != nil {
			return "", 0, err
		}
		removed++
	}
	if len(messages) == lettersAtOnce {
		next = messages[lettersAtOnce-1].Queue + "\n" + messages[lettersAtOnce-1].ID
	}
	return next, removed, nil
}

// eraseFromLetter takes a person from a message. A person whose id is known is found
// even if the body is not JSON and does not have the id in quotes.
func eraseFromLetter(keys *event.Keyring, body []byte, headers json.RawMessage, userID string) (_ []byte, _ json.RawMessage, changed bool) {
	body, headers, changed = scrubLetter(keys, body, headers, func(id string) bool { return id == userID })
	if !json.Valid(body) && bytes.Contains(body, []byte(userID)) {
		body, changed = bytes.ReplaceAll(body, []byte(userID), []byte(erasure.Someone)), true
	}
	return body, headers, changed
}

// scrubLetter takes those who are erased from a message: its body, its headers,
// and whom it is for.
func scrubLetter(keys *event.Keyring, body []byte, headers json.RawMessage, erased func(string) bool) (_ []byte, _ json.RawMessage, changed bool) {
	var about struct {
		ReportID uuid.UUID `json:"report_id"`
	}
	var table map[string]json.RawMessage
	var sealed string
	if json.Unmarshal(body, &about) == nil && json.Unmarshal(headers, &table) == nil &&
		json.Unmarshal(table[event.RecipientHeader], &sealed) == nil {
		if sealed, changed = erasure.Reseal(keys, about.ReportID, sealed, erased); changed {
			table[event.RecipientHeader] = json.RawMessage(strconv.Quote(sealed)) // letters, digits and dots
			headers, _ = json.Marshal(table)                                      // it was JSON before
		}
	}
	body, named := erasure.Scrub(body, erased)
	headers, mentioned := erasure.Scrub(headers, erased)
	return body, headers, changed || named || mentioned
}

// Scrub removes persons from dead letters that were on their way while the persons were
// erased, or hid their names.
func (s *Erased) Scrub(ctx context.Context, letters []deadletter.Letter) error {
	if err := s.hideNamesIn(ctx, letters); err != nil || s.eraser == nil {
		return err
	}
	hashes, err := pgpool.Collect(ctx, s.pool, "read who was erased", pgx.RowTo[[]byte], `select user_mac from erasures where user_mac is not null`)
	if err != nil || len(hashes) == 0 {
		return err
	}
	erased := func(userID string) bool {
		return slices.ContainsFunc(s.eraser.Hashes(userID), func(hash []byte) bool {
			return slices.ContainsFunc(hashes, func(h []byte) bool { return bytes.Equal(h, hash) })
		})
	}
	for i := range letters {
		letters[i].Body, letters[i].Headers, _ = scrubLetter(s.keys, letters[i].Body, letters[i].Headers, erased)
	}
	return nil
}
