package deadletter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// replayPortion is how many dead letters one transaction takes for a replay, or opens
// after it.
const replayPortion = 500

// CreateReplay begins a replay of the open dead letters that the request selects. The
// first portion is taken in the same transaction, and the others by a Replayer before it
// sends any. Until then another replay is refused, so that a second request of the same
// finds none of them.
func (s *Store) CreateReplay(ctx context.Context, actor string, o ReplayRequest) (Replay, error) {
	replay := Replay{
		ID: uuid.New(), Selection: o.Selection, State: Running, PerSecond: o.PerSecond, Canary: o.Canary,
	}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// Two requests at the same moment: one of them sees the other's replay.
		if err := pgpool.Exec(ctx, tx, "lock replays", `lock table replays in share row exclusive mode`); err != nil {
			return err
		}
		taking, err := pgpool.Value[bool](ctx, tx, "find replays", `
			select exists (select from replays where state in ('running', 'paused') and take_to is not null)`)
		if err != nil {
			return err
		}
		if taking {
			return ErrTaking
		}
		replay.CreatedAt, err = pgpool.Value[time.Time](ctx, tx, "write replay", `
			insert into replays (id, selection, state, total, rate_per_s, canary)
			values ($1, $2, 'running', 0, $3, $4) returning created_at`,
			replay.ID, o.Selection, o.PerSecond, o.Canary)
		if err != nil {
			return err
		}
		if err := startTaking(ctx, tx, &replay, o.Limit); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Actor: actor, Action: audit.Replay, Replay: &replay.ID}, o)
	})
	return replay, err
}

// startTaking counts the selected dead letters, and gives the first of them to the
// replay.
func startTaking(ctx context.Context, tx pgx.Tx, replay *Replay, limit int) error {
	replay.Selection.State = Open
	where, args := selectionSQL(replay.Selection, 1)
	var last *int64
	err := tx.QueryRow(ctx, `
		select count(*), max(id) from (select id from dead_letters where `+where+` order by id limit nullif($1, 0)) selected`,
		append([]any{limit}, args...)...).Scan(&replay.Total, &last)
	if err != nil {
		return fmt.Errorf("count dead letters: %w", err)
	}
	if replay.Total == 0 {
		return ErrNothing
	}
	err = pgpool.Exec(ctx, tx, "write replay", `update replays set total = $2, take_to = $3 where id = $1`, replay.ID, replay.Total, last)
	if err != nil {
		return err
	}
	return takePortion(ctx, tx, replay)
}

// TakePortion gives the next dead letters to a running replay that has not taken all.
func (s *Store) TakePortion(ctx context.Context, id uuid.UUID) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		replay := Replay{ID: id}
		err := tx.QueryRow(ctx, `
			select selection from replays where id = $1 and state = 'running' and take_to is not null for update`, id).
			Scan(&replay.Selection)
		if errors.Is(err, pgx.ErrNoRows) { // an operator was faster
			return nil
		}
		if err != nil {
			return fmt.Errorf("lock replay: %w", err)
		}
		replay.Selection.State = Open
		return takePortion(ctx, tx, &replay)
	})
}

// takePortion takes dead letters for a replay whose row tx has locked. Once none is
// left, the replay's total is what it has: some may have been discarded in between.
func takePortion(ctx context.Context, tx pgx.Tx, replay *Replay) error {
	where, args := selectionSQL(replay.Selection, 2)
	tag, err := tx.Exec(ctx, `
		update dead_letters set state = 'replaying', replay_id = $1, sent_at = null
		where id in (select id from dead_letters where `+where+`
		  and id <= (select take_to from replays where id = $1)
		  order by id limit $2 for update skip locked)`,
		append([]any{replay.ID, replayPortion}, args...)...)
	if err != nil {
		return fmt.Errorf("select dead letters: %w", err)
	}
	replay.Pending, replay.Taking = int(tag.RowsAffected()), true
	if tag.RowsAffected() == replayPortion {
		return nil
	}
	replay.Taking = false
	replay.Total, err = pgpool.Value[int](ctx, tx, "write replay", `
		update replays set take_to = null, total = (
		  select count(*) from dead_letters where replay_id = $1 and state = 'replaying')
		where id = $1 returning total`, replay.ID)
	return err
}

// ClaimReplay leases to owner a replay that has no other owner: a running one, or one
// that has ended and has dead letters to open.
func (s *Store) ClaimReplay(ctx context.Context, owner uuid.UUID, lease time.Duration) (*Replay, error) {
	var id uuid.UUID
	err := s.pool.QueryRow(ctx, `
		update replays set owner = $1, lease_until = now() + $2
		where id = (
		  select id from replays
		  where (state = 'running' or reopening) and (owner = $1 or lease_until is null or lease_until < now())
		  order by lease_until nulls first, created_at limit 1 for update skip locked)
		returning id`, owner, lease).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("claim replay: %w", err)
	}
	replay, err := s.Replay(ctx, id)
	return &replay, err
}

// ReleaseReplay ends owner's lease.
func (s *Store) ReleaseReplay(ctx context.Context, id, owner uuid.UUID) error {
	return pgpool.Exec(ctx, s.pool, "release replay", `update replays set lease_until = now() where id = $1 and owner = $2`, id, owner)
}

