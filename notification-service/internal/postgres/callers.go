package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// Callers are the contacts of those for whom officials file reports.
//
//	         ┌── another address, or a week ──► gone
//	entered ─┤
//	         └── the button behind the link in the mail ──► a contact like any other
type Callers struct {
	pool    *pgxpool.Pool
	streams *Streams
}

// A Proof is the link that a caller's address is proven with.
type Proof struct {
	Hash []byte                                  // of its token
	Body func(contact uuid.UUID) ([]byte, error) // of the delivery, with the token sealed for the contact
}

// Get returns the contact of the caller for whom report was filed, or
// email.ErrNoCaller.
func (s *Callers) Get(ctx context.Context, report uuid.UUID) (c email.Caller, err error) {
	err = s.pool.QueryRow(ctx, `
		select c.state, c.language from callers k join contacts c on c.id = k.contact_id where k.report_id = $1`, report).
		Scan(&c.State, &c.Language)
	return c, pgpool.Found(err, "read caller", email.ErrNoCaller)
}

// Set keeps c as the contact of caller, for whom report was filed, and queues the mail
// with the link that proves the address. Both are one transaction. The same address again
// queues another mail only if the last one was due an hour ago or earlier. Another address takes the place of one that is
// not proven.
func (s *Callers) Set(ctx context.Context, caller notification.Reader, report uuid.UUID, c email.Contact, hashes [][]byte, proof Proof) (email.Caller, error) {
	kept := email.Caller{State: email.Unverified, Language: c.Language}
	err := s.streams.change(ctx, caller, func(tx pgx.Tx, stream int64) error {
		var id uuid.UUID
		var mac []byte
		var state email.State
		var mailed bool
		err := tx.QueryRow(ctx, `
			select c.id, c.address_mac, c.state, coalesce(k.mailed_at > now() - $2::interval, false)
			from contacts c left join callers k on k.contact_id = c.id where c.stream_id = $1 for update of c`, stream, email.ProofPause).
			Scan(&id, &mac, &state, &mailed)
		known := err == nil
		if err := pgpool.Found(err, "read contact", nil); err != nil {
			return err
		}
		same := known && slices.ContainsFunc(hashes, func(hash []byte) bool { return string(hash) == string(mac) })
		switch {
		case same && state != email.Unverified:
			kept, err = email.Caller{State: state, Language: c.Language}, nil
			return err
		case known && state != email.Unverified:
			return email.ErrProven
		case same && mailed:
			_, err := tx.Exec(ctx, `update contacts set language = $2, zone = $3 where id = $1`, id, c.Language, c.Zone)
			return err
		case same:
			c.ID = id
		case known:
			if err := pgpool.Exec(ctx, tx, "remove contact", `delete from contacts where id = $1`, id); err != nil {
				return err
			}
		}
		if !same {
			err := pgpool.Exec(ctx, tx, "insert contact", `
				insert into contacts (id, stream_id, address, address_mac, lane, language, zone) values ($1, $2, $3, $4, $5, $6, $7)`,
				c.ID, stream, c.Address, hashes[0], c.Lane, c.Language, c.Zone)
			if err != nil {
				return err
			}
		}
		return queueProof(ctx, tx, stream, report, c, hashes[0], proof)
	})
	return kept, err
}

// queueProof queues the mail with the link, at a time when its address may have one. The
// link of an earlier mail to the contact is void.
func queueProof(ctx context.Context, tx pgx.Tx, stream int64, report uuid.UUID, c email.Contact, mac []byte, proof Proof) error {
	body, err := proof.Body(c.ID)
	if err != nil {
		return err
	}
	// Mails to an address wait for one another, at all replicas.
	if err := pgpool.Exec(ctx, tx, "lock address", `select pg_advisory_xact_lock($1, hashtext(encode($2, 'hex')))`, contactLock, mac); err != nil {
		return err
	}
	var entered int
	var due, until time.Time
	err = tx.QueryRow(ctx, `
		select (select count(*) from caller_mails where stream_id = $1 and entered_at > now() - $3::interval),
		  greatest(now(),
		    (select max(due_at) + $4::interval from caller_mails where address_mac = $2),
		    (select due_at + $3::interval from caller_mails where address_mac = $2 order by due_at desc offset $5 - 1 limit 1)),
		  state_since + $6::interval
		from contacts where id = $7`,
		stream, mac, email.CodePeriod, email.ProofPause, email.MaxProofs, email.UnverifiedFor, c.ID).Scan(&entered, &due, &until)
	if err != nil {
		return fmt.Errorf("find time for a mail: %w", err)
	}
	if entered >= email.MaxProofs || !due.Before(until) {
		return email.ErrTooManyProofs
	}
	for _, change := range []struct {
		sql  string
		args []any
	}{
		{`insert into caller_mails (stream_id, address_mac, due_at) values ($1, $2, $3)`, []any{stream, mac, due}},
		{`insert into callers (contact_id, report_id, proof_hash, mailed_at) values ($1, $2, $3, $4)
			on conflict (contact_id) do update set proof_hash = excluded.proof_hash, mailed_at = excluded.mailed_at`, []any{c.ID, report, proof.Hash, due}},
		{`update contacts set language = $2, zone = $3 where id = $1`, []any{c.ID, c.Language, c.Zone}},
		{`update deliveries set state = 'cancelled', last_class = 'unwanted', done_at = now()
			where channel = $1 and target = $2 and kind = $3 and state = 'waiting'`, []any{email.Channel, c.ID.String(), email.Proof}},
		{`insert into deliveries (channel, lane, target, message_id, kind, body, due_at, not_after) values ($1, $2, $3, $4, $5, $6, $7, $8)`,
			[]any{email.Channel, email.CodeLane(c.Lane), c.ID.String(), uuid.NewString(), email.Proof, body, due, until}},
	} {
		if err := pgpool.Exec(ctx, tx, "queue proof", change.sql, change.args...); err != nil {
			return err
		}
	}
	return nil
}

