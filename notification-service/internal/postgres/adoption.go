package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/push"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// adoptedConstraint is the check that no notification is numbered in the stream of a
// guest whom an account has taken over.
const adoptedConstraint = "streams_adopted"

// adoptedLife is how long it is remembered to whom a message to a guest goes by now: dead
// letters may be replayed so late.
const adoptedLife = 90 * 24 * time.Hour

// An Adoption says that an account takes over what a guest has.
type Adoption struct{ Guest, Account string }

// Adoptions are guests whom accounts take over.
//
// A message that is for the guest may be handled before, while or after the guest's stream is
// moved. Who numbers a notification in a stream locks its row, as the move does. So it
// either comes before the move, which takes it along, or it finds the row that the move
// leaves in the place of the stream, and which refuses a number: Effects.Apply then looks
// up the account.
type Adoptions struct {
	pool   *pgxpool.Pool
	erased *Erased
}

// Adopted reports whether an account has taken over the guest.
func (s *Adoptions) Adopted(ctx context.Context, guestID string) (adopted bool, err error) {
	return pgpool.Value[bool](ctx, s.pool, "look up guest", `select exists (select from streams where name = $1 and adopted_at is not null)`, notification.UserStream(guestID))
}

// Apply makes each adoption of the batch, which came from queue, unless its message was
// seen before. It returns how many were, the last notification of each stream that started
// over, and for each guest one with the number 0: by these their readers find out.
func (s *Adoptions) Apply(ctx context.Context, queue string, batch []consumer.Parsed[Adoption]) (seen int, moved []notification.Notification, err error) {
	ids := column(batch, func(m consumer.Parsed[Adoption]) string { return m.ID })
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		fresh, err := pgpool.Collect(ctx, tx, "note messages", pgx.RowTo[string], consumer.NoteSQL+`select message_id from fresh`, queue, ids)
		if err != nil {
			return err
		}
		seen = len(batch) - len(fresh)
		for _, m := range batch {
			if !slices.Contains(fresh, m.ID) {
				continue
			}
			ends, err := s.adopt(ctx, tx, m.Value)
			if err != nil {
				return err
			}
			moved = append(moved, ends...)
		}
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	return seen, moved, nil
}

// A move is the two streams of an adoption, locked, and what is added to the guest's
// numbers.
type move struct {
	guest, account, shift int64
	doubles               []int64 // the guest's numbers of messages that the account has, which stay behind
}

// movedSQL is the account's number for one of the guest's, by shift and doubles.
func movedSQL(number, shift, doubles string) string {
	return fmt.Sprintf("%[1]s + %[2]s - (select count(*) from unnest(%[3]s::bigint[]) as d (double) where double <= %[1]s)", number, shift, doubles)
}

func (s *Adoptions) adopt(ctx context.Context, tx pgx.Tx, a Adoption) (ends []notification.Notification, err error) {
	guest, account := notification.UserStream(a.Guest), notification.UserStream(a.Account)
	// Nothing is kept for an account that is erased, nor for one that is nobody by now.
	gone := a.Account == ""
	if _, hashes := s.erased.hashes(string(account)); !gone && len(hashes) > 0 {
		if err := tx.QueryRow(ctx, `select exists (select from erasures where user_mac = any($1))`, hashes).Scan(&gone); err != nil {
			return nil, fmt.Errorf("look up erasure: %w", err)
		}
	}
	names := []notification.Stream{guest}
	if !gone {
		names = append(names, account)
	}
	slices.Sort(names) // the order in which all transactions lock
	var m move
	var base int64
	done := false
	var name notification.Stream
	var id, seq int64
	var adopted bool
	err = pgpool.ForEach(ctx, tx, "lock streams", []any{&name, &id, &seq, &adopted}, func() error {
		if name == guest {
			m.guest, done = id, adopted
		} else {
			m.account, base = id, seq
		}
		return nil
	}, `
		insert into streams as s (name) select name from unnest($1::text[]) with ordinality as n (name, place) order by place
		on conflict (name) do update set last_seq = s.last_seq
		returning s.name, s.id, s.last_seq, s.adopted_at is not null`, names)
	if err != nil {
		return nil, err
	}
	if done {
		return nil, nil
	}
	if !gone {
		last, err := moveStream(ctx, tx, m, base, account)
		if err != nil {
			return nil, err
		}
		if last != nil {
			ends = append(ends, *last)
		}
	}
	end, err := leaveMark(ctx, tx, m, guest)
	return append(ends, end), err
}

