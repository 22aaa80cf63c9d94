package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// A statement is what Apply executes, in both of its forms: one transaction and one
// round trip.
//
// Each execution takes its locks in the same order: first the message ids,
// sorted, then the streams, sorted. A message that another transaction is
// just handling makes this one wait for the other's end. The row of a stream
// stays locked until the commit, so the numbers have no gap and no reader
// sees a number before the one below it.
//
// A message that was on its way to a reader when he was erased tells nobody. One
// of a report that officials have moderated since loses its words: the rows of
// moderated_reports are read for key share, which lets no moderation commit
// between what this statement reads and what it writes.
//
// Few messages are about either. The plain form writes no notification if one of the
// batch may be, nor that a message is handled; the checked form comes next then, and
// looks at each, which takes more time: see docs/decisions.
type statement struct{ plain, checked string }

// A form says what a statement writes besides notifications. A city without a mail
// server pays nothing for mails; officials are mailed about few messages, and the
// others pay nothing for that.
type form struct{ mail, notice, push bool }

// statements are those of all forms.
var statements = newStatements()

func newStatements() map[form]statement {
	all := make(map[form]statement)
	for _, push := range []bool{false, true} {
		for _, f := range []form{{}, {mail: true}, {mail: true, notice: true}} {
			more, parameters := "", 14
			if f.mail {
				more, parameters = mailSQL, 19
			}
			if f.notice {
				more, parameters = more+noticeSQL, 25
			}
			if f.push = push; push {
				more += pushSQL
			}
			owners := fmt.Sprintf("$%d", parameters+1) // what only the checked form has comes last
			all[f] = statement{
				plain:   plainDrafts + writtenSQL + more + plainNumbers,
				checked: strings.ReplaceAll(checkedDrafts, "$owners", owners) + writtenSQL + more + checkedNumbers,
			}
		}
	}
	return all
}

const freshSQL = `
with fresh as (
  insert into processed_messages (consumer, message_id)
  select $1, id from unnest($2::text[]) as m (id)`

const endedSQL = `
  order by id
  on conflict do nothing
  returning message_id
), ended as (
  delete from message_starts where queue = $1 and message_id = any($2::text[])
), resolved as (
  update dead_letters set state = 'resolved', closed_at = now()
  where queue = $1 and message_id = any($2::text[]) and state in ('open', 'replaying')
)`

const plainDrafts = freshSQL + `
  where not exists (select from erasures where user_mac = any($11))
    and not exists (
      select from moderated_reports where report_id = any($13) and version > any($14) for key share)` + endedSQL + `, drafts as (
  select d.*,
    row_number() over (partition by d.stream order by d.place) as nth,
    count(*) over (partition by d.stream) as total
  from ` + draftsSQL + `
  join fresh using (message_id)
)`

const plainNumbers = `
select f.message_id, d.id, n.epoch, n.last_seq - d.total + d.nth, false, null::jsonb
from fresh f
left join drafts d using (message_id)
left join numbered n using (stream)`

const checkedDrafts = freshSQL + endedSQL + `, erased as (
  select stream from unnest($owners::text[], $11::bytea[]) as o (stream, hash) join erasures e on e.user_mac = o.hash
), moderated as (
  select a.message_id, m.* from unnest($2::text[], $13::uuid[], $14::bigint[]) as a (message_id, report_id, report_version)
  join moderated_reports m on m.report_id = a.report_id and m.version > a.report_version
  for key share of m
), drafts as (
  select d.message_id, d.stream, d.id, d.report_id, d.report_version, d.withheld, d.place,
    case when m.hidden then 'report.moderated' else d.type end as type,
    case when m.version is null then d.data else ` + moderatedData + ` end as data,
    m.version is not null as moderated,
    row_number() over (partition by d.stream order by d.place) as nth,
    count(*) over (partition by d.stream) as total
  from ` + draftsSQL + `
  join fresh using (message_id)
  left join moderated m using (message_id)
  where d.stream not in (select stream from erased)
)`

