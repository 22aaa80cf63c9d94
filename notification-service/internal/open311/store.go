package open311

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// A Store keeps the targets, what they call reports, and their deliveries in the ledger.
type Store struct {
	pool    *pgxpool.Pool
	notices bool // whether operators have a mailbox
}

// NewStore returns the targets in pool. With notices, operators get mails of their differences.
func NewStore(pool *pgxpool.Pool, notices bool) *Store { return &Store{pool, notices} }

const targetColumns = `id, name, url, jurisdiction, api_key, update_key, connection_key, services, statuses, repeats, state = 'enabled', created_at,
  polled_at, read_to, fetched_to, problem, problem_since, now()`

// List returns all targets, the newest first.
func (s *Store) List(ctx context.Context) ([]Target, error) {
	return pgpool.Collect(ctx, s.pool, "list targets", pgx.RowToStructByPos[Target], `select `+targetColumns+` from open311_targets order by id desc`)
}

func readTarget(ctx context.Context, tx pgx.Tx, id uuid.UUID) (Target, error) {
	return pgpool.One(ctx, tx, "read target", ErrNoTarget, pgx.RowToStructByPos[Target], `select `+targetColumns+` from open311_targets where id = $1 for update`, id)
}

// Save lets change alter a target, or a new one for uuid.Nil. Its keys are sealed before and
// after. Enabling it sends what is held.
func (s *Store) Save(ctx context.Context, actor string, id uuid.UUID, change func(*Target) error) (saved Target, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		t, action := Target{ID: uuid.Must(uuid.NewV7()), Enabled: true}, audit.Open311Create
		if id != uuid.Nil {
			action = audit.Open311Change
			if t, err = readTarget(ctx, tx, id); err != nil {
				return err
			}
		}
		was := t.Enabled
		if err := change(&t); err != nil {
			return err
		}
		saved, err = pgpool.One(ctx, tx, "write target", ErrNoTarget, pgx.RowToStructByPos[Target], `
			insert into open311_targets (id, name, url, jurisdiction, api_key, update_key, connection_key, services, statuses, repeats, state)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, case when $11 then 'enabled' else 'disabled' end)
			on conflict (id) do update set name = excluded.name, url = excluded.url, jurisdiction = excluded.jurisdiction, api_key = excluded.api_key, update_key = excluded.update_key,
			  connection_key = excluded.connection_key, services = excluded.services, statuses = excluded.statuses, repeats = excluded.repeats, state = excluded.state
			returning `+targetColumns,
			t.ID, t.Name, t.URL, t.Jurisdiction, t.Key, t.UpdateKey, t.ConnectionKey, t.Services, t.Statuses, t.Repeats, t.Enabled)
		if err != nil {
			return err
		}
		if t.Enabled && !was {
			err = pgpool.Exec(ctx, tx, "send what is held", `
				with closed as (update lanes set failures = 0, failing_since = null, open_until = null where channel = 'open311' and lane = $1)
				update deliveries set `+postgres.AgainSQL(2)+` where channel = 'open311' and target = $1 and state = 'held'`, id.String(), webhook.Lifetime)
		}
		return errors.Join(err, record(ctx, tx, actor, action, &saved, nil))
	})
	return saved, err
}

// Delete removes a target with the numbers of its reports. The ledger cancels what waits.
func (s *Store) Delete(ctx context.Context, actor string, id uuid.UUID) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		t, err := readTarget(ctx, tx, id)
		if err != nil {
			return err
		}
		return errors.Join(pgpool.Exec(ctx, tx, "delete target", `delete from open311_targets where id = $1`, id),
			record(ctx, tx, actor, audit.Open311Delete, &t, nil))
	})
}

// record notes in the audit what an operator did, without keys and with the host alone.
func record(ctx context.Context, tx pgx.Tx, actor string, action audit.Action, t *Target, detail map[string]any) error {
	if detail == nil {
		detail = map[string]any{
			"name": t.Name, "host": webhook.Registration{URL: t.URL}.Host(), "services": t.Services, "statuses": t.Statuses, "repeats": t.Repeats, "enabled": t.Enabled,
		}
	}
	detail["target"] = t.ID
	return audit.Write(ctx, tx, audit.Entry{Actor: actor, Action: action}, detail)
}

