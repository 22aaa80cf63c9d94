package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/pgpool"
	"github.com/cityconnect/cityconnect/platform/service"
	"github.com/cityconnect/cityconnect/report-service/internal/pseudonym"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Guests are people who report without an account.
type Guests struct{ db *DB }

// NewGuests returns the guests in db.
func NewGuests(db *DB) *Guests { return &Guests{db} }

// A guest is a row of the table, locked.
type guest struct {
	mac       []byte
	filed     []time.Time
	adopted   bool
	adoptedBy []byte
	reports   int64
}

// lockGuest locks the row of a guest, and writes it first if there is none. Everything that
// a guest's reports, votes and comments depend on locks it before anything else, so that
// none of them can slip past an adoption.
func lockGuest(ctx context.Context, tx pgx.Tx, keys *event.Keyring, id string) (guest, error) {
	macs := pseudonym.OfGuest(keys, id)
	const columns = ` mac, filed, adopted_at is not null, adopted_by, adopted_reports`
	scan := func(sql string, args ...any) (g guest, err error) {
		err = tx.QueryRow(ctx, sql, args...).Scan(&g.mac, &g.filed, &g.adopted, &g.adoptedBy, &g.reports)
		return g, err
	}
	g, err := scan(`select`+columns+` from guests where mac = any($1) for update`, macs)
	if errors.Is(err, pgx.ErrNoRows) {
		g, err = scan(`insert into guests (mac) values ($1) on conflict (mac) do update set seen_at = now() returning`+columns, macs[0])
	}
	if err != nil {
		return g, fmt.Errorf("lock guest: %w", err)
	}
	return g, nil
}

// do makes a change of a user, and that of a guest in a transaction of its own. A filing
// counts towards the guest's day, unless it was made before.
func (db *DB) do(ctx context.Context, userID string, isGuest bool, c change) error {
	if !isGuest {
		return db.committer.do(ctx, c)
	}
	return db.transaction(ctx, func(tx pgx.Tx, w *writeBatch) error {
		g, err := lockGuest(ctx, tx, db.keys, userID)
		if err != nil {
			return err
		}
		if g.adopted {
			return report.ErrGuestGone
		}
		reads := newReadBatch(true)
		c.read(reads)
		var b pgx.Batch
		reads.queue(&b)
		if err := send(ctx, tx, "read for a guest's change", &b); err != nil {
			return err
		}
		if err := c.write(w); err != nil || len(w.filings) == 0 {
			return err
		}
		now := time.Now()
		recent := slices.DeleteFunc(g.filed, func(at time.Time) bool { return now.Sub(at) >= report.GuestDay })
		if over := len(recent) - db.rules.GuestReports; over >= 0 {
			return &report.GuestQuota{PerDay: db.rules.GuestReports, Wait: report.GuestDay - now.Sub(recent[over])}
		}
		w.others.Queue(`update guests set filed = $2, seen_at = now() where mac = $1`, g.mac, append(recent, now))
		return nil
	})
}

// Adopted reports whether an account has taken over the guest with id.
func (s *Guests) Adopted(ctx context.Context, id string) (adopted bool, err error) {
	return pgpool.Value[bool](ctx, s.db.pool, "look up guest", `select exists (select from guests where mac = any($1) and adopted_at is not null)`,
		pseudonym.OfGuest(s.db.keys, id))
}

// NewCode returns a code that opens the session of the guest with id once, and until when.
// It ends the one before.
func (s *Guests) NewCode(ctx context.Context, id string) (code string, expires time.Time, err error) {
	code, expires = report.NewGuestCode(), time.Now().Add(report.GuestCodeLife).UTC().Truncate(time.Second)
	sealID := uuid.New()
	err = pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
		g, err := lockGuest(ctx, tx, s.db.keys, id)
		if err != nil {
			return err
		}
		if g.adopted {
			return report.ErrGuestGone
		}
		var b pgx.Batch
		b.Queue(`update guest_codes set expires_at = now() where guest_mac = $1 and expires_at > now()`, g.mac)
		b.Queue(`insert into guest_codes (mac, guest_mac, id, sealed, expires_at) values ($1, $2, $3, $4, $5)`,
			pseudonym.OfGuest(s.db.keys, code)[0], g.mac, sealID, s.db.keys.Seal(sealID, id), expires)
		b.Queue(`update guests set seen_at = now() where mac = $1`, g.mac)
		return send(ctx, tx, "write code", &b)
	})
	return code, expires, err
}

// Redeem returns the id of the guest whom a code is for. It does so once.
func (s *Guests) Redeem(ctx context.Context, code string) (id string, err error) {
	var sealID uuid.UUID
	var sealed string
	var used, expired bool
	// A code that is redeemed twice at the same time waits for the lock, and sees the first.
	err = pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
		macs := pseudonym.OfGuest(s.db.keys, code)
		err := tx.QueryRow(ctx, `
			select id, sealed, used_at is not null, expires_at <= now() from guest_codes where mac = any($1) for update`, macs).
			Scan(&sealID, &sealed, &used, &expired)
		switch err = pgpool.Found(err, "read code", report.ErrUnknownCode); {
		case err != nil:
			return err
		case used:
			return report.ErrUsedCode
		case expired:
			return report.ErrExpiredCode
		}
		if id, err = s.db.keys.Open(sealID, sealed); err != nil {
			return fmt.Errorf("open code: %w", err)
		}
		return pgpool.Exec(ctx, tx, "use code", `update guest_codes set used_at = now() where mac = any($1)`, macs)
	})
	return id, err
}