const provableSQL = `
	select c.id, c.stream_id, k.report_id, c.language, c.state from callers k join contacts c on c.id = k.contact_id
	where k.proof_hash = $1 and (c.state = 'active' or c.state = 'unverified' and c.state_since > now() - $2::interval)`

// Provable returns in which language the link of that hash proves an address, and whether it
// has, or email.ErrProof. It changes nothing.
func (s *Callers) Provable(ctx context.Context, hash []byte) (email.Caller, error) {
	return prove(ctx, s.pool, hash, "", nil)
}

// Prove makes the contact active whose link has that hash, with mails about its report. A
// second time it changes nothing.
func (s *Callers) Prove(ctx context.Context, hash []byte) (c email.Caller, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		c, err = prove(ctx, tx, hash, ` for update`, func(id uuid.UUID, stream int64, report uuid.UUID) error {
			_, err := tx.Exec(ctx, `
				with active as (
				  update contacts set state = 'active', state_since = now(), kinds = $2 where id = $1
				)
				insert into mail_consents (stream_id, report_id) values ($3, $4) on conflict do nothing`, id, email.DefaultKinds, stream, report)
			return err
		})
		return err
	})
	return c, err
}

// prove finds the contact whose link has that hash, and changes it.
func prove(ctx context.Context, q pgpool.Querier, hash []byte, lock string, change func(id uuid.UUID, stream int64, report uuid.UUID) error) (email.Caller, error) {
	var id, report uuid.UUID
	var stream int64
	c, err := pgpool.One(ctx, q, "read proof", email.ErrProof, func(row pgx.CollectableRow) (c email.Caller, err error) {
		return c, row.Scan(&id, &stream, &report, &c.Language, &c.State)
	}, provableSQL+lock, hash, email.UnverifiedFor)
	if err != nil || change == nil || c.State == email.Active {
		return c, err
	}
	if err := change(id, stream, report); err != nil {
		return email.Caller{}, fmt.Errorf("prove address: %w", err)
	}
	c.State = email.Active
	return c, nil
}

// Find returns the ids of the callers whose address has one of the hashes. Each is that of
// one report.
func (s *Callers) Find(ctx context.Context, hashes [][]byte) ([]string, error) {
	return pgpool.Collect(ctx, s.pool, "find callers", pgx.RowTo[string], `
		select substr(s.name, length($2) + 1) from callers k join contacts c on c.id = k.contact_id join streams s on s.id = c.stream_id
		where c.address_mac = any($1) order by c.created_at, c.id`, hashes, string(notification.UserStream("")))
}

// called returns what a mail to a caller may say of their report, or nil if the contact is
// not that of a caller. The category is known from the officials' stream.
func (s *Mails) called(ctx context.Context, contact uuid.UUID) (*email.Called, error) {
	var c email.Called
	err := s.pool.QueryRow(ctx, `
		select k.report_id, coalesce(n.data ->> 'category_name', ''), not coalesce(m.hidden, false), c.created_at
		from callers k join contacts c on c.id = k.contact_id
		left join moderated_reports m on m.report_id = k.report_id
		left join streams s on s.name = $2
		left join notifications n on n.report_id = k.report_id and n.stream_id = s.id and n.type = 'report.created'
		  and not n.data ? 'private' and m.hidden is not true
		where k.contact_id = $1`, contact, notification.Officials).Scan(&c.ReportID, &c.Category, &c.Shown, &c.EnteredAt)
	if err != nil {
		return nil, pgpool.Found(err, "read caller", nil)
	}
	return &c, nil
}
