package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/audit"
)

// Setups keep what operators have ticked in the list of what a city needs.
type Setups struct {
	pool *pgxpool.Pool
}

// A Setup is what the database knows of that list.
type Setup struct {
	Done       []string  // what operators have ticked
	ArchivedAt time.Time // when the server last archived a segment of its log, or zero
}

// Read reads the list, and the server's archive.
func (s *Setups) Read(ctx context.Context) (Setup, error) {
	var setup Setup
	var archivedAt *time.Time
	err := s.pool.QueryRow(ctx, `
		select coalesce((select done from setup), '{}'), last_archived_time from pg_stat_archiver`).Scan(&setup.Done, &archivedAt)
	if err != nil {
		return Setup{}, fmt.Errorf("read setup: %w", err)
	}
	if archivedAt != nil {
		setup.ArchivedAt = *archivedAt
	}
	return setup, nil
}

// Set replaces what is ticked, and records who did.
func (s *Setups) Set(ctx context.Context, actor string, done []string) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into setup (done) values ($1) on conflict (one) do update set done = excluded.done`, done)
		if err != nil {
			return fmt.Errorf("write setup: %w", err)
		}
		return audit.Write(ctx, tx, audit.Entry{Actor: actor, Action: audit.Setup}, map[string]any{"done": done})
	})
}
