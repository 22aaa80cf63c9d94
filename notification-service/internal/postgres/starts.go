package postgres

import (
	"context"
	"fmt"
)

// Start notes that a message of queue which was in hand when a process died
// is started again, and returns how often that happened, this time included.
func (s *Store) Start(ctx context.Context, queue, messageID string) (int, error) {
	var starts int
	err := s.pool.QueryRow(ctx, `
		insert into message_starts as s (queue, message_id, starts)
		values ($1, $2, 1)
		on conflict (queue, message_id) do update
		set starts = s.starts + 1, started_at = now()
		returning starts`, queue, messageID).Scan(&starts)
	if err != nil {
		return 0, fmt.Errorf("note start of message: %w", err)
	}
	return starts, nil
}

// Finish forgets the starts of a message that came to an end.
func (s *Store) Finish(ctx context.Context, queue, messageID string) error {
	_, err := s.pool.Exec(ctx, `delete from message_starts where queue = $1 and message_id = $2`, queue, messageID)
	if err != nil {
		return fmt.Errorf("forget starts of message: %w", err)
	}
	return nil
}

// Ping tells whether the database answers at all.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	return nil
}
