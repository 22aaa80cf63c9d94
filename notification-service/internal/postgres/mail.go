package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/crowd"
	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// Mails are the deliveries by mail, and their bounces.
type Mails struct {
	canceller
	pool *pgxpool.Pool
}

// Draft returns the present state of a delivery's subject: what its reader has chosen
// and read, and what is still there.
func (s *Mails) Draft(ctx context.Context, d *ledger.Delivery) (email.Draft, error) {
	switch d.Kind {
	case email.Overdue:
		return s.draftOverdue(ctx, d)
	case email.EndpointDisabled, email.EndpointFailing, email.TargetDiffers:
		return s.draftEndpoint(ctx, d)
	case email.FirmAsked, email.FirmReminded, email.FirmEnded:
		return s.draftFirm(ctx, d)
	}
	id, err := uuid.Parse(d.Target)
	if err != nil {
		return email.Draft{}, email.ErrNoContact
	}
	draft, stream, err := s.draft(ctx, id, d.Kind)
	if err != nil {
		return email.Draft{}, err
	}
	if draft.Called, err = s.called(ctx, id); err != nil {
		return email.Draft{}, err
	}
	switch {
	case d.Kind == email.Code:
		return draft, nil
	case d.Kind == email.Proof && draft.Called != nil && draft.Contact.State == email.Unverified:
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
	draft.Contact, err = pgpool.One(ctx, s.pool, "read contact", email.ErrNoContact, func(row pgx.CollectableRow) (email.Contact, error) {
		return scanContact(row, &stream, &draft.Now, &draft.Unsubscribe)
	}, `
		select `+contactColumns+`, c.stream_id, now(), coalesce(u.token, '')
		from contacts c left join unsubscribe_tokens u on u.contact_id = c.id and u.kind = $2 where c.id = $1`, contact, kind)
	return draft, stream, err
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
	case !item.Withheld && !slices.Contains(draft.Contact.Kinds, kind):
		return ledger.ErrUnwanted
	}
	draft.Items, draft.Total = []wording.Item{item}, 1
	return nil
}

// overtakenSQL reports whether the reader has a newer status of the same report.
// Deliveries are not sent in order, and come to a mailbox that cannot compare
// versions: what it got last has to be what holds. A reply neither overtakes
// anything nor is overtaken: it has words of its own, and no status.
const overtakenSQL = `
select exists (
  select from notifications n join notifications newer on newer.report_id = n.report_id and newer.stream_id = n.stream_id
    and newer.type = n.type and newer.report_version > n.report_version and not newer.data ? 'reply'
  where n.id = $1::uuid and n.type = 'report.status.updated' and not n.data ? 'reply')`

