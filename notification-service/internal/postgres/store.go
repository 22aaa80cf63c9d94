// Package postgres keeps the notifications database: which messages have had
// their effect, the numbered streams of notifications, what their readers
// have read, and the dead letters.
package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A Store is the notifications database. It is safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// NewStore returns a Store on pool, which stays the caller's to close.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool} }

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	return nil
}
