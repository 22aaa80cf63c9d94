// Package audit keeps what operators did, and why: one row of
// operations_audit for each operation, written in its transaction.
package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// An Entry is something that an operator did, to which dead letter, replay or
// queue. ID and At are the database's.
type Entry struct {
	ID         int64
	At         time.Time
	Actor      string
	Action     Action
	DeadLetter *int64
	Replay     *uuid.UUID
	Queue      *string
	Detail     json.RawMessage
}

// Write writes e, with detail as JSON, in the transaction of the act that it records. The
// detail may be nil.
func Write(ctx context.Context, tx pgx.Tx, e Entry, detail any) error {
	if !slices.Contains(actions, e.Action) {
		return fmt.Errorf("write audit: no action %q", e.Action)
	}
	if detail == nil {
		detail = struct{}{}
	}
	return pgpool.Exec(ctx, tx, "write audit", `
		insert into operations_audit (actor, action, dead_letter_id, replay_id, queue, detail)
		values ($1, $2, $3, $4, $5, $6)`,
		e.Actor, e.Action, e.DeadLetter, e.Replay, e.Queue, detail)
}

// List returns what operators did, the latest first, below id before; before 0
// begins at the latest.
func List(ctx context.Context, pool *pgxpool.Pool, before int64, limit int) ([]Entry, error) {
	return pgpool.Collect(ctx, pool, "read audit", pgx.RowToStructByPos[Entry], `
		select id, at, actor, action, dead_letter_id, replay_id, queue, detail from operations_audit
		where $1::bigint = 0 or id < $1 order by id desc limit $2`, before, limit)
}
