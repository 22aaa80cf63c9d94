package group

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/platform/failure"
)

const (
	// upkeepBatch bounds one statement, so that it neither locks nor writes for
	// long.
	upkeepBatch   = 5000
	upkeepEvery   = 5 * time.Minute
	upkeepTimeout = 30 * time.Second
)

// upkeepTasks are statements that each work on at most $1 rows.
var upkeepTasks = []struct{ what, sql string }{
	// Longer than any message can be on its way, and than any replay.
	{"forget handled messages", `
		delete from processed_messages where ctid = any(array(
		  select ctid from processed_messages where processed_at < now() - interval '30 days' limit $1))`},
	{"forget starts of messages", `
		delete from message_starts where ctid = any(array(
		  select ctid from message_starts where started_at < now() - interval '30 days' limit $1))`},
	{"remove closed dead letters", `
		delete from dead_letters where ctid = any(array(
		  select ctid from dead_letters where closed_at < now() - interval '90 days' limit $1))`},
	// A cause that comes back within the time finds its note.
	{"remove notes of dead letters", `
		delete from dead_letter_notes where ctid = any(array(
		  select ctid from dead_letter_notes n where written_at < now() - interval '90 days'
		    and not exists (select from dead_letters l
		      where l.queue = n.queue and l.error_class = n.error_class and l.error_group = n.error_group) limit $1))`},
	{"remove old replays", `
		delete from replays where ctid = any(array(
		  select ctid from replays r where ended_at < now() - interval '90 days'
		    and not exists (select from dead_letters where replay_id = r.id) limit $1))`},
	// A letter that was archived in the very moment in which its message had
	// its effect after all: neither transaction saw the other.
	{"resolve dead letters that succeeded", `
		update dead_letters set state = 'resolved', closed_at = now() where id = any(array(
		  select l.id from dead_letters l join processed_messages p on p.consumer = l.queue and p.message_id = l.message_id
		  where l.state in ('open', 'replaying') limit $1))`},
	// Sent again and never heard of: someone emptied the queue. One that waits
	// until a time has been heard of.
	{"open dead letters that got lost", `
		update dead_letters set state = 'open' where id = any(array(
		  select l.id from dead_letters l join replays r on r.id = l.replay_id
		  where l.state = 'replaying' and l.sent_at < now() - interval '1 hour' and r.ended_at is not null
		    and not exists (select from delayed_messages d where d.queue = l.queue and d.message_id = l.message_id)
		  limit $1))`},
}

// RunUpkeep keeps the tables of the groups tidy until ctx ends. Any number of
// replicas may run it: work that one of them has done is not found by the others.
func RunUpkeep(ctx context.Context, pool *pgxpool.Pool, log zerolog.Logger) error {
	return runUpkeep(ctx, func(ctx context.Context) (more bool, err error) { return Upkeep(ctx, pool) }, log)
}

func runUpkeep(ctx context.Context, upkeep func(context.Context) (more bool, err error), log zerolog.Logger) error {
	for ctx.Err() == nil {
		pieceCtx, cancel := context.WithTimeout(ctx, upkeepTimeout)
		more, err := upkeep(pieceCtx)
		cancel()
		if err != nil && ctx.Err() == nil {
			log.Warn().Str("error", failure.Describe(err)).Msg("upkeep failed, will retry")
		}
		if !more || err != nil {
			_ = backoff.Sleep(ctx, upkeepEvery/2+rand.N(upkeepEvery)) // replicas take turns by chance
		}
	}
	return nil
}

// Upkeep does the next piece of each task, and reports whether more is left.
func Upkeep(ctx context.Context, pool *pgxpool.Pool) (more bool, err error) {
	for _, task := range upkeepTasks {
		tag, err := pool.Exec(ctx, task.sql, upkeepBatch)
		if err != nil {
			return false, fmt.Errorf("%s: %w", task.what, err)
		}
		more = more || tag.RowsAffected() == upkeepBatch
	}
	return more, nil
}
