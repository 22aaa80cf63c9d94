package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/notification-service/internal/deadletter"
)

// replaySQL reads replays with their progress. What came back counts by the
// attempts, because another replay may have taken it since.
const replaySQL = `
select r.id, r.created_at, r.selection, r.state, r.total, r.rate_per_s, r.canary, r.reason, r.ended_at,
  p.pending, p.in_flight, p.resolved, f.failed, p.last_sent
from replays r
cross join lateral (
  select count(*) filter (where state = 'replaying' and sent_at is null) as pending,
    count(*) filter (where state = 'replaying' and sent_at is not null) as in_flight,
    count(*) filter (where state = 'resolved') as resolved,
    max(sent_at) as last_sent
  from dead_letters where replay_id = r.id) p
cross join lateral (
  select count(distinct dead_letter_id) as failed from dead_letter_attempts where replay_id = r.id) f `

// Replay returns a replay with its progress.
func (s *Store) Replay(ctx context.Context, id uuid.UUID) (deadletter.Replay, error) {
	rows, err := s.pool.Query(ctx, replaySQL+`where r.id = $1`, id)
	if err != nil {
		return deadletter.Replay{}, fmt.Errorf("read replay: %w", err)
	}
	replay, err := pgx.CollectExactlyOneRow(rows, scanReplay)
	if errors.Is(err, pgx.ErrNoRows) {
		return deadletter.Replay{}, deadletter.ErrNoReplay
	}
	if err != nil {
		return deadletter.Replay{}, fmt.Errorf("read replay: %w", err)
	}
	return replay, nil
}

// Replays returns the latest replays, newest first.
func (s *Store) Replays(ctx context.Context, limit int) ([]deadletter.Replay, error) {
	rows, err := s.pool.Query(ctx, replaySQL+`order by r.created_at desc limit $1`, limit)
	if err != nil {
		return nil, fmt.Errorf("list replays: %w", err)
	}
	replays, err := pgx.CollectRows(rows, scanReplay)
	if err != nil {
		return nil, fmt.Errorf("list replays: %w", err)
	}
	return replays, nil
}

func scanReplay(row pgx.CollectableRow) (r deadletter.Replay, err error) {
	err = row.Scan(&r.ID, &r.CreatedAt, &r.Selection, &r.State, &r.Total, &r.PerSecond, &r.Canary, &r.Reason, &r.EndedAt,
		&r.Pending, &r.InFlight, &r.Resolved, &r.Failed, &r.LastSent)
	return r, err
}

// SteerReplay moves a replay that has not ended into state: paused, running
// again, or cancelled, which opens what was not sent.
func (s *Store) SteerReplay(ctx context.Context, actor string, id uuid.UUID, state deadletter.ReplayState) (deadletter.Replay, error) {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			update replays set state = $2, lease_until = null, ended_at = case when $2 = 'cancelled' then now() end
			where id = $1 and state in ('running', 'paused')`, id, state)
		if err != nil {
			return fmt.Errorf("steer replay: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return deadletter.ErrEnded
		}
		if state == deadletter.Cancelled {
			if err := reopenUnsent(ctx, tx, id); err != nil {
				return err
			}
		}
		return audit(ctx, tx, auditEntry{actor: actor, action: "replay_" + string(state), replay: &id})
	})
	if err != nil && !errors.Is(err, deadletter.ErrEnded) {
		return deadletter.Replay{}, err
	}
	replay, readErr := s.Replay(ctx, id) // tells an ended one from none at all
	if readErr != nil {
		return deadletter.Replay{}, readErr
	}
	return replay, err
}
