package deadletter

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// A Store keeps dead letters and their replays in the database of the
// messages' effects, so that one transaction gives a message its effect and
// closes its dead letter. It is safe for concurrent use.
type Store struct {
	pool  *pgxpool.Pool
	scrub func(ctx context.Context, letters []Letter) error // nil for none
}

// NewStore returns a Store on pool, which stays the caller's to close.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// BeforeArchive has scrub remove from letters whatever must not be kept, such as
// persons who have been erased since. If it fails, the letters stay in their queue.
func (s *Store) BeforeArchive(scrub func(ctx context.Context, letters []Letter) error) {
	s.scrub = scrub
}

// archiveSQL keeps one letter. The same letter may come twice, if the archiver
// died between the commit and the ack: it is recognised by the moment of its
// failure. A letter whose message has had its effect since is resolved.
const archiveSQL = `
with kept as (
  insert into dead_letters as l (queue, message_id, type, body, properties, headers,
    error_class, error, error_group, first_failed_at, failed_at, replay_id, state, closed_at)
  select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, (select id from replays where id = $14),
    case when done then 'resolved' else 'open' end, case when done then now() end
  from (select exists (select from processed_messages where consumer = $1 and message_id = $2) as done) as p
  where not exists (select from dead_letters where queue = $1 and message_id = $2 and failed_at = $11)
  on conflict (queue, message_id) where state in ('open', 'replaying') do update
  set deaths = l.deaths + 1, headers = excluded.headers, state = excluded.state, closed_at = excluded.closed_at,
    error_class = excluded.error_class, error = excluded.error, error_group = excluded.error_group,
    failed_at = excluded.failed_at
  where l.failed_at < excluded.failed_at
  returning id
)
insert into dead_letter_attempts (dead_letter_id, failed_at, retries, retry_reason, error_class, error, replay_id)
select id, $11, $12, $13, $7, $8, $14 from kept`

// Archive keeps the letters in one transaction. A letter that is there already, or
// whose message has had its effect since, does not become open by it.
func (s *Store) Archive(ctx context.Context, letters []Letter) error {
	if s.scrub != nil {
		if err := s.scrub(ctx, letters); err != nil {
			return err
		}
	}
	batch := &pgx.Batch{}
	for _, l := range letters {
		batch.Queue(archiveSQL, l.Queue, l.MessageID, l.Type, l.Body, l.Properties, l.Headers,
			l.Class, l.Error, l.Group, l.FirstFailedAt, l.FailedAt, l.Retries, l.RetryReason, l.Replay)
	}
	batch.Queue(pgpool.BarrierSQL) // the letters are acknowledged next, also those that were there
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("archive dead letters: %w", err)
	}
	return nil
}

// selectionSQL returns the condition of a selection. Its parameters are
// numbered after the first taken ones.
func selectionSQL(s Selection, taken int) (string, []any) {
	conditions := []string{"true"}
	var args []any
	add := func(condition string, arg any) {
		args = append(args, arg)
		conditions = append(conditions, fmt.Sprintf(condition, taken+len(args)))
	}
	if len(s.IDs) > 0 {
		add("id = any($%d)", s.IDs)
	}
	if s.Replay != "" {
		add("replay_id = $%d::uuid", s.Replay)
	}
	for _, field := range []struct{ column, value string }{
		{"queue", s.Queue}, {"error_class", s.Class}, {"error_group", s.Group},
		{"type", s.Type}, {"state", string(s.State)}, {"message_id", s.MessageID},
	} {
		if field.value != "" {
			add(field.column+" = $%d", field.value)
		}
	}
	if s.Text != "" {
		condition := `(strpos(lower(error), lower($%[1]d::text)) > 0 or message_id = $%[1]d or '#' || id = '#' || ltrim($%[1]d, '#')`
		// Only an id is searched for in bodies: with a longer text, such as the
		// fields up to the voter's, an operator could find out masked values.
		if report, err := uuid.Parse(s.Text); err == nil && strings.EqualFold(report.String(), s.Text) {
			condition += ` or strpos(encode(body, 'escape'), '"report_id":"' || lower($%[1]d) || '"') > 0`
		}
		if traceID.MatchString(s.Text) {
			condition += ` or split_part(headers ->> 'traceparent', '-', 2) = $%[1]d`
		}
		add(condition+")", s.Text)
	}
	if !s.From.IsZero() {
		add("failed_at >= $%d", s.From)
	}
	if !s.To.IsZero() {
		add("failed_at < $%d", s.To)
	}
	return strings.Join(conditions, " and "), args
}