const checkedNumbers = `
select f.message_id, d.id, n.epoch, n.last_seq - d.total + d.nth,
  exists (select from moderated m where m.message_id = f.message_id), case when d.moderated then d.data end
from fresh f
left join drafts d using (message_id)
left join numbered n using (stream)`

const draftsSQL = `unnest($3::text[], $4::text[], $5::uuid[], $6::text[], $7::uuid[], $8::bigint[], $9::jsonb[], $12::boolean[])
    with ordinality as d (message_id, stream, id, type, report_id, report_version, data, withheld, place)`

const writtenSQL = `, numbered as (
  insert into streams as s (name, last_seq)
  select stream, count(*) from drafts group by stream order by stream collate "C"
  on conflict (name) do update set last_seq = s.last_seq + excluded.last_seq
  returning s.id as stream_id, s.name as stream, s.epoch, s.last_seq
), written as (
  insert into notifications (stream_id, seq, id, message_id, type, report_id, report_version, data, created_at, withheld)
  select n.stream_id, n.last_seq - d.total + d.nth, d.id, d.message_id, d.type, d.report_id, d.report_version, d.data, $10, d.withheld
  from drafts d join numbered n using (stream)
)`

// mailSQL writes a delivery for each notification whose reader wants to be
// written to about it: of an anonymous report only if he said so when he filed
// it. The row has neither report nor message, and its id at the receiver is that
// of the notification, which only its reader knows: nothing leads from an
// address to an anonymous report, nor from a webhook to a mail about the same.
const mailSQL = `, mailed as (
  insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $15, c.lane, c.id::text, d.id::text, case when d.withheld then $16 else d.type end, ''::bytea,
    now() + $18::interval, now() + $19::interval
  from drafts d join numbered n using (stream) join contacts c on c.stream_id = n.stream_id
  where c.state = 'active' and (d.type = any(c.kinds) or d.withheld and d.type = $17)
    and (not d.withheld or exists (
      select from mail_consents m where m.stream_id = n.stream_id and m.report_id = d.report_id))
  order by d.place
)`

// noticeSQL adds reports that are overdue on the highest level to the one notice of
// the hour, which has their range of the officials' stream, or writes it.
const noticeSQL = `, noticed as (
  insert into deliveries as o (channel, lane, target, message_id, kind, body, due_at, not_after)
  select $15, $20, $21, to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24'), $22,
    convert_to(jsonb_build_object('after', min(n.last_seq - d.total + d.nth) - 1, 'to', max(n.last_seq - d.total + d.nth))::text, 'UTF8'),
    date_trunc('hour', now()) + interval '1 hour' + $23::interval, now() + $19::interval
  from drafts d join numbered n using (stream)
  where d.type = $24 and (d.data->>'overdue_level')::int >= $25
  having count(*) > 0
  on conflict (channel, target, message_id, kind) do update set body = convert_to(
    jsonb_set(convert_from(o.body, 'UTF8')::jsonb, '{to}', convert_from(excluded.body, 'UTF8')::jsonb->'to')::text, 'UTF8')
  where o.state = 'waiting'
)`

// pushSQL writes a delivery for each device of a reader who wants to be told there.
// What holds for the rows of mails holds for these. It has no parameters, whose
// numbers would depend on what comes before it; a test compares what it says with
// package push.
const pushSQL = `, pushed as (
  insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after)
  select 'push', p.lane, p.id::text, d.id::text, case when d.withheld then 'anonymous' else d.type end, ''::bytea,
    now() + interval '30 seconds', now() + interval '24 hours'
  from drafts d join numbered n using (stream) join push_preferences w on w.stream_id = n.stream_id
  join push_subscriptions p on p.stream_id = n.stream_id
  where d.type = any(w.kinds) and (not d.withheld or d.type = 'report.status.updated' and exists (
    select from mail_consents m where m.stream_id = n.stream_id and m.report_id = d.report_id))
  order by d.place, p.id
)`