// moveStream puts the guest's notifications behind those of the account, unread where the
// guest had not read them, and gives the account what the guest chose. A message that both
// have is one notification, the account's.
func moveStream(ctx context.Context, tx pgx.Tx, m move, base int64, account notification.Stream) (last *notification.Notification, err error) {
	var count int64
	err = tx.QueryRow(ctx, `
		select count(*) filter (where o.seq is null), $3 + 1 - coalesce(min(n.seq), 0), coalesce(array_agg(n.seq) filter (where o.seq is not null), '{}')
		from notifications n left join notifications o on o.report_id = n.report_id and o.message_id = n.message_id and o.stream_id = $2
		where n.stream_id = $1`, m.guest, m.account, base).Scan(&count, &m.shift, &m.doubles)
	if err != nil {
		return nil, fmt.Errorf("count notifications: %w", err)
	}
	if count+int64(len(m.doubles)) > 0 {
		if last, err = moveNotifications(ctx, tx, m, count, account); err != nil {
			return nil, err
		}
	}
	for _, sql := range []string{
		`insert into follows (stream_id, report_id, followed_at) select $2, report_id, followed_at from follows where stream_id = $1 on conflict do nothing`,
		`insert into mail_consents (stream_id, report_id, created_at) select $2, report_id, created_at from mail_consents where stream_id = $1 on conflict do nothing`,
		`insert into push_preferences (stream_id, kinds) select $2, kinds from push_preferences where stream_id = $1 on conflict do nothing`,
		`update push_subscriptions set stream_id = $2 where stream_id = $1`,
		`update contact_codes set stream_id = $2 where stream_id = $1`,
	} {
		if err := pgpool.Exec(ctx, tx, "move what a guest chose", sql, m.guest, m.account); err != nil {
			return nil, err
		}
	}
	return last, moveContact(ctx, tx, m)
}

// moveNotifications gives the account's stream another epoch: clients fetch its list
// again, instead of being shown as new what their reader knows from before signing in.
func moveNotifications(ctx context.Context, tx pgx.Tx, m move, count int64, account notification.Stream) (*notification.Notification, error) {
	read, err := pgpool.Collect(ctx, tx, "read marks", pgx.RowTo[int64], `
		with marks as (
		  select n.report_id, n.message_id, n.seq, coalesce(r.read, n.seq <= k.seq, false) as read
		  from notifications n left join read_marks k on k.reader = $1 and k.stream_id = $1
		  left join notification_reads r on r.reader = $1 and r.stream_id = $1 and r.seq = n.seq where n.stream_id = $1
		)
		select case when n.seq = any($3) then o.seq else `+movedSQL("n.seq", "$4", "$3")+` end
		from marks n left join notifications o on o.report_id = n.report_id and o.message_id = n.message_id and o.stream_id = $2
		where n.read order by 1`, m.guest, m.account, m.doubles, m.shift)
	if err != nil {
		return nil, err
	}
	var b pgx.Batch
	b.Queue(`delete from notification_reads where stream_id = $1`, m.guest)
	b.Queue(`
		with gone as (delete from notifications where stream_id = $1 and seq = any($3) returning report_id, message_id, data)
		update notifications n set data = g.data || n.data -- with what only the reporter gets
		from gone g where n.report_id = g.report_id and n.message_id = g.message_id and n.stream_id = $2`, m.guest, m.account, m.doubles)
	b.Queue(`update notifications set stream_id = $2, seq = `+movedSQL("seq", "$3", "$4")+` where stream_id = $1`, m.guest, m.account, m.shift, m.doubles)
	b.Queue(`
		insert into notification_reads (reader, stream_id, seq, read) select $1, $1, seq, true from unnest($2::bigint[]) as r (seq)
		on conflict (reader, stream_id, seq) do update set read = true`, m.account, read)
	b.Queue(`update streams set last_seq = last_seq + $2, epoch = default where id = $1`, m.account, count)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("move notifications: %w", err)
	}
	last := notification.Notification{Stream: account}
	err = tx.QueryRow(ctx, `
		select s.epoch, n.seq, n.id, n.data, n.created_at from streams s join notifications n on n.stream_id = s.id and n.seq = s.last_seq where s.id = $1`, m.account).
		Scan(&last.Epoch, &last.Seq, &last.ID, &last.Data, &last.CreatedAt)
	if err != nil {
		return nil, fmt.Errorf("read head of a stream: %w", err)
	}
	return &last, nil
}