// traceID matches the id of a trace, as traceparent has it.
var traceID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// entrySQL selects the fields of an Entry in their order; a column too many or
// too few fails every query.
const entrySQL = `
select id, queue, message_id, type, error_class, error, error_group, deaths, first_failed_at, failed_at,
  archived_at, state, closed_at, close_reason, parent_id, replay_id, properties, headers, body,
  (` + noteSQL + ` where (n.queue, n.error_class, n.error_group) = (dead_letters.queue, dead_letters.error_class, dead_letters.error_group))
from dead_letters where `

// Entries returns up to limit dead letters with an id below before, newest
// first; before 0 begins at the newest.
func (s *Store) Entries(ctx context.Context, selection Selection, before int64, limit int) ([]Entry, error) {
	where, args := selectionSQL(selection, 2)
	return pgpool.Collect(ctx, s.pool, "list dead letters", pgx.RowToStructByPos[Entry], entrySQL+where+`
		and ($1::bigint = 0 or id < $1) order by id desc limit $2`, append([]any{before, limit}, args...)...)
}

// Entry returns a dead letter with its attempts, oldest first.
func (s *Store) Entry(ctx context.Context, id int64) (Entry, []Attempt, error) {
	entry, err := pgpool.One(ctx, s.pool, "read dead letter", ErrNotFound, pgx.RowToStructByPos[Entry], entrySQL+`id = $1`, id)
	if err != nil {
		return Entry{}, nil, err
	}
	attempts, err := pgpool.Collect(ctx, s.pool, "read attempts", pgx.RowToStructByPos[Attempt], `
		select failed_at, retries, retry_reason, error_class, error, replay_id
		from dead_letter_attempts where dead_letter_id = $1 order by id`, id)
	if err != nil {
		return Entry{}, nil, err
	}
	return entry, attempts, nil
}

// Groups returns the open dead letters by their cause, the largest group first.
func (s *Store) Groups(ctx context.Context, selection Selection) ([]Group, error) {
	selection.State = Open
	where, args := selectionSQL(selection, 0)
	return pgpool.Collect(ctx, s.pool, "group dead letters", pgx.RowToStructByPos[Group], `
		select g.*, (`+noteSQL+` where (n.queue, n.error_class, n.error_group) = (g.queue, g.error_class, g.error_group))
		from (
		  select queue, error_class, error_group, count(*), min(failed_at), max(failed_at), max(id)
		  from dead_letters where `+where+`
		  group by queue, error_class, error_group
		  order by count(*) desc, queue, error_group limit 500) g
		order by g.count desc, g.queue, g.error_group`, args...)
}

// Stats counts the dead letters of each queue.
func (s *Store) Stats(ctx context.Context) ([]Stat, error) {
	return pgpool.Collect(ctx, s.pool, "count dead letters", pgx.RowToStructByPos[Stat], `
		select queue, count(*) filter (where state = 'open'), count(*) filter (where state = 'replaying'),
		  count(*) filter (where state = 'resolved'), count(*) filter (where state = 'discarded'),
		  min(failed_at) filter (where state = 'open')
		from dead_letters group by queue order by queue`)
}

// Count returns how many dead letters are selected.
func (s *Store) Count(ctx context.Context, selection Selection) (int, error) {
	where, args := selectionSQL(selection, 0)
	return pgpool.Value[int](ctx, s.pool, "count dead letters", `select count(*) from dead_letters where `+where, args...)
}

// discardPortion is how many dead letters one transaction discards.
const discardPortion = 2000

// Discard closes the selected open dead letters, and returns how many. It does so in
// portions, each with an entry in the audit: what was discarded before an error stays so,
// and the same call discards the rest. Those that come after its beginning stay open.
func (s *Store) Discard(ctx context.Context, actor string, selection Selection, reason string) (int, error) {
	selection.State = Open
	where, args := selectionSQL(selection, 0)
	last, err := pgpool.Value[*int64](ctx, s.pool, "find dead letters", `select max(id) from dead_letters where `+where, args...)
	if err != nil {
		return 0, err
	}
	if last == nil {
		return 0, ErrNothing
	}
	for total, after := 0, int64(0); ; {
		n, reached, err := s.discardPortion(ctx, actor, selection, reason, after, *last)
		total += n
		if err == nil && total == 0 { // others were faster
			err = ErrNothing
		}
		if err != nil || n < discardPortion {
			return total, err
		}
		after = reached
	}
}