// Applied is what a batch brought about.
type Applied struct {
	Batch notification.Batch
	Seen  int // messages that had their effect before
}

// Apply gives each message of the batch, which came from queue and whose ids
// are distinct, its effect in one transaction, unless it had it before. The
// Value of a message is its *notification.Effect. The statement does what
// consumer.Note does, too.
func (s *Store) Apply(ctx context.Context, queue string, batch []consumer.Message) (Applied, error) {
	if err := s.moderate(ctx, batch); err != nil {
		return Applied{}, err
	}
	followers, err := s.followers(ctx, batch)
	if err != nil {
		return Applied{}, err
	}
	args, err := newApplyArgs(batch, followers)
	if err != nil {
		return Applied{}, err
	}
	owners, hashes := s.hashes(args.streams...)
	values := []any{queue, args.ids, args.messageIDs, args.streams, args.draftIDs, args.types, args.reports, args.versions,
		args.data, args.now, hashes, args.withheld, args.about, args.aboutVersions}
	f := form{mail: s.mailAfter != nil, push: s.push}
	if f.mail {
		values = append(values, email.Channel, email.Anonymous, string(event.StatusUpdatedKey), *s.mailAfter, email.Lifetime)
		f.notice = s.notices[email.Officials] && slices.ContainsFunc(batch, longOverdue)
	}
	if f.notice {
		values = append(values,
			email.NoticeLane, email.Officials, email.Overdue, email.NoticeAfter, string(event.ReportOverdueKey), email.OverdueLevel)
	}
	numbers, err := s.write(ctx, statements[f].plain, values)
	if err == nil && len(numbers) == 0 {
		numbers, err = s.write(ctx, statements[f].checked, append(values, owners))
	}
	if err != nil {
		return Applied{}, fmt.Errorf("apply batch: %w", err)
	}
	if len(numbers) == 0 { // nothing was written, and what was seen before is acknowledged next
		if err := pgpool.Barrier(ctx, s.pool); err != nil {
			return Applied{}, err
		}
	}
	return args.applied(batch, numbers), nil
}

// write executes one of Apply's statements.
func (s *Store) write(ctx context.Context, sql string, values []any) ([]number, error) {
	rows, err := s.pool.Query(ctx, sql, values...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[number])
}

// longOverdue reports whether officials are mailed about m.
func longOverdue(m consumer.Message) bool {
	data := effectOf(m).Feed
	return data.Type == event.ReportOverdueKey && data.OverdueLevel >= email.OverdueLevel
}

func effectOf(m consumer.Message) *notification.Effect { return m.Value.(*notification.Effect) }

// A number is what the database answers for each message that was new, and
// for each of its drafts.
type number struct {
	MessageID string
	Draft     *uuid.UUID // nil for a message that concerns no stream
	Epoch     *string
	Seq       *int64
	Moderated bool            // officials have taken the words that the message came with
	Data      json.RawMessage // what is there instead; nil unless moderated
}

// applyArgs are the columns of the drafts.
type applyArgs struct {
	// By message.
	ids           []string
	about         pgtype.FlatArray[pgtype.UUID] // which report
	aboutVersions []int64

	// By draft.
	messageIDs []string
	streams    []string
	draftIDs   pgtype.FlatArray[pgtype.UUID] // which pgx encodes without a detour by their text
	types      []string
	reports    pgtype.FlatArray[pgtype.UUID]
	versions   []int64
	data       []json.RawMessage
	withheld   []bool
	now        time.Time
}

