package postgres

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/ledger"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

const contactColumns = `c.id, c.address, c.lane, c.language, c.zone, c.state, c.kinds, c.quiet_from, c.quiet_to`

// scanContact reads contactColumns, and the columns after them into more.
func scanContact(row pgx.CollectableRow, more ...any) (c email.Contact, err error) {
	var from, to *int
	err = row.Scan(append([]any{&c.ID, &c.Address, &c.Lane, &c.Language, &c.Zone, &c.State, &c.Kinds, &from, &to}, more...)...)
	if from != nil && to != nil {
		c.Quiet = &ledger.Quiet{From: *from, To: *to}
	}
	return c, err
}

func readContact(ctx context.Context, q pgpool.Querier, sql string, args ...any) (email.Contact, error) {
	scan := func(row pgx.CollectableRow) (email.Contact, error) { return scanContact(row) }
	return pgpool.One(ctx, q, "read contact", email.ErrNoAddress, scan, sql, args...)
}

// Contacts are the addresses of readers, and the mails that they chose.
type Contacts struct {
	pool    *pgxpool.Pool
	streams *Streams
}

// Get returns the contact of reader, or email.ErrNoAddress.
func (s *Contacts) Get(ctx context.Context, reader notification.Reader) (email.Contact, error) {
	return readContact(ctx, s.pool, `
		select `+contactColumns+` from contacts c join streams s on s.id = c.stream_id where s.name = $1`, reader.Own())
}

// Set keeps c as the contact of reader. If one of the hashes shows that the address
// stays the same, only its language and zone change. Another address makes a new
// contact, which has to be proven, and ends the mails that wait for the old one; the
// reader's preferences are kept.
func (s *Contacts) Set(ctx context.Context, reader notification.Reader, c email.Contact, hashes [][]byte) (email.Contact, error) {
	var kept email.Contact
	err := s.streams.change(ctx, reader, func(tx pgx.Tx, stream int64) error {
		before, err := readContact(ctx, tx, `
			delete from contacts c where stream_id = $1 and address_mac <> all($2::bytea[]) returning `+contactColumns, stream, hashes)
		if err != nil && !errors.Is(err, email.ErrNoAddress) {
			return err
		}
		var from, to *int
		if before.Quiet != nil {
			from, to = &before.Quiet.From, &before.Quiet.To
		}
		kept, err = readContact(ctx, tx, `
			insert into contacts as c (id, stream_id, address, address_mac, lane, language, zone, kinds, quiet_from, quiet_to)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
			on conflict (stream_id) do update set language = excluded.language, zone = excluded.zone
			returning `+contactColumns,
			c.ID, stream, c.Address, hashes[0], c.Lane, c.Language, c.Zone, before.Kinds, from, to)
		if err != nil {
			return err
		}
		return moveDigest(ctx, tx, stream)
	})
	return kept, err
}

// change lets do change what reader, who may be new, has chosen. Changes of a reader's
// preferences wait for one another, at all replicas.
func (s *Streams) change(ctx context.Context, reader notification.Reader, do func(tx pgx.Tx, stream int64) error) error {
	if _, err := s.View(ctx, reader); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		stream, err := lockStream(ctx, tx, reader)
		if err != nil {
			return err
		}
		return do(tx, stream)
	})
}

// lockStream returns the number of reader's own stream, locked against other changes
// of the reader's preferences, and not against new notifications.
func lockStream(ctx context.Context, tx pgx.Tx, reader notification.Reader) (id int64, err error) {
	err = tx.QueryRow(ctx, `
		select s.id, pg_advisory_xact_lock($2, hashint8(s.id)) from streams s where s.name = $1`,
		reader.Own(), contactLock).Scan(&id, nil)
	return id, pgpool.Found(err, "lock stream", errStreamsRemoved)
}

// contactLock keeps the advisory locks of contacts apart from others.
const contactLock int32 = 0x6d61696c

