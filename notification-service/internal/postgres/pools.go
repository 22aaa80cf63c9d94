package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/notification-service/internal/consumer"
)

// PoolSettings returns what operators set for the worker pools, by queue.
func (s *Store) PoolSettings(ctx context.Context) (map[string]consumer.PoolSettings, error) {
	rows, err := s.pool.Query(ctx, `select queue, concurrency, prefetch, paused from worker_pools`)
	if err != nil {
		return nil, fmt.Errorf("read worker pools: %w", err)
	}
	pools := make(map[string]consumer.PoolSettings)
	var queue string
	var p consumer.PoolSettings
	_, err = pgx.ForEachRow(rows, []any{&queue, &p.Concurrency, &p.Prefetch, &p.Paused}, func() error {
		pools[queue] = p
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read worker pools: %w", err)
	}
	return pools, nil
}

// ChangePool keeps the settings that change makes of those of queue, or of
// initial where there are none yet, and notes who did it.
func (s *Store) ChangePool(ctx context.Context, actor, queue string, initial consumer.PoolSettings, change consumer.PoolChange) (consumer.PoolSettings, error) {
	settings := initial
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			select concurrency, prefetch, paused from worker_pools where queue = $1 for update`, queue).
			Scan(&settings.Concurrency, &settings.Prefetch, &settings.Paused)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("read worker pool: %w", err)
		}
		settings = change.Apply(settings)
		_, err = tx.Exec(ctx, `
			insert into worker_pools (queue, concurrency, prefetch, paused)
			values ($1, $2, $3, $4)
			on conflict (queue) do update
			set concurrency = excluded.concurrency, prefetch = excluded.prefetch,
			  paused = excluded.paused, updated_at = now()`,
			queue, settings.Concurrency, settings.Prefetch, settings.Paused)
		if err != nil {
			return fmt.Errorf("write worker pool: %w", err)
		}
		detail, err := json.Marshal(change)
		if err != nil {
			return fmt.Errorf("encode change of worker pool: %w", err)
		}
		return audit(ctx, tx, auditEntry{actor: actor, action: "change_pool", queue: queue, detail: detail})
	})
	return settings, err
}
