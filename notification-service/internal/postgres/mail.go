package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
)

// Mails are the deliveries by mail, and what came back of them.
type Mails struct {
	canceller
	pool *pgxpool.Pool
}

// Draft returns what a delivery is about now: what its reader wants and has read, and
// what is still there.
func (s *Mails) Draft(ctx context.Context, d *ledger.Delivery) (email.Draft, error) {
	switch d.Kind {
	case email.Overdue:
		return s.draftOverdue(ctx, d)
	case email.EndpointDisabled:
		return s.draftDisabled(ctx, d)
	}
	id, err := uuid.Parse(d.Target)
	if err != nil {
		return email.Draft{}, email.ErrNoContact
	}
	draft, stream, err := s.draft(ctx, id, d.Kind)
	if err != nil {
		return email.Draft{}, err
	}
	switch {
	case d.Kind == email.Code:
		return draft, nil
	case draft.Contact.State != email.Active:
		return email.Draft{}, ledger.ErrUnwanted
	case d.Kind == email.Digest:
		err = s.addWindow(ctx, &draft, stream, d)
	default:
		err = s.addNotification(ctx, &draft, stream, d)
	}
	return draft, err
}

// draft returns a contact with its token for mails of that kind, and the number
// of its reader's stream.
func (s *Mails) draft(ctx context.Context, contact uuid.UUID, kind string) (draft email.Draft, stream int64, err error) {
	rows, err := s.pool.Query(ctx, `
		select `+contactColumns+`, c.stream_id, now(), coalesce(u.token, '')
		from contacts c left join unsubscribe_tokens u on u.contact_id = c.id and u.kind = $2 where c.id = $1`, contact, kind)
	if err != nil {
		return draft, 0, fmt.Errorf("read contact: %w", err)
	}
	draft.Contact, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (email.Contact, error) {
		return scanContact(row, &stream, &draft.Now, &draft.Unsubscribe)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return draft, 0, email.ErrNoContact
	}
	if err != nil {
		return draft, 0, fmt.Errorf("read contact: %w", err)
	}
	return draft, stream, nil
}

// itemsSQL reads notifications n of the stream $1 with whether its reader has read
// them, and whether mails may be about them: an anonymous report needs the
// reader's consent. Mails contain neither moderation, nor comments, nor anything of a
// hidden report.
const itemsSQL = `
select n.id, n.type, n.data, n.withheld, coalesce(r.read, n.seq <= m.seq, false) as read, n.seq,
  not n.withheld or exists (select from mail_consents k where k.stream_id = n.stream_id and k.report_id = n.report_id) as allowed
from notifications n
left join read_marks m on m.reader = n.stream_id and m.stream_id = n.stream_id
left join notification_reads r on r.reader = n.stream_id and r.stream_id = n.stream_id and r.seq = n.seq
where n.stream_id = $1 and n.type not in ('report.moderated', 'report.commented') and `

// addNotification adds the one notification that a mail is about.
func (s *Mails) addNotification(ctx context.Context, draft *email.Draft, stream int64, d *ledger.Delivery) error {
	kind, item, err := readItem(ctx, s.pool, stream, d)
	switch {
	case err != nil:
		return err
	case !item.Withheld && !draft.Contact.Wants(kind):
		return ledger.ErrUnwanted
	}
	draft.Items, draft.Total = []wording.Item{item}, 1
	return nil
}

// readItem returns the one notification that a delivery is about, unless its reader has
// read it or has withdrawn the consent.
func readItem(ctx context.Context, q querier, stream int64, d *ledger.Delivery) (kind string, item wording.Item, err error) {
	var allowed bool
	err = q.QueryRow(ctx, itemsSQL+`n.id = $2::uuid`, stream, d.MessageID).
		Scan(nil, &kind, &item.Data, &item.Withheld, &item.Read, nil, &allowed)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", item, ledger.ErrEmpty
	case err != nil:
		return "", item, fmt.Errorf("read notification: %w", err)
	case item.Read:
		return "", item, ledger.ErrRead
	case !allowed, item.Withheld != (d.Kind == email.Anonymous):
		return "", item, ledger.ErrUnwanted
	}
	return kind, item, nil
}