// readItem returns the one notification that a delivery is about, unless its reader has
// read it, has a newer one or has withdrawn the consent.
func readItem(ctx context.Context, q pgpool.Querier, stream int64, d *ledger.Delivery) (kind string, item wording.Item, err error) {
	var allowed bool
	err = q.QueryRow(ctx, itemsSQL+`n.id = $2::uuid`, stream, d.MessageID).
		Scan(nil, &kind, &item.Data, &item.Withheld, &item.Read, nil, &allowed)
	err = pgpool.Found(err, "read notification", ledger.ErrEmpty)
	switch {
	case err != nil:
		return "", item, err
	case item.Read:
		return "", item, ledger.ErrRead
	case !allowed, item.Withheld != (d.Kind == email.Anonymous):
		return "", item, ledger.ErrUnwanted
	}
	overtaken, err := pgpool.Value[bool](ctx, q, "look for a newer notification", overtakenSQL, d.MessageID)
	if err != nil {
		return "", item, err
	}
	if overtaken {
		return "", item, ledger.ErrOvertaken
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
	var item wording.Item
	var unread int64
	err := pgpool.ForEach(ctx, s.pool, "read digest", []any{&item.Data, &item.Withheld, &item.Read, &draft.Total, &draft.Withheld, &unread}, func() error {
		draft.Items = append(draft.Items, item)
		item.Data = nil // the next row has bytes of its own
		return nil
	}, `
		with items as (`+itemsSQL+`n.seq > $2 and n.seq <= $3
		), told as (
		  select i.* from items i where i.allowed and not exists (
		    select from deliveries d where d.channel = 'email' and d.target = $4 and d.message_id = i.id::text
		      and d.state not in ('cancelled', 'dead'))
		)
		select data, withheld, read, count(*) over (), count(*) filter (where withheld) over (), count(*) filter (where not read) over ()
		from told order by read, withheld, seq desc limit $5`,
		stream, window.After, window.To, d.Target, email.MaxItems)
	switch {
	case err != nil:
		return err
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
	return pgpool.Value[string](ctx, s.pool, "keep token", `
		insert into unsubscribe_tokens (hash, contact_id, kind, token) values ($1, $2, $3, $4)
		on conflict (contact_id, kind) do update set token = unsubscribe_tokens.token
		returning token`, hash, contact, kind, sealed)
}

// MailBounced notes a bounce, once however often it comes: see MailRefused.
func (s *Mails) MailBounced(ctx context.Context, b email.Bounce) error {
	_, err := s.MailRefused(ctx, b)
	return err
}

// MailRefused notes what a server said of an address, once however often it says
// so. One that is hard, soft ones on so many days of their period, and a complaint
// end what is sent to the contact. In a burst of hard ones the contacts stay as
// they were before it, and their mails wait.
func (s *Mails) MailRefused(ctx context.Context, b email.Bounce) (burst bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// One after the other, so that each counts those before it.
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('mail_bounces'))`); err != nil {
			return err
		}
		var contact *uuid.UUID
		err := tx.QueryRow(ctx, `
			insert into mail_bounces (delivery_id, contact_id, lane, code, hard)
			select d.id, c.id, d.lane, $2, $3 from deliveries d left join contacts c on c.id::text = d.target
			where d.id = $1 and d.channel = 'email'
			on conflict (delivery_id, code) do update set at = now(), ours = false where mail_bounces.ours
			returning contact_id`, b.Delivery, b.Code, b.Hard).Scan(&contact)
		switch {
		case err != nil: // or it was noted before
			return pgpool.Found(err, "insert bounce", nil)
		case b.Hard && !b.Complaint():
			if burst, err = isBurst(ctx, tx); err != nil {
				return err
			}
			if burst {
				_, err = tx.Exec(ctx, `update mail_bounces set ours = true where hard and code <> $2 and at > now() - $1::interval`,
					email.BurstPeriod, email.Complaint)
				if err != nil {
					return err
				}
				return takeBack(ctx, tx)
			}
		}
		if contact == nil {
			return nil
		}
		state := email.Bounced
		if b.Complaint() {
			state = email.Complained
		}
		_, err = tx.Exec(ctx, `
			update contacts c set state = $2, state_since = now()
			where c.id = $1 and c.state in ('unverified', 'active', 'bounced') and c.state <> $2
			  and ($3 or $4 <= (
			    select count(distinct (o.at at time zone 'UTC')::date) from mail_bounces o
			    where o.contact_id = c.id and not o.hard and not o.ours and o.code !~ $6 and o.at > now() - $5::interval))`,
			*contact, string(state), b.Hard, email.MaxSoftBounces, email.SoftBouncePeriod, email.SenderCodes)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("note bounce: %w", err)
	}
	return burst, nil
}

// isBurst reports whether too many addresses were refused within the period to be
// the fault of each. Who got their mails is counted among the latest, whose number
// is bounded.
func isBurst(ctx context.Context, tx pgx.Tx) (burst bool, err error) {
	err = tx.QueryRow(ctx, `
		with refused as (
		  select distinct d.target from mail_bounces b join deliveries d on d.id = b.delivery_id
		  where b.hard and b.code <> $3 and b.at > now() - $1::interval
		), taken as (
		  select distinct l.target from (
		    select channel, state, target, done_at from deliveries order by id desc limit 2000) l
		  where l.channel = 'email' and l.state = 'done' and l.done_at > now() - $1::interval
		    and l.target not in (select target from refused)
		)
		select count(*) >= $2 and count(*) >= (select count(*) from taken) from refused`,
		email.BurstPeriod, email.BurstSize, email.Complaint).Scan(&burst)
	return burst, err
}

// TakeBackBurst takes back what followed from a burst that is not over: outcomes
// of mails are recorded a moment after their answers.
func (s *Mails) TakeBackBurst(ctx context.Context) error {
	if err := takeBack(ctx, s.pool); err != nil {
		return fmt.Errorf("take back a burst of bounces: %w", err)
	}
	return nil
}

// takeBack leaves the contacts of a burst as they were before it, and lets their
// mails wait.
func takeBack(ctx context.Context, q interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}) error {
	_, err := q.Exec(ctx, `
		with ours as (
		  select contact_id, delivery_id from mail_bounces where hard and ours and at > now() - $1::interval
		), contacts_back as (
		  update contacts c set state = case when c.code_mac is null then 'active' else 'unverified' end, state_since = now()
		  where c.id in (select contact_id from ours) and c.state = 'bounced' and c.state_since > now() - $1::interval
		)
		update deliveries d set state = 'waiting', due_at = now() + $2::interval, done_at = null
		where d.channel = 'email' and d.done_at > now() - $1::interval and d.not_after > now()
		  and (d.id in (select delivery_id from ours) and d.state = 'dead'
		    or d.target in (select contact_id::text from ours) and d.state = 'cancelled' and d.last_class = 'unwanted')`,
		email.BurstPeriod, email.BurstPause)
	return err
}

// MailFigures returns what operators may know of mails. Hosts where few people
// have an address are counted together, and so are lanes of codes with those of
// their hosts.
func (s *Mails) MailFigures(ctx context.Context, rounding *crowd.Rounding) (email.Figures, error) {
	var now time.Time
	var named []string
	err := s.pool.QueryRow(ctx, `
		select now(), array(
		  select lane from contacts where lane = any($1) and state <> 'unverified'
		  group by lane having count(*) >= $2 order by lane)`, email.Hosts, crowd.Size).Scan(&now, &named)
	if err != nil {
		return email.Figures{}, fmt.Errorf("count contacts by host: %w", err)
	}
	now = now.UTC()
	figures := email.Figures{AsOf: now.Truncate(time.Hour)}
	if figures.Lanes, err = s.stuckMails(ctx, rounding, figures.AsOf, append(named, email.Others)); err != nil {
		return email.Figures{}, err
	}
	if figures.Bounces, err = s.bounces(ctx, rounding, now.Truncate(24*time.Hour), named); err != nil {
		return email.Figures{}, err
	}
	return figures, nil
}

// stuckMails counts the people whose mails are stuck. A mail is stuck since it was
// due, or since its first attempt. A lane counts as stuck since the last person of the
// smallest crowd that is shown: the oldest mail would reveal one person.
func (s *Mails) stuckMails(ctx context.Context, rounding *crowd.Rounding, asOf time.Time, lanes []string) ([]email.LaneStatus, error) {
	offsets := make([]int, len(lanes))
	for i, lane := range lanes {
		offsets[i] = rounding.Offset("stuck", lane, asOf.Format(time.RFC3339))
	}
	statuses, err := pgpool.Collect(ctx, s.pool, "count mails", pgx.RowToStructByPos[email.LaneStatus], `
		with waiting as (
		  select d.lane, d.target, case when d.attempts = 0 then d.due_at
		    else coalesce((select a.at from delivery_attempts a where a.delivery_id = d.id and a.n = 1), d.due_at) end as since
		  from deliveries d where d.channel = 'email' and d.state = 'waiting' and d.created_at < $1 limit 100000
		), people as (
		  select coalesce(n.lane, $2) as lane, w.target, min(w.since) as since
		  from waiting w left join unnest($3::text[]) as n (lane) on w.lane in (n.lane, $4 || n.lane)
		  where w.since < $1 group by 1, 2
		)
		select l.lane, count(p.target), (array_agg(p.since order by p.since))[$6 + l.moved]
		from unnest($3::text[], $5::int[]) with ordinality as l (lane, moved, place) left join people p using (lane)
		group by l.lane, l.moved, l.place order by l.place`, freshPlan,
		asOf.Add(-email.StuckAfter), email.Others, lanes, email.CodeLane(""), offsets, crowd.Size)
	if err != nil {
		return nil, err
	}
	for i := range statuses {
		status := &statuses[i]
		status.Waiting = crowd.Shown(status.Waiting, offsets[i])
		if status.Since != nil {
			*status.Since = status.Since.UTC().Truncate(time.Hour)
		}
	}
	return statuses, nil
}

// bounces counts the people whose mails bounced in the 30 days before today, by
// host and code, the most frequent first. A bounce is in the figures of 30 days,
// so that their boundaries stay for a month: if they moved each day, the days
// together would reveal the number.
func (s *Mails) bounces(ctx context.Context, rounding *crowd.Rounding, today time.Time, named []string) ([]email.BounceCount, error) {
	counts, err := pgpool.Collect(ctx, s.pool, "count bounces", pgx.RowToStructByPos[email.BounceCount], `
		select coalesce(n.lane, $2), b.code, b.hard, count(distinct coalesce(b.contact_id::text, b.delivery_id::text))
		from mail_bounces b left join unnest($3::text[]) as n (lane) on b.lane in (n.lane, $4 || n.lane)
		where b.at < $1 and b.at >= $1 - interval '30 days'
		group by 1, 2, 3`, today, email.Others, named, email.CodeLane(""))
	if err != nil {
		return nil, err
	}
	month := today.Format("2006-01")
	for i := range counts {
		c := &counts[i]
		c.People = rounding.Round(c.People, "bounces", c.Lane, c.Code, strconv.FormatBool(c.Hard), month)
	}
	counts = slices.DeleteFunc(counts, func(c email.BounceCount) bool { return c.People == 0 })
	slices.SortFunc(counts, func(a, b email.BounceCount) int { // by the figures that are shown, so that the order says nothing more
		return cmp.Or(b.People-a.People, cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Code, b.Code))
	})
	return counts, nil
}
