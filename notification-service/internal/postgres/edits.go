package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/notification-service/internal/deadletter"
)

// Edit replaces an open dead letter by one with another body and another
// message id, and closes the one that it was. The new one is open: a replay
// sends it.
func (s *Store) Edit(ctx context.Context, actor string, id int64, e deadletter.Edit) (int64, error) {
	var child int64
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			insert into dead_letters (queue, message_id, type, body, properties, headers, error_class, error,
			  error_group, first_failed_at, failed_at, parent_id)
			select queue, $2, type, $3, properties, headers, error_class, error, error_group, first_failed_at, failed_at, id
			from dead_letters where id = $1 and state = 'open' for update
			returning id`, id, e.ID, e.Body).Scan(&child)
		if errors.Is(err, pgx.ErrNoRows) {
			return deadletter.ErrNotOpen
		}
		if err != nil {
			return fmt.Errorf("write edited dead letter: %w", err)
		}
		_, err = tx.Exec(ctx, `
			update dead_letters set state = 'discarded', closed_at = now(), close_reason = $2 where id = $1`,
			id, fmt.Sprintf("edited as %d", child))
		if err != nil {
			return fmt.Errorf("close edited dead letter: %w", err)
		}
		detail, err := json.Marshal(map[string]any{"edited_as": child, "changes": e.Changes})
		if err != nil {
			return fmt.Errorf("encode audit: %w", err)
		}
		return audit(ctx, tx, auditEntry{actor: actor, action: "edit", deadLetter: &id, detail: detail})
	})
	return child, err
}

// AuditLog returns what operators did, the latest first, below id before;
// before 0 begins at the latest.
func (s *Store) AuditLog(ctx context.Context, before int64, limit int) ([]deadletter.AuditEntry, error) {
	rows, err := s.pool.Query(ctx, `
		select id, at, actor, action, dead_letter_id, replay_id, queue, detail from operations_audit
		where $1 = 0 or id < $1 order by id desc limit $2`, before, limit)
	if err != nil {
		return nil, fmt.Errorf("read audit: %w", err)
	}
	entries, err := pgx.CollectRows(rows, pgx.RowToStructByPos[deadletter.AuditEntry])
	if err != nil {
		return nil, fmt.Errorf("read audit: %w", err)
	}
	return entries, nil
}