// Disable holds back what a target is to have, until an operator enables it.
func (s *Store) Disable(ctx context.Context, id uuid.UUID) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update open311_targets set state = 'disabled', problem = 'it has failed for too long', problem_since = now() where id = $1 and state = 'enabled'`, id)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return record(ctx, tx, "delivery-worker", audit.Open311Change, &Target{ID: id}, map[string]any{"enabled": false})
	})
}

// Request returns what is known of a report in a target.
func (s *Store) Request(ctx context.Context, target, report uuid.UUID) (Request, error) {
	return pgpool.One(ctx, s.pool, "read request", ErrNoTarget, func(row pgx.CollectableRow) (r Request, err error) {
		return r, row.Scan(&r.SentAt, &r.Age, &r.Hash, &r.Token, &r.Number, &r.Unknown)
	}, `
		select sent_at, coalesce(now() - sent_at, interval '0'), form_hash, token, number, unknown
		from open311_requests where target_id = $1 and report_id = $2`, target, report)
}

// set changes the row of a report, which must be there.
func (s *Store) set(ctx context.Context, what string, target, report uuid.UUID, sql string, args ...any) error {
	tag, err := s.pool.Exec(ctx, `update open311_requests set `+sql, append([]any{target, report}, args...)...)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("%s: the request is not in that state", what)
	}
	return nil
}

const thisRequest = ` where target_id = $1 and report_id = $2`

// Begin writes down that a form is about to be sent. It fails if one is, or was.
func (s *Store) Begin(ctx context.Context, target, report uuid.UUID, hash []byte) error {
	return s.set(ctx, "begin to send", target, report, `sent_at = now(), form_hash = $3`+thisRequest+` and sent_at is null and not unknown and number = '' and token = ''`, hash)
}

// NotSent takes Begin back.
func (s *Store) NotSent(ctx context.Context, target, report uuid.UUID) error {
	return s.set(ctx, "note that nothing was sent", target, report, `sent_at = null, form_hash = null`+thisRequest+` and number = '' and token = ''`)
}

// Filed writes down what the target calls the report.
func (s *Store) Filed(ctx context.Context, target, report uuid.UUID, number, token string) error {
	return s.set(ctx, "keep a number", target, report, `number = $3, token = $4, unknown = false, numbered_at = case when $3 <> '' then now() end`+thisRequest+` and number = ''`, number, token)
}

// SetUnknown leaves the decision to an operator.
func (s *Store) SetUnknown(ctx context.Context, target, report uuid.UUID) error {
	return s.set(ctx, "leave a request to an operator", target, report, `unknown = true`+thisRequest+` and number = ''`)
}

// Leave writes down that the department has the report no more, and cancels its delivery.
func (s *Store) Leave(ctx context.Context, target, report uuid.UUID) error {
	return pgpool.Exec(ctx, s.pool, "leave a report", `
		with gone as (update open311_requests set left_at = coalesce(left_at, now())`+thisRequest+`)
		update deliveries set state = 'cancelled', done_at = now()
		where channel = 'open311' and target = $1::uuid::text and message_id = $2::uuid::text and state in ('waiting', 'held')`, target, report)
}

// Decide ends the doubt about a report: it arrived under the number, or, without one, is to
// be sent again.
func (s *Store) Decide(ctx context.Context, actor string, target, report uuid.UUID, number string) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		t, err := readTarget(ctx, tx, target)
		if err != nil {
			return err
		}
		undecided, err := pgpool.One(ctx, tx, "read request", ErrNoTarget, pgx.RowTo[bool], `
			select `+undecidedSQL+` from open311_requests r left join deliveries d on `+deliveryOfRequest+`
			where r.target_id = $1 and r.report_id = $2 for update of r`, target, report)
		if err != nil {
			return err
		}
		if !undecided {
			return ErrNotUndecided
		}
		err = pgpool.Exec(ctx, tx, "decide about a request", `
			update open311_requests set number = $3, unknown = false, token = '', left_at = null, numbered_at = case when $3 <> '' then now() end,
			  sent_at = case when $3 = '' then null else sent_at end, form_hash = null `+thisRequest, target, report, number)
		if err != nil {
			return err
		}
		if err := sendRequests(ctx, tx, target, []uuid.UUID{report}); err != nil {
			return err
		}
		return record(ctx, tx, actor, audit.Open311Decide, &t, map[string]any{"report_id": report, "number": number})
	})
}

// sendRequests has deliveries of reports sent, again if they were before.
func sendRequests(ctx context.Context, tx pgx.Tx, target uuid.UUID, reports []uuid.UUID) error {
	return pgpool.Exec(ctx, tx, "write deliveries of requests", `
		insert into deliveries (channel, lane, target, message_id, kind, body, not_after)
		select 'open311', $1, $1, id::text, 'request', '', now() + $3 from unnest($2::uuid[]) as r (id)
		on conflict (channel, target, message_id, kind) do update set `+postgres.AgainSQL(3), target.String(), reports, webhook.Lifetime)
}

// TakeDue returns the enabled targets that nobody has polled for a minute, and marks them.
func (s *Store) TakeDue(ctx context.Context) ([]Target, error) {
	return pgpool.Collect(ctx, s.pool, "take targets to poll", pgx.RowToStructByPos[Target], `
		update open311_targets set polled_at = now() where id = any(array(
		  select id from open311_targets where state = 'enabled' and (polled_at is null or polled_at < now() - interval '1 minute') for update skip locked))
		returning `+targetColumns)
}

// Listed notes the statuses of reports, and writes a delivery for each that is wanted and was
// not before, or came back to the department.
func (s *Store) Listed(ctx context.Context, target uuid.UUID, reports []Listed) error {
	ids, statuses, wanted := make([]uuid.UUID, len(reports)), make([]string, len(reports)), make([]bool, len(reports))
	for i, r := range reports {
		ids[i], statuses[i], wanted[i] = r.Report, r.Status, r.Wanted
	}
	const listed = `unnest($2::uuid[], $3::text[], $4::boolean[]) as l (report_id, status, wanted)`
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		back, err := pgpool.Collect(ctx, tx, "find reports that came back", pgx.RowTo[uuid.UUID], `
			update open311_requests r set left_at = null from `+listed+`
			where r.target_id = $1 and r.report_id = l.report_id and l.wanted and r.left_at is not null returning r.report_id`, target, ids, statuses, wanted)
		if err != nil {
			return err
		}
		err = pgpool.Exec(ctx, tx, "note statuses", `
			update open311_requests r set our_status = l.status, our_since = now() from `+listed+`
			where r.target_id = $1 and r.report_id = l.report_id and r.our_status <> l.status and $4 is not null`, target, ids, statuses, wanted)
		if err != nil {
			return err
		}
		fresh, err := pgpool.Collect(ctx, tx, "write requests", pgx.RowTo[uuid.UUID], `
			insert into open311_requests (target_id, report_id, our_status) select $1, report_id, status from `+listed+` where wanted
			on conflict do nothing returning report_id`, target, ids, statuses, wanted)
		if err != nil {
			return err
		}
		return sendRequests(ctx, tx, target, slices.Concat(back, fresh))
	})
}

// Numbered returns when the oldest report was sent that got its number since, if any, and at most
// fetchBack ago.
func (s *Store) Numbered(ctx context.Context, target uuid.UUID, since time.Time) (*time.Time, error) {
	return pgpool.Value[*time.Time](ctx, s.pool, "find requests with new numbers", `
		select min(greatest(sent_at, now() - $3::interval)) from open311_requests
		where target_id = $1 and left_at is null and numbered_at >= $2`, target, since, fetchBack)
}

// Unseen returns the reports of updates that they do not have yet, by the place of the update.
func (s *Store) Unseen(ctx context.Context, target uuid.UUID, numbers []string, hashes [][]byte) (map[int][]uuid.UUID, error) {
	unseen := make(map[int][]uuid.UUID)
	var place int
	var report uuid.UUID
	return unseen, pgpool.ForEach(ctx, s.pool, "find new updates", []any{&place, &report}, func() error {
		unseen[place-1] = append(unseen[place-1], report)
		return nil
	}, `
		select u.place, r.report_id from unnest($2::text[], $3::bytea[]) with ordinality as u (number, hash, place)
		join open311_requests r on r.target_id = $1 and r.number = u.number and r.number <> '' and r.left_at is null
		where not exists (select from open311_updates s where s.target_id = $1 and s.report_id = r.report_id and s.hash = u.hash)
		order by 1, 2`, target, numbers, hashes)
}

// Seen notes that a report has an update, and the target's status unless agreed is nil.
func (s *Store) Seen(ctx context.Context, target, report uuid.UUID, hash []byte, status string, agreed []string) error {
	return pgpool.Exec(ctx, s.pool, "note an update", `
		with seen as (insert into open311_updates (target_id, report_id, hash) values ($1, $2, $3) on conflict do nothing)
		update open311_requests set their_status = $4, their_since = now(), agreed = $5`+thisRequest+` and $5::text[] is not null`, target, report, hash, status, agreed)
}

// SetStatus notes the target's status, which is new or was there before. It does not if the
// target's last word is not understood: that is a difference until an operator says what it means.
func (s *Store) SetStatus(ctx context.Context, target, report uuid.UUID, status string, agreed []string, isNew bool) error {
	return pgpool.Exec(ctx, s.pool, "note a status", `
		update open311_requests set their_status = $3, their_since = case when $5 then now() else coalesce(their_since, created_at) end, agreed = $4`+
		thisRequest+` and (their_status = '' or agreed <> '{}')`, target, report, status, agreed, isNew)
}

// Unchecked returns numbers that the target was not asked for within the last hour. It is
// asked for those of reports that were closed for a week no more.
func (s *Store) Unchecked(ctx context.Context, target uuid.UUID, limit int) ([]Number, error) {
	return pgpool.Collect(ctx, s.pool, "find numbers to ask for", pgx.RowToStructByPos[Number], `
		select report_id, number, agreed, our_status, their_status from open311_requests
		where target_id = $1 and number <> '' and left_at is null and (checked_at is null or checked_at < now() - interval '1 hour')
		  and (our_status in ('pending', 'in_progress') or our_since > now() - interval '7 days')
		order by checked_at nulls first limit $2`, target, limit)
}

// Unsent returns numbers of reports whose status is newer than the target's and may be another:
// open is pending or in progress. Words that are not understood are left to operators.
func (s *Store) Unsent(ctx context.Context, target uuid.UUID) ([]Number, error) {
	return pgpool.Collect(ctx, s.pool, "find statuses to tell", pgx.RowToStructByPos[Number], `
		select report_id, number, agreed, our_status, their_status from open311_requests
		where target_id = $1 and number <> '' and left_at is null and agreed <> array[our_status]
		  and our_since > coalesce(their_since, created_at) and (their_status = '' or agreed <> '{}')
		order by our_since`, target)
}

// Checked notes that a target was asked for numbers, and which of them it does not know.
func (s *Store) Checked(ctx context.Context, target uuid.UUID, asked, missing []uuid.UUID) error {
	return pgpool.Exec(ctx, s.pool, "note checked numbers", `
		update open311_requests set checked_at = now(), missing_since = case when report_id = any($3) then coalesce(missing_since, now()) end
		where target_id = $1 and report_id = any($2)`, target, asked, missing)
}

// Polled notes until when both sides are read, or the problem.
func (s *Store) Polled(ctx context.Context, t *Target, problem string) error {
	return pgpool.Exec(ctx, s.pool, "note a poll", `
		update open311_targets set read_to = $2, fetched_to = $3, problem = $4,
		  problem_since = case when $4 <> '' then coalesce(problem_since, now()) end
		where id = $1 and state = 'enabled'`, t.ID, t.ReadTo, t.FetchedTo, problem)
}

const (
	deliveryOfRequest = `d.channel = 'open311' and d.target = r.target_id::text and d.message_id = r.report_id::text and d.kind = 'request'`
	// undecidedSQL is the condition of a request without a number that nothing is done for.
	undecidedSQL = `r.number = '' and (r.unknown or coalesce(d.state, 'dead') in ('dead', 'cancelled'))`
	// differentSQL has the differences as rows. The kinds are those of Kind.
	differentSQL = `
		select r.target_id, r.report_id, r.number, r.our_status, r.their_status, r.unknown,
		  case when r.number = '' then 'no_number' when r.missing_since is not null then 'missing_number' else 'other_status' end as kind,
		  case when r.number = '' then r.created_at when r.missing_since is not null then r.missing_since else greatest(r.their_since, r.our_since) end as since
		from open311_requests r where r.left_at is null and (
		  r.number = '' and r.created_at < now() - interval '10 minutes'
		  or r.number <> '' and r.missing_since is not null
		  or r.number <> '' and r.their_status <> '' and r.our_status <> all(r.agreed) and greatest(r.their_since, r.our_since) < now() - interval '1 hour')`
)

// maxDifferences bounds a list that people work through.
const maxDifferences = 500

// Differences returns the reports about which the two sides differ, the oldest first.
func (s *Store) Differences(ctx context.Context) ([]Difference, error) {
	return pgpool.Collect(ctx, s.pool, "list differences", pgx.RowToStructByPos[Difference], `
		select r.target_id, r.report_id, r.kind, r.since, r.number, r.our_status, r.their_status, `+undecidedSQL+`, r.unknown,
		  coalesce(d.last_class, ''), coalesce(d.last_error, '')
		from (`+differentSQL+` order by since limit $1) r left join deliveries d on `+deliveryOfRequest+` order by r.since, r.report_id`, maxDifferences)
}

// Watch counts the differences, and has the operators mailed of a target that has the first
// ones.
func (s *Store) Watch(ctx context.Context) (map[Kind]int, error) {
	counts := make(map[Kind]int)
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var kind Kind
		var n int
		err := pgpool.ForEach(ctx, tx, "count differences", []any{&kind, &n}, func() error { counts[kind] = n; return nil },
			`select kind, count(*) from (`+differentSQL+`) d group by 1`)
		if err != nil {
			return err
		}
		differing, err := pgpool.Collect(ctx, tx, "mark targets that differ", pgx.RowTo[uuid.UUID], `
			with now_differing as (select distinct target_id from (`+differentSQL+`) d), changed as (
			  update open311_targets t set mailed = not mailed where mailed <> (id in (select target_id from now_differing)) returning id, mailed)
			select id from changed where mailed`)
		if err != nil || !s.notices {
			return err
		}
		for _, id := range differing {
			if err := postgres.NoticeOperators(ctx, tx, email.TargetDiffers, id); err != nil {
				return err
			}
		}
		return nil
	})
	return counts, err
}

// A Health is how targets are, from the worst.
type Health int16

// The states of targets.
const (
	Disabled  Health = iota // because they failed for too long
	Failing                 // they cannot be read
	Differing               // from the city
	Well
)

// worstNamed bounds how many targets are named.
const worstNamed = 20

// Worst returns the worst state in which targets are, and the names of those; none without targets.
func (s *Store) Worst(ctx context.Context) (worst Health, names []string, err error) {
	var name string
	err = pgpool.ForEach(ctx, s.pool, "look at targets", []any{&worst, &name}, func() error {
		names = append(names, name)
		return nil
	}, `
		with t as (select name, case when state = 'disabled' then case when problem <> '' then 0 else 3 end
		    when problem_since < now() - interval '5 minutes' or coalesce(polled_at, created_at) < now() - interval '10 minutes' then 1
		    when mailed then 2 else 3 end as health from open311_targets)
		select health, name from t where health = (select min(health) from t) order by name limit $1`, worstNamed)
	return worst, names, err
}