// Remove removes the contact of reader, their digests and their consents about
// anonymous reports. Waiting deliveries are cancelled when they are due.
func (s *Contacts) Remove(ctx context.Context, reader notification.Reader) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		for _, table := range []string{"contacts", "digests", "mail_consents"} {
			err := pgpool.Exec(ctx, tx, "remove contact", `delete from `+table+` where stream_id = (select id from streams where name = $1)`, reader.Own())
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// SetPreferences keeps which notifications are mailed to reader at once, and the hours
// without mails. It returns email.ErrNoAddress if reader has no contact.
func (s *Contacts) SetPreferences(ctx context.Context, reader notification.Reader, kinds []string, quiet *ledger.Quiet) (email.Contact, error) {
	var from, to *int
	if quiet != nil {
		from, to = &quiet.From, &quiet.To
	}
	return readContact(ctx, s.pool, `
		update contacts c set kinds = $2, quiet_from = $3, quiet_to = $4
		from streams s where s.name = $1 and c.stream_id = s.id
		returning `+contactColumns, reader.Own(), kinds, from, to)
}

// SendCode queues the delivery of a code, which is body, to reader's contact, and keeps
// the hash of the code. It returns email.ErrTooManyCodes if reader has had too many. If
// others have sent too many to the same address, nothing is sent and no error returned:
// it would disclose that the address is known.
func (s *Contacts) SendCode(ctx context.Context, reader notification.Reader, contact uuid.UUID, hash, body []byte) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		stream, err := lockStream(ctx, tx, reader)
		if err != nil {
			return err
		}
		var state email.State
		var mac []byte
		var lane string
		err = tx.QueryRow(ctx, `
			select state, address_mac, lane from contacts where stream_id = $1 and id = $2 for update`, stream, contact).
			Scan(&state, &mac, &lane)
		if err = pgpool.Found(err, "read contact", email.ErrNoAddress); err != nil {
			return err
		}
		if state == email.Active {
			return fault.New(fault.Conflict, "the address is proven already")
		}
		var own, everybodys int
		var recently, recentlyElsewhere bool
		err = tx.QueryRow(ctx, `
			select count(*) filter (where stream_id = $1), coalesce(bool_or(sent_at > now() - $4::interval) filter (where stream_id = $1), false),
			  count(*) filter (where address_mac = $2), coalesce(bool_or(sent_at > now() - $4::interval) filter (where address_mac = $2), false)
			from contact_codes where (stream_id = $1 or address_mac = $2) and sent_at > now() - $3::interval`,
			stream, mac, email.CodePeriod, email.CodePause).Scan(&own, &recently, &everybodys, &recentlyElsewhere)
		if err != nil {
			return fmt.Errorf("count codes: %w", err)
		}
		if own >= email.MaxCodes || recently {
			return email.ErrTooManyCodes
		}
		err = pgpool.Exec(ctx, tx, "note code", `insert into contact_codes (stream_id, address_mac) values ($1, $2)`, stream, mac)
		if err != nil {
			return err
		}
		if everybodys >= email.MaxCodes || recentlyElsewhere {
			return nil
		}
		_, err = tx.Exec(ctx, `
			update contacts set code_mac = $2, code_until = now() + $3::interval, code_tries = 0 where id = $1`,
			contact, hash, email.CodeLifetime)
		if err == nil { // the earlier code is void
			_, err = tx.Exec(ctx, `
				update deliveries set state = 'cancelled', last_class = 'unwanted', done_at = now()
				where channel = $1 and target = $2 and kind = $3 and state = 'waiting'`,
				email.Channel, contact.String(), email.Code)
		}
		if err == nil {
			_, err = tx.Exec(ctx, `
				insert into deliveries (channel, lane, target, message_id, kind, body, not_after)
				values ($1, $2, $3, $4, $5, $6, now() + $7::interval)`,
				email.Channel, email.CodeLane(lane), contact.String(), uuid.NewString(), email.Code, body, email.CodeLifetime)
		}
		if err != nil {
			return fmt.Errorf("send code: %w", err)
		}
		return nil
	})
}

