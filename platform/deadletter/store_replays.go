package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/audit"
)

// CreateReplay begins a replay of the open dead letters that the request
// selects. They are taken in the same transaction, so that a second request of
// the same finds none of them.
func (s *Store) CreateReplay(ctx context.Context, actor string, o ReplayRequest) (Replay, error) {
	replay := Replay{
		ID: uuid.New(), Selection: o.Selection, State: Running, PerSecond: o.PerSecond, Canary: o.Canary,
	}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			insert into replays (id, selection, state, total, rate_per_s, canary)
			values ($1, $2, 'running', 0, $3, $4) returning created_at`,
			replay.ID, o.Selection, o.PerSecond, o.Canary).Scan(&replay.CreatedAt)
		if err != nil {
			return fmt.Errorf("write replay: %w", err)
		}
		if err := take(ctx, tx, &replay, o.Limit); err != nil {
			return err
		}
		detail, err := json.Marshal(o)
		if err != nil {
			return fmt.Errorf("encode replay request: %w", err)
		}
		return audit.Write(ctx, tx, audit.Entry{Actor: actor, Action: audit.Replay, Replay: &replay.ID, Detail: detail})
	})
	return replay, err
}

// take gives the selected dead letters to the replay.
func take(ctx context.Context, tx pgx.Tx, replay *Replay, limit int) error {
	replay.Selection.State = Open
	where, args := selectionSQL(replay.Selection, 2)
	tag, err := tx.Exec(ctx, `
		update dead_letters set state = 'replaying', replay_id = $1, sent_at = null
		where id in (select id from dead_letters where `+where+`
		  order by id limit nullif($2, 0) for update skip locked)`,
		append([]any{replay.ID, limit}, args...)...)
	if err != nil {
		return fmt.Errorf("select dead letters: %w", err)
	}
	replay.Total = int(tag.RowsAffected())
	replay.Pending = replay.Total
	if replay.Total == 0 {
		return ErrNothing
	}
	if _, err := tx.Exec(ctx, `update replays set total = $2 where id = $1`, replay.ID, replay.Total); err != nil {
		return fmt.Errorf("write replay: %w", err)
	}
	return nil
}

// ClaimReplay leases to owner a running replay that has no other owner.
func (s *Store) ClaimReplay(ctx context.Context, owner uuid.UUID, lease time.Duration) (*Replay, error) {
	var id uuid.UUID
	err := s.pool.QueryRow(ctx, `
		update replays set owner = $1, lease_until = now() + $2
		where id = (
		  select id from replays
		  where state = 'running' and (owner = $1 or lease_until is null or lease_until < now())
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
	_, err := s.pool.Exec(ctx, `update replays set lease_until = now() where id = $1 and owner = $2`, id, owner)
	if err != nil {
		return fmt.Errorf("release replay: %w", err)
	}
	return nil
}

// PendingMessages returns up to limit dead letters of the replay that are to
// be sent.
func (s *Store) PendingMessages(ctx context.Context, id uuid.UUID, limit int) ([]ReplayMessage, error) {
	rows, err := s.pool.Query(ctx, `
		select id, queue, message_id, type, body, properties, headers from dead_letters
		where replay_id = $1 and state = 'replaying' and sent_at is null
		order by id limit $2`, id, limit)
	if err != nil {
		return nil, fmt.Errorf("read dead letters to send: %w", err)
	}
	messages, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ReplayMessage])
	if err != nil {
		return nil, fmt.Errorf("read dead letters to send: %w", err)
	}
	return messages, nil
}

// MarkSent notes that the dead letters of the replay were sent. Some may already be
// resolved.
func (s *Store) MarkSent(ctx context.Context, id uuid.UUID, letters []int64) error {
	_, err := s.pool.Exec(ctx, `
		update dead_letters set sent_at = now() where replay_id = $1 and id = any($2)`, id, letters)
	if err != nil {
		return fmt.Errorf("note dead letters as sent: %w", err)
	}
	return nil
}

// EndReplay puts a running replay into an end state. Dead letters that were not sent
// are open again.
func (s *Store) EndReplay(ctx context.Context, id uuid.UUID, state ReplayState, reason string) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			update replays set state = $2, reason = $3, ended_at = now(), lease_until = null
			where id = $1 and state in ('running', 'paused')`, id, state, reason)
		if err != nil {
			return fmt.Errorf("end replay: %w", err)
		}
		return reopenUnsent(ctx, tx, id)
	})
}

func reopenUnsent(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	_, err := tx.Exec(ctx, `
		update dead_letters set state = 'open', replay_id = null
		where replay_id = $1 and state = 'replaying' and sent_at is null`, id)
	if err != nil {
		return fmt.Errorf("open dead letters that were not sent: %w", err)
	}
	return nil
}

// replaySQL reads replays with their progress. Returned messages count by the
// attempts, because another replay may have taken them since. A selection of ids
// says nothing to a reader: their queues and causes do.
const replaySQL = `
select r.id, r.created_at, r.selection, r.state, r.total, r.rate_per_s, r.canary, r.reason, r.ended_at,
  coalesce(a.actor, ''), w.queues, w.causes, p.pending, p.in_flight, p.resolved, f.failed, p.last_sent
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
	rows, err := s.pool.Query(ctx, replaySQL+`where r.id = $1`, id)
	if err != nil {
		return Replay{}, fmt.Errorf("read replay: %w", err)
	}
	replay, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Replay])
	if errors.Is(err, pgx.ErrNoRows) {
		return Replay{}, ErrNoReplay
	}
	if err != nil {
		return Replay{}, fmt.Errorf("read replay: %w", err)
	}
	return replay, nil
}

// Replays returns the latest replays, newest first.
func (s *Store) Replays(ctx context.Context, limit int) ([]Replay, error) {
	rows, err := s.pool.Query(ctx, replaySQL+`order by r.created_at desc limit $1`, limit)
	if err != nil {
		return nil, fmt.Errorf("list replays: %w", err)
	}
	replays, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Replay])
	if err != nil {
		return nil, fmt.Errorf("list replays: %w", err)
	}
	return replays, nil
}

// SetReplayState moves a replay that has not ended into state: paused, running
// again, or cancelled, which opens the dead letters that were not sent.
func (s *Store) SetReplayState(ctx context.Context, actor string, id uuid.UUID, state ReplayState) (Replay, error) {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			update replays set state = $2, lease_until = null, ended_at = case when $2 = 'cancelled' then now() end
			where id = $1 and state in ('running', 'paused')`, id, state)
		if err != nil {
			return fmt.Errorf("set state of replay: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return ErrEnded
		}
		if state == Cancelled {
			if err := reopenUnsent(ctx, tx, id); err != nil {
				return err
			}
		}
		return audit.Write(ctx, tx, audit.Entry{Actor: actor, Action: audit.Action("replay_" + state), Replay: &id})
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