// discardPortion discards the first of those between two ids, and returns how many and
// the last one's id.
func (s *Store) discardPortion(ctx context.Context, actor string, selection Selection, reason string, after, last int64) (n int, reached int64, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		where, args := selectionSQL(selection, 4)
		err := tx.QueryRow(ctx, `
			with discarded as (
			  update dead_letters set state = 'discarded', closed_at = now(), close_reason = $1
			  where id in (select id from dead_letters where `+where+` and id > $2 and id <= $3 order by id limit $4 for update)
			  returning id)
			select count(*), coalesce(max(id), 0) from discarded`,
			append([]any{reason, after, last, discardPortion}, args...)...).Scan(&n, &reached)
		if err != nil {
			return fmt.Errorf("discard dead letters: %w", err)
		}
		if n == 0 {
			return nil
		}
		entry := audit.Entry{Actor: actor, Action: audit.Discard}
		if len(selection.IDs) == 1 {
			entry.DeadLetter = &selection.IDs[0]
		}
		return audit.Write(ctx, tx, entry, map[string]any{"selection": selection, "reason": reason, "discarded": n})
	})
	if err != nil {
		return 0, 0, err
	}
	return n, reached, nil
}

// Restore opens a dead letter again that was discarded, so that it can be replayed. It is
// resolved instead if its message has had its effect since: its event may have been
// replayed by the outbox. That is known for thirty days, as long as ids of handled
// messages are kept, so that older ones are refused, as is a dead letter that was replaced
// by an edited one, and one whose message has failed again and is open.
func (s *Store) Restore(ctx context.Context, actor string, id int64, reason string) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			update dead_letters l set state = case when done then 'resolved' else 'open' end,
			  closed_at = case when done then now() end, close_reason = ''
			from (select exists (
			  select from processed_messages m join dead_letters d on m.consumer = d.queue and m.message_id = d.message_id
			  where d.id = $1) as done) p
			where l.id = $1 and l.state = 'discarded' and l.closed_at > now() - interval '29 days'
			  and not exists (select from dead_letters where parent_id = $1)`, id)
		if err != nil {
			return fmt.Errorf("restore dead letter: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return ErrNotDiscarded
		}
		return audit.Write(ctx, tx, audit.Entry{Actor: actor, Action: audit.Restore, DeadLetter: &id}, map[string]string{"reason": reason})
	})
	if failed, ok := errors.AsType[*pgconn.PgError](err); ok && failed.ConstraintName == "dead_letters_live" {
		return ErrOpenAgain
	}
	return err
}

// Edit replaces an open dead letter by one with another body and another
// message id, and closes the one that it was. The new one is open: a replay
// sends it.
func (s *Store) Edit(ctx context.Context, actor string, id int64, e Edit) (int64, error) {
	var child int64
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			insert into dead_letters (queue, message_id, type, body, properties, headers, error_class, error,
			  error_group, first_failed_at, failed_at, parent_id)
			select queue, $2, type, $3, properties, headers, error_class, error, error_group, first_failed_at, failed_at, id
			from dead_letters where id = $1 and state = 'open' for update
			returning id`, id, e.ID, e.Body).Scan(&child)
		if err = pgpool.Found(err, "write edited dead letter", ErrNotOpen); err != nil {
			return err
		}
		err = pgpool.Exec(ctx, tx, "close edited dead letter", `
			update dead_letters set state = 'discarded', closed_at = now(), close_reason = $2 where id = $1`,
			id, fmt.Sprintf("edited as %d", child))
		if err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Actor: actor, Action: audit.Edit, DeadLetter: &id},
			map[string]any{"edited_as": child, "changes": e.Changes})
	})
	return child, err
}

// AuditLog returns what operators did, the latest first, below id before;
// before 0 begins at the latest.
func (s *Store) AuditLog(ctx context.Context, before int64, limit int) ([]audit.Entry, error) {
	return audit.List(ctx, s.pool, before, limit)
}
