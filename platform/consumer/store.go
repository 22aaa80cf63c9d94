package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cityconnect/cityconnect/platform/audit"
	"github.com/cityconnect/cityconnect/platform/pgpool"
)

// A store is what a Consumer keeps in the database besides the effects: the
// starts of messages that were in hand when a process died, and what operators
// set for the worker pools.
type store struct {
	pool   *pgxpool.Pool
	writes func(context.Context) error // nil if nobody knows better than ping
}

// ping returns nil if the database answers.
func (s *store) ping(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	return nil
}

// writable returns nil if the database takes what effects write.
func (s *store) writable(ctx context.Context) error {
	if s.writes == nil {
		return nil
	}
	return s.writes(ctx)
}

// start records that a message of queue, which a process had when it died, is
// started again. It returns how often that happened, this time included.
func (s *store) start(ctx context.Context, queue, messageID string) (int, error) {
	return pgpool.Value[int](ctx, s.pool, "record start of message", `
		insert into message_starts as s (queue, message_id, starts)
		values ($1, $2, 1)
		on conflict (queue, message_id) do update
		set starts = s.starts + 1, started_at = now()
		returning starts`, queue, messageID)
}

// await notes that messages wait, and takes back their starts: the process has not died
// of them. The note goes when they come to an end.
func (s *store) await(ctx context.Context, queue string, messageIDs []string) error {
	return pgpool.Exec(ctx, s.pool, "note waiting messages", `
		insert into message_starts (queue, message_id, starts)
		select $1, id, 0 from unnest($2::text[]) as m (id) order by id
		on conflict (queue, message_id) do update set started_at = now(), starts = 0`, queue, messageIDs)
}

// giveBack takes back the last start of a message.
func (s *store) giveBack(ctx context.Context, queue, messageID string) error {
	return pgpool.Exec(ctx, s.pool, "take back start of message", `
		with earlier as (
			update message_starts set starts = starts - 1 where queue = $1 and message_id = $2 and starts > 1
		)
		delete from message_starts where queue = $1 and message_id = $2 and starts = 1`, queue, messageID)
}

// finish removes the starts of a message that has ended.
func (s *store) finish(ctx context.Context, queue, messageID string) error {
	return pgpool.Exec(ctx, s.pool, "remove starts of message", `delete from message_starts where queue = $1 and message_id = $2`, queue, messageID)
}

// previousSQL looks up each id by itself. A message that is a dead letter, or was one
// that an operator has discarded, is not missing: nobody knows when it will come.
const previousSQL = `
	select now(), array(
	  select p.id from unnest($2::uuid[]) as p (id)
	  where not exists (select from processed_messages m where m.consumer = $1 and m.message_id = p.id::text)
	    and not exists (select from dead_letters d where d.queue = $1 and d.message_id = p.id::text and d.state in ('open', 'discarded')))`

// previous looks for messages of queue that must have had their effects, and returns
// those that have not.
func (s *store) previous(ctx context.Context, queue string, ids []uuid.UUID) (lookup, error) {
	var l lookup
	// Planned each time: a plan that was made while the tables were empty would read
	// the whole of them.
	err := s.pool.QueryRow(ctx, previousSQL, pgx.QueryExecModeCacheDescribe, queue, ids).Scan(&l.at, &l.missing)
	if err != nil {
		return lookup{}, fmt.Errorf("look for previous messages: %w", err)
	}
	return l, nil
}

// poolSettings returns what operators set for the worker pools, by queue; one
// that no operator has touched is missing.
func (s *store) poolSettings(ctx context.Context) (map[string]PoolSettings, error) {
	pools := make(map[string]PoolSettings)
	var queue string
	var p PoolSettings
	err := pgpool.ForEach(ctx, s.pool, "read worker pools", []any{&queue, &p.Concurrency, &p.Prefetch, &p.Paused}, func() error {
		pools[queue] = p
		return nil
	}, `select queue, concurrency, prefetch, paused from worker_pools`)
	if err != nil {
		return nil, err
	}
	return pools, nil
}

// changePool applies change to the settings of queue, or to initial where there are
// none yet, and notes who did it.
func (s *store) changePool(ctx context.Context, actor, queue string, initial PoolSettings, change PoolChange) (PoolSettings, error) {
	settings := initial
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			select concurrency, prefetch, paused from worker_pools where queue = $1 for update`, queue).
			Scan(&settings.Concurrency, &settings.Prefetch, &settings.Paused)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("read worker pool: %w", err)
		}
		settings = change.Apply(settings)
		err = pgpool.Exec(ctx, tx, "write worker pool", `
			insert into worker_pools (queue, concurrency, prefetch, paused)
			values ($1, $2, $3, $4)
			on conflict (queue) do update
			set concurrency = excluded.concurrency, prefetch = excluded.prefetch,
			  paused = excluded.paused, updated_at = now()`,
			queue, settings.Concurrency, settings.Prefetch, settings.Paused)
		if err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Actor: actor, Action: audit.ChangePool, Queue: &queue}, change)
	})
	return settings, err
}
