package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// An auditEntry says who did what, to which dead letter, replay or queue.
type auditEntry struct {
	actor, action string
	deadLetter    *int64
	replay        *uuid.UUID
	queue         string
	detail        json.RawMessage // nil is none
}

// audit notes e in the transaction of what it tells of.
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