// PendingMessages returns up to limit dead letters of the replay that are to
// be sent.
func (s *Store) PendingMessages(ctx context.Context, id uuid.UUID, limit int) ([]ReplayMessage, error) {
	return pgpool.Collect(ctx, s.pool, "read dead letters to send", pgx.RowToStructByPos[ReplayMessage], `
		select id, queue, message_id, type, body, properties, headers from dead_letters
		where replay_id = $1 and state = 'replaying' and sent_at is null
		order by id limit $2`, id, limit)
}

// MarkSent notes that the dead letters of the replay were sent. Some may already be
// resolved.
func (s *Store) MarkSent(ctx context.Context, id uuid.UUID, letters []int64) error {
	return pgpool.Exec(ctx, s.pool, "note dead letters as sent", `
		update dead_letters set sent_at = now() where replay_id = $1 and id = any($2)`, id, letters)
}

// EndReplay puts a running replay into an end state. Dead letters that were not sent
// are opened again, in portions.
func (s *Store) EndReplay(ctx context.Context, id uuid.UUID, state ReplayState, reason string) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		err := pgpool.Exec(ctx, tx, "end replay", `
			update replays set state = $2, reason = $3, ended_at = now(), lease_until = null, take_to = null, reopening = true
			where id = $1 and state in ('running', 'paused')`, id, state, reason)
		if err != nil {
			return err
		}
		return reopenPortion(ctx, tx, id)
	})
}

// ReopenPortion opens the next dead letters that a replay which has ended did not send.
func (s *Store) ReopenPortion(ctx context.Context, id uuid.UUID) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return reopenPortion(ctx, tx, id) })
}

func reopenPortion(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	tag, err := tx.Exec(ctx, `
		update dead_letters set state = 'open', replay_id = null where id = any(array(
		  select id from dead_letters where replay_id = $1 and state = 'replaying' and sent_at is null
		  order by id limit $2 for update))`, id, replayPortion)
	if err != nil {
		return fmt.Errorf("open dead letters that were not sent: %w", err)
	}
	if tag.RowsAffected() == replayPortion {
		return nil
	}
	return pgpool.Exec(ctx, tx, "write replay", `update replays set reopening = false, lease_until = null where id = $1`, id)
}

// replaySQL reads replays with their progress. Returned messages count by the
// attempts, because another replay may have taken them since. A selection of ids
// says nothing to a reader: their queues and causes do.
const replaySQL = `
select r.id, r.created_at, r.selection, r.state, r.total, r.rate_per_s, r.canary, r.reason, r.ended_at,
  coalesce(a.actor, ''), w.queues, w.causes, r.take_to is not null, r.reopening, p.pending, p.in_flight, p.resolved, f.failed, p.last_sent
from replays r
left join (
  select replay_id, min(actor) as actor from operations_audit
  where action = 'replay' and replay_id is not null group by replay_id) a on a.replay_id = r.id
cross join lateral (
  select coalesce(array_agg(distinct queue), '{}') as queues, coalesce((array_agg(distinct error_group))[:5], '{}') as causes
  from dead_letters where id in (select jsonb_array_elements_text(r.selection -> 'ids')::bigint)) w
cross join lateral (
  select count(*) filter (where state = 'replaying' and sent_at is null) as pending,
    count(*) filter (where state = 'replaying' and sent_at is not null) as in_flight,
    count(*) filter (where state = 'resolved') as resolved,
    max(sent_at) as last_sent
  from dead_letters where replay_id = r.id) p
cross join lateral (
  select count(distinct dead_letter_id) as failed from dead_letter_attempts where replay_id = r.id) f `

// Replay returns a replay with its progress.
func (s *Store) Replay(ctx context.Context, id uuid.UUID) (Replay, error) {
	return pgpool.One(ctx, s.pool, "read replay", ErrNoReplay, pgx.RowToStructByPos[Replay], replaySQL+`where r.id = $1`, id)
}

// Replays returns the latest replays, newest first.
func (s *Store) Replays(ctx context.Context, limit int) ([]Replay, error) {
	return pgpool.Collect(ctx, s.pool, "list replays", pgx.RowToStructByPos[Replay], replaySQL+`order by r.created_at desc limit $1`, limit)
}

// SetReplayState moves a replay that has not ended into state: paused, running
// again, or cancelled, which opens the dead letters that were not sent, in portions.
func (s *Store) SetReplayState(ctx context.Context, actor string, id uuid.UUID, state ReplayState) (Replay, error) {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			update replays set state = $2, lease_until = null, ended_at = case when $2 = 'cancelled' then now() end,
			  take_to = case when $2 = 'cancelled' then null else take_to end, reopening = $2 = 'cancelled'
			where id = $1 and state in ('running', 'paused')`, id, state)
		if err != nil {
			return fmt.Errorf("set state of replay: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return ErrEnded
		}
		if state == Cancelled {
			if err := reopenPortion(ctx, tx, id); err != nil {
				return err
			}
		}
		return audit.Write(ctx, tx, audit.Entry{Actor: actor, Action: audit.Action("replay_" + state), Replay: &id}, nil)
	})
	if err != nil && !errors.Is(err, ErrEnded) {
		return Replay{}, err
	}
	replay, readErr := s.Replay(ctx, id) // distinguishes an ended one from a missing one
	if readErr != nil {
		return Replay{}, readErr
	}
	return replay, err
}