// addWindow adds what a digest is about: the notifications in its range of
// numbers that are there and that no mail of their own is about, those that are
// unread first. If all have been read, there is nothing to tell.
func (s *Mails) addWindow(ctx context.Context, draft *email.Draft, stream int64, d *ledger.Delivery) error {
	var window email.Window
	if err := json.Unmarshal(d.Body, &window); err != nil {
		return fmt.Errorf("read window of a digest: %w", err)
	}
	rows, err := s.pool.Query(ctx, `
		with items as (`+itemsSQL+`n.seq > $2 and n.seq <= $3
		), told as (
		  select i.* from items i where i.allowed and not exists (
		    select from deliveries d where d.channel = 'email' and d.target = $4 and d.message_id = i.id::text
		      and d.state not in ('cancelled', 'dead'))
		)
		select data, withheld, read, count(*) over (), count(*) filter (where withheld) over (), count(*) filter (where not read) over ()
		from told order by read, withheld, seq desc limit $5`,
		stream, window.After, window.To, d.Target, email.MaxItems)
	if err != nil {
		return fmt.Errorf("read digest: %w", err)
	}
	var item wording.Item
	var unread int64
	_, err = pgx.ForEachRow(rows, []any{&item.Data, &item.Withheld, &item.Read, &draft.Total, &draft.Withheld, &unread}, func() error {
		draft.Items = append(draft.Items, item)
		item.Data = nil // the next row has bytes of its own
		return nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("read digest: %w", err)
	case draft.Total == 0:
		return ledger.ErrEmpty
	case unread == 0:
		return ledger.ErrRead
	}
	return nil
}

// UnsubscribeToken keeps a sealed token and its hash for the contact and kind,
// unless there is one, and returns the one that is kept.
func (s *Mails) UnsubscribeToken(ctx context.Context, contact uuid.UUID, kind string, hash []byte, sealed string) (string, error) {
	var kept string
	err := s.pool.QueryRow(ctx, `
		insert into unsubscribe_tokens (hash, contact_id, kind, token) values ($1, $2, $3, $4)
		on conflict (contact_id, kind) do update set token = unsubscribe_tokens.token
		returning token`, hash, contact, kind, sealed).Scan(&kept)
	if err != nil {
		return "", fmt.Errorf("keep token: %w", err)
	}
	return kept, nil
}

// MailBounced notes a bounce, once however often it comes. One that is hard, or so
// many soft ones in their period, end what is sent to the contact; so does a
// complaint.
func (s *Mails) MailBounced(ctx context.Context, b email.Bounce) error {
	state := email.Bounced
	if b.Complaint() {
		state = email.Complained
	}
	_, err := s.pool.Exec(ctx, `
		with noted as (
		  insert into mail_bounces (delivery_id, contact_id, lane, code, hard)
		  select d.id, c.id, d.lane, $2, $3 from deliveries d left join contacts c on c.id::text = d.target
		  where d.id = $1 and d.channel = 'email'
		  on conflict (delivery_id, code) do nothing
		  returning contact_id
		)
		update contacts c set state = $4, state_since = now() from noted n
		where c.id = n.contact_id and c.state in ('unverified', 'active', 'bounced') and c.state <> $4
		  and ($3 or (select count(*) from mail_bounces o
		    where o.contact_id = c.id and not o.hard and o.at > now() - $5::interval) + 1 >= $6)`,
		b.Delivery, b.Code, b.Hard, string(state), email.SoftBouncePeriod, email.MaxSoftBounces)
	if err != nil {
		return fmt.Errorf("note bounce: %w", err)
	}
	return nil
}

// MailLanes returns how the mails to each host are, those with the most that waits
// first. What waits is counted up to 100,000 over all.
func (s *Mails) MailLanes(ctx context.Context) ([]email.LaneStatus, error) {
	rows, err := s.pool.Query(ctx, `
		with waiting as (
		  select lane, count(*) as n, min(due_at) as oldest
		  from (select lane, due_at from deliveries where channel = 'email' and state = 'waiting' limit 100000) w group by lane
		)
		select coalesce(w.lane, l.lane), coalesce(w.n, 0), w.oldest, coalesce(l.rate, 0), coalesce(l.failures, 0),
		  case when l.open_until > now() then l.open_until end, l.last_success_at, l.last_failure_at
		from waiting w full join (select * from lanes where channel = 'email') l on l.lane = w.lane
		where w.n > 0 or l.last_success_at > now() - interval '30 days' or l.last_failure_at > now() - interval '30 days'
		order by 2 desc, 1 limit 500`, freshPlan)
	if err != nil {
		return nil, fmt.Errorf("count mails: %w", err)
	}
	lanes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[email.LaneStatus])
	if err != nil {
		return nil, fmt.Errorf("count mails: %w", err)
	}
	return lanes, nil
}

// MailBounces counts the bounces of the last 30 days by host and code, the most
// frequent first.
func (s *Mails) MailBounces(ctx context.Context) ([]email.BounceCount, error) {
	rows, err := s.pool.Query(ctx, `
		select lane, code, hard, count(*) from mail_bounces where at > now() - interval '30 days'
		group by lane, code, hard order by 4 desc, 1, 2 limit 500`)
	if err != nil {
		return nil, fmt.Errorf("count bounces: %w", err)
	}
	counts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[email.BounceCount])
	if err != nil {
		return nil, fmt.Errorf("count bounces: %w", err)
	}
	return counts, nil
}