// Reports returns how many reports a guest has.
func (s *Guests) Reports(ctx context.Context, id string) (reports int64, err error) {
	return pgpool.Value[int64](ctx, s.db.pool, "count a guest's reports", `select count(*) from reporters where reporter_id = $1`, id)
}

// Adopt makes the reports of a guest those of an account, with everything else that the
// guest has here, in one transaction with the message that tells notification-service. It
// returns how many reports they are. Asked again for the same account, it returns the same.
func (s *Guests) Adopt(ctx context.Context, guestID, accountID string) (reports int64, err error) {
	err = s.db.transaction(ctx, func(tx pgx.Tx, w *writeBatch) error {
		g, err := lockGuest(ctx, tx, s.db.keys, guestID)
		if err != nil {
			return err
		}
		if g.adopted {
			by := pseudonym.OfGuest(s.db.keys, accountID)
			if !slices.ContainsFunc(by, func(mac []byte) bool { return bytes.Equal(mac, g.adoptedBy) }) {
				return report.ErrAdoptedElsewhere
			}
			reports, w.doneBefore = g.reports, true
			return nil
		}
		if reports, err = moveGuest(ctx, tx, guestID, accountID); err != nil {
			return err
		}
		if err := moveComplaints(ctx, tx, s.db.keys, guestID, accountID); err != nil {
			return err
		}
		w.others.Queue(`delete from guest_codes where guest_mac = $1`, g.mac)
		w.others.Queue(`update guests set adopted_at = now(), adopted_by = $2, adopted_reports = $3, filed = '{}', seen_at = now() where mac = $1`,
			g.mac, pseudonym.OfGuest(s.db.keys, accountID)[0], reports)
		return w.enqueueFor(guestAdopted(s.db.keys, guestID), accountID, service.TraceFrom(ctx))
	})
	return reports, err
}

// moveGuest moves the rows that name a guest. Reports are locked in the order in which all
// transactions lock them.
func moveGuest(ctx context.Context, tx pgx.Tx, guestID, accountID string) (reports int64, err error) {
	// Rare, and before any lock: no index leads from a person to their votes.
	voted, err := pgpool.Collect(ctx, tx, "find a guest's votes", pgx.RowTo[uuid.UUID], `select report_id from votes where voter_id = $1`, guestID)
	if err != nil {
		return 0, err
	}
	err = pgpool.Exec(ctx, tx, "lock a guest's reports", `
		select from reports where id = any($2) or id in (select report_id from reporters where reporter_id = $1)
		order by id for no key update`, guestID, voted)
	if err != nil {
		return 0, err
	}
	filed, err := pgpool.Collect(ctx, tx, "move a guest's reports", pgx.RowTo[uuid.UUID], `
		update reporters set reporter_id = $2 where reporter_id = $1 returning report_id`, guestID, accountID)
	if err != nil {
		return 0, err
	}
	if err := pgpool.Exec(ctx, tx, "move a guest's comments", `update commenters set commenter_id = $2 where commenter_id = $1`, guestID, accountID); err != nil {
		return 0, err
	}
	// One person has one vote on a report, that of the account, and none on their own.
	err = pgpool.Exec(ctx, tx, "remove votes that count no more", `
		with own as (
			delete from votes v where v.report_id = any($3) and v.voter_id in ($1, $2)
			and (exists (select from reporters o where o.report_id = v.report_id and o.reporter_id = $2)
			  or v.voter_id = $1 and exists (select from votes o where o.report_id = v.report_id and o.voter_id = $2))
			returning v.report_id, v.value
		)
		update reports r set score = r.score - o.value from (select report_id, sum(value) as value from own group by report_id) o
		where r.id = o.report_id`, guestID, accountID, slices.Concat(voted, filed))
	if err != nil {
		return 0, err
	}
	if err := pgpool.Exec(ctx, tx, "move a guest's votes", `update votes set voter_id = $2 where voter_id = $1 and report_id = any($3)`, guestID, accountID, voted); err != nil {
		return 0, err
	}
	return int64(len(filed)), nil
}

// moveComplaints makes a guest's complaints those of an account, which is known by another
// hash on each report. Of two on the same report the account's stays.
func moveComplaints(ctx context.Context, tx pgx.Tx, keys *event.Keyring, guestID, accountID string) error {
	ids, err := pgpool.Collect(ctx, tx, "read complaints", pgx.RowTo[uuid.UUID], `select distinct report_id from abuse_reports order by report_id`)
	if err != nil {
		return err
	}
	secrets := pseudonym.Complaints(keys)
	for chunk := range slices.Chunk(ids, complaintsAtOnce) {
		var b pgx.Batch
		for _, id := range chunk {
			guests, accounts := pseudonym.OfComplainant(secrets, id, guestID), pseudonym.OfComplainant(secrets, id, accountID)
			b.Queue(`
				update abuse_reports a set user_mac = $3 where report_id = $1 and user_mac = any($2)
				and not exists (select from abuse_reports o where o.report_id = $1 and o.user_mac = any($4))`, id, guests, accounts[0], accounts)
			b.Queue(`delete from abuse_reports where report_id = $1 and user_mac = any($2)`, id, guests)
		}
		if err := send(ctx, tx, "move complaints", &b); err != nil {
			return err
		}
	}
	return nil
}

// complaintsAtOnce is how many reports with complaints a batch of statements is about.
const complaintsAtOnce = 500