// moveContact makes the guest's address the account's. An account that has an address keeps
// it, and gets the guest's waiting mails there.
func moveContact(ctx context.Context, tx pgx.Tx, m move) error {
	type contact struct {
		ID   uuid.UUID
		Lane string
	}
	read := func(stream int64) (c []contact, err error) {
		return pgpool.Collect(ctx, tx, "read contact", pgx.RowToStructByPos[contact], `select id, lane from contacts where stream_id = $1 for update`, stream)
	}
	theirs, err := read(m.guest)
	if err != nil || len(theirs) == 0 {
		return err
	}
	own, err := read(m.account)
	if err != nil {
		return err
	}
	var b pgx.Batch
	if len(own) > 0 {
		b.Queue(`
			update deliveries set target = $2, lane = $3 where channel = $4 and target = $1 and state = 'waiting' and kind <> all($5)`,
			theirs[0].ID.String(), own[0].ID.String(), own[0].Lane, email.Channel, []string{email.Code, email.Digest})
		b.Queue(`delete from contacts where id = $1`, theirs[0].ID)
	} else {
		b.Queue(`update contacts set stream_id = $2 where stream_id = $1`, m.guest, m.account)
		b.Queue(`update digests set stream_id = $2, sent_seq = greatest(0, `+movedSQL("sent_seq", "$3", "$4")+`) where stream_id = $1`, m.guest, m.account, m.shift, m.doubles)
		b.Queue(`
			update deliveries set body = convert_to(jsonb_build_object(
			  'after', `+movedSQL("(convert_from(body, 'UTF8')::jsonb->>'after')::bigint", "$4", "$5")+`,
			  'to', `+movedSQL("(convert_from(body, 'UTF8')::jsonb->>'to')::bigint", "$4", "$5")+`)::text, 'UTF8')
			where channel = $2 and target = $1 and kind = $3 and state = 'waiting'`, theirs[0].ID.String(), email.Channel, email.Digest, m.shift, m.doubles)
	}
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return fmt.Errorf("move contact: %w", err)
	}
	return nil
}

// leaveMark puts a row in the place of the guest's stream, with what is left of it, that leads to the
// account. It has another id: a request of the guest that is still going on fails, instead of
// writing what nobody would ever read.
func leaveMark(ctx context.Context, tx pgx.Tx, m move, guest notification.Stream) (notification.Notification, error) {
	end := notification.Notification{Stream: guest, ID: notification.NewID(), Data: json.RawMessage(`{}`), CreatedAt: time.Now()}
	var b pgx.Batch
	b.Queue(`
		delete from deliveries d where d.state = 'waiting' and (d.channel, d.target) in (
		  select $2, id::text from contacts where stream_id = $1 union all select $3, id::text from push_subscriptions where stream_id = $1)`,
		m.guest, email.Channel, push.Channel)
	b.Queue(`delete from notifications where stream_id = $1`, m.guest)
	b.Queue(`delete from notification_reads where reader = $1`, m.guest)
	b.Queue(`delete from read_marks where reader = $1`, m.guest)
	b.Queue(`delete from streams where id = $1`, m.guest)
	b.Queue(`insert into streams (name, adopted_at, adopted_by) values ($1, now(), nullif($2::bigint, 0)) returning epoch`, guest, m.account).
		QueryRow(func(row pgx.Row) error { return row.Scan(&end.Epoch) })
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return end, fmt.Errorf("end a guest's stream: %w", err)
	}
	return end, nil
}

// readdress leads drafts for guests whom accounts have taken over to the accounts. A reader who
// would get the same message twice, as an account and as a guest, gets it once; a draft whose
// account is gone is dropped.
func (a *applyArgs) readdress(ctx context.Context, pool *pgxpool.Pool) error {
	accounts := make(map[notification.Stream]notification.Stream)
	var guest, account notification.Stream
	err := pgpool.ForEach(ctx, pool, "look up accounts of guests", []any{&guest, &account}, func() error { accounts[guest] = account; return nil }, `
		select g.name, coalesce(s.name, '') from streams g left join streams s on s.id = g.adopted_by
		where g.name = any($1) and g.adopted_at is not null`, a.streams())
	if err != nil {
		return err
	}
	for i, d := range a.drafts {
		if account, ok := accounts[d.stream]; ok {
			a.drafts[i].stream = account
		}
	}
	taken := make(map[place]bool)
	a.drafts = slices.DeleteFunc(a.drafts, func(d draft) bool {
		at := place{d.message, d.stream}
		drop := d.stream == "" || taken[at]
		taken[at] = true
		return drop
	})
	return nil
}
