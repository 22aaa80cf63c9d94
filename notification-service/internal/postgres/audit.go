package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/notification-service/internal/deadletter"
)

// An auditEntry says which operator did what, to which dead letter, replay or
// queue.
type auditEntry struct {
	actor, action string
	deadLetter    *int64
	replay        *uuid.UUID
	queue         string
	detail        json.RawMessage // nil is none
}

// audit writes e in the transaction of what it records.
func audit(ctx context.Context, tx pgx.Tx, e auditEntry) error {
	if e.detail == nil {
		e.detail = json.RawMessage("{}")
	}
	_, err := tx.Exec(ctx, `
		insert into operations_audit (actor, action, dead_letter_id, replay_id, queue, detail)
		values ($1, $2, $3, $4, nullif($5, ''), $6)`,
		e.actor, e.action, e.deadLetter, e.replay, e.queue, e.detail)
	if err != nil {
		return fmt.Errorf("write audit: %w", err)
	}
	return nil
}

// AuditLog returns what operators did, the latest first, below id before;
// before 0 begins at the latest.
func (s *Store) AuditLog(ctx context.Context, before int64, limit int) ([]deadletter.AuditEntry, error) {
	rows, err := s.pool.Query(ctx, `
		select id, at, actor, action, dead_letter_id, replay_id, queue, detail from operations_audit
		where $1::bigint = 0 or id < $1 order by id desc limit $2`, before, limit)
	if err != nil {
		return nil, fmt.Errorf("read audit: %w", err)
	}
	entries, err := pgx.CollectRows(rows, pgx.RowToStructByPos[deadletter.AuditEntry])
	if err != nil {
		return nil, fmt.Errorf("read audit: %w", err)
	}
	return entries, nil
}
