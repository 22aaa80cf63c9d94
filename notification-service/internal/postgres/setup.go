package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// Setups keep what operators have ticked in the list of what a city needs.
type Setups struct {
	pool *pgxpool.Pool
}

// A Setup is what the database knows of that list.
type Setup struct {
	Done       []string   // what operators have ticked
	ArchivedAt *time.Time // when the server last archived a segment of its log; nil is never
}

// Read reads the list, and the server's archive.
func (s *Setups) Read(ctx context.Context) (Setup, error) {
	return pgpool.One(ctx, s.pool, "read setup", pgx.ErrNoRows, pgx.RowToStructByPos[Setup], `
		select coalesce((select done from setup), '{}'), last_archived_time from pg_stat_archiver`)
}

// Set replaces what is ticked, and records who did.
func (s *Setups) Set(ctx context.Context, actor string, done []string) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		err := pgpool.Exec(ctx, tx, "write setup", `insert into setup (done) values ($1) on conflict (one) do update set done = excluded.done`, done)
		if err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Actor: actor, Action: audit.Setup}, map[string]any{"done": done})
	})
}