// newApplyArgs adds to the drafts of the batch one for each follower of a report
// whose status changes. Whoever is told already is told once.
func newApplyArgs(batch []consumer.Message, followers map[uuid.UUID][]notification.Stream) (*applyArgs, error) {
	n := len(batch) // most messages have one draft
	a := &applyArgs{
		ids: make([]string, 0, n), about: make([]pgtype.UUID, 0, n), aboutVersions: make([]int64, 0, n),
		messageIDs: make([]string, 0, n), streams: make([]string, 0, n), draftIDs: make([]pgtype.UUID, 0, n), types: make([]string, 0, n),
		reports: make([]pgtype.UUID, 0, n), versions: make([]int64, 0, n), data: make([]json.RawMessage, 0, n), withheld: make([]bool, 0, n),
		now: time.Now().Truncate(time.Microsecond), // as exact as a timestamptz
	}
	for _, m := range batch {
		effect := effectOf(m)
		a.ids = append(a.ids, m.ID)
		a.about = append(a.about, pgtype.UUID{Bytes: effect.Feed.ReportID, Valid: true})
		a.aboutVersions = append(a.aboutVersions, effect.Feed.ReportVersion)
		for _, d := range effect.Drafts {
			data, err := json.Marshal(d.Data)
			if err != nil {
				return nil, fmt.Errorf("encode notification: %w", err)
			}
			a.add(m.ID, d, data)
		}
		if followers == nil || effect.Feed.Type != event.StatusUpdatedKey {
			continue
		}
		data, err := json.Marshal(effect.Feed)
		if err != nil {
			return nil, fmt.Errorf("encode notification: %w", err)
		}
		for _, stream := range followers[effect.Feed.ReportID] {
			if !slices.ContainsFunc(effect.Drafts, func(d notification.Draft) bool { return d.Stream == stream }) {
				a.add(m.ID, notification.Draft{Stream: stream, ID: notification.NewID(), Data: effect.Feed, Withheld: effect.Withheld}, data)
			}
		}
	}
	return a, nil
}

func (a *applyArgs) add(messageID string, d notification.Draft, data json.RawMessage) {
	a.messageIDs = append(a.messageIDs, messageID)
	a.streams = append(a.streams, string(d.Stream))
	a.draftIDs = append(a.draftIDs, pgtype.UUID{Bytes: d.ID, Valid: true})
	a.types = append(a.types, string(d.Data.Type))
	a.reports = append(a.reports, pgtype.UUID{Bytes: d.Data.ReportID, Valid: true})
	a.versions = append(a.versions, d.Data.ReportVersion)
	a.data = append(a.data, data)
	a.withheld = append(a.withheld, d.Withheld)
}

// applied joins what was asked for with the numbers that it got.
func (a *applyArgs) applied(batch []consumer.Message, numbers []number) Applied {
	fresh := make(map[string]*number, len(batch))
	place := make(map[uuid.UUID]*number, len(numbers))
	for i := range numbers {
		n := &numbers[i]
		fresh[n.MessageID] = n
		if n.Draft != nil {
			place[*n.Draft] = n
		}
	}
	result := Applied{Batch: notification.Batch{
		Notifications: make([]notification.Notification, 0, len(place)), Feed: make([]notification.Data, 0, len(fresh)),
	}}
	for _, m := range batch {
		effect := effectOf(m)
		// Also of a message that was seen: the process that saw it may have died
		// before it told the others.
		if effect.Moderated != nil {
			result.Batch.Moderated = append(result.Batch.Moderated, notification.Moderation{
				ReportID: effect.Feed.ReportID, Version: effect.Feed.ReportVersion,
			})
		}
		switch n, ok := fresh[m.ID]; {
		case !ok:
			result.Seen++
		case effect.Public && !n.Moderated:
			result.Batch.Feed = append(result.Batch.Feed, effect.Feed)
		}
	}
	for i, id := range a.draftIDs {
		if n, ok := place[id.Bytes]; ok {
			data := a.data[i]
			if n.Moderated {
				data = n.Data
			}
			result.Batch.Notifications = append(result.Batch.Notifications, notification.Notification{
				Stream: notification.Stream(a.streams[i]), Epoch: *n.Epoch, Seq: *n.Seq, ID: id.Bytes, Data: data, CreatedAt: a.now,
			})
		}
	}
	return result
}