// VerifyCode makes reader's contact active if one of the hashes is that of the
// code which was sent last. Readers who have not chosen yet what is mailed to them get
// email.DefaultKinds. Otherwise it returns email.ErrCode, and the code has one try less.
func (s *Contacts) VerifyCode(ctx context.Context, reader notification.Reader, contact uuid.UUID, hashes [][]byte) (email.Contact, error) {
	right := false
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var mac []byte
		err := tx.QueryRow(ctx, `
			select c.code_mac from contacts c join streams s on s.id = c.stream_id
			where s.name = $1 and c.id = $2 and c.code_until > now() and c.code_tries < $3 for update of c`,
			reader.Own(), contact, email.CodeTries).Scan(&mac)
		if err != nil { // or there is no code that may be tried
			return pgpool.Found(err, "read code", nil)
		}
		right = slices.ContainsFunc(hashes, func(hash []byte) bool { return hmac.Equal(hash, mac) })
		if right {
			_, err = tx.Exec(ctx, `
				update contacts set state = 'active', state_since = now(), code_mac = null, code_until = null, kinds = coalesce(kinds, $2)
				where id = $1`, contact, email.DefaultKinds)
		} else {
			_, err = tx.Exec(ctx, `update contacts set code_tries = code_tries + 1 where id = $1`, contact)
		}
		if err != nil {
			return fmt.Errorf("note try of a code: %w", err)
		}
		if right { // it takes mails again, and earlier refusals no longer count
			return pgpool.Exec(ctx, tx, "forget bounces", `update mail_bounces set contact_id = null where contact_id = $1`, contact)
		}
		return nil
	})
	if err != nil {
		return email.Contact{}, err
	}
	if !right {
		return email.Contact{}, email.ErrCode
	}
	return s.Get(ctx, reader)
}

// SetConsent keeps whether reader wants mails and pushes about a report that they
// filed anonymously.
func (s *Contacts) SetConsent(ctx context.Context, reader notification.Reader, report uuid.UUID, wanted bool) error {
	if _, err := s.streams.View(ctx, reader); err != nil { // the reader may be new
		return err
	}
	sql := `insert into mail_consents (stream_id, report_id) select id, $2 from streams where name = $1 on conflict do nothing`
	if !wanted {
		sql = `delete from mail_consents where stream_id = (select id from streams where name = $1) and report_id = $2`
	}
	return pgpool.Exec(ctx, s.pool, "keep consent", sql, reader.Own(), report)
}

const unsubscriptionSQL = `
select u.kind, c.language, c.id, c.stream_id, case u.kind
  when 'digest' then not exists (select from digests d where d.stream_id = c.stream_id)
  when 'anonymous' then not exists (select from mail_consents m where m.stream_id = c.stream_id)
  else not u.kind = any(coalesce(c.kinds, '{}')) end
from unsubscribe_tokens u join contacts c on c.id = u.contact_id where u.hash = $1`

// Unsubscription returns what the token of that hash ends, or email.ErrToken. It
// changes nothing.
func (s *Contacts) Unsubscription(ctx context.Context, hash []byte) (email.Unsubscription, error) {
	u, _, _, err := readUnsubscription(ctx, s.pool, hash)
	return u, err
}

func readUnsubscription(ctx context.Context, q pgpool.Querier, hash []byte) (u email.Unsubscription, contact uuid.UUID, stream int64, err error) {
	u, err = pgpool.One(ctx, q, "read token", email.ErrToken, func(row pgx.CollectableRow) (u email.Unsubscription, err error) {
		return u, row.Scan(&u.Kind, &u.Language, &contact, &stream, &u.Ended)
	}, unsubscriptionSQL, hash)
	if err != nil {
		return u, contact, 0, err
	}
	return u, contact, stream, nil
}

// Unsubscribe ends the mails that the token of that hash is for. It may be called
// again.
func (s *Contacts) Unsubscribe(ctx context.Context, hash []byte) (email.Unsubscription, error) {
	var u email.Unsubscription
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var contact uuid.UUID
		var stream int64
		var err error
		if u, contact, stream, err = readUnsubscription(ctx, tx, hash); err != nil {
			return err
		}
		switch u.Kind {
		case email.Digest:
			_, err = tx.Exec(ctx, `delete from digests where stream_id = $1`, stream)
		case email.Anonymous:
			_, err = tx.Exec(ctx, `delete from mail_consents where stream_id = $1`, stream)
		default:
			_, err = tx.Exec(ctx, `update contacts set kinds = array_remove(kinds, $2) where id = $1`, contact, u.Kind)
		}
		if err != nil {
			return fmt.Errorf("end mails: %w", err)
		}
		u.Ended = true
		return nil
	})
	return u, err
}
