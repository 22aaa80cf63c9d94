package postgres

import (
	"context"
	"fmt"
)

// upkeepBatch bounds one statement, so that it neither locks nor writes for
// long.
const upkeepBatch = 5000

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
	// Sent again and never heard of: someone emptied the queue.
	{"open dead letters that got lost", `
		update dead_letters set state = 'open' where id = any(array(
		  select l.id from dead_letters l join replays r on r.id = l.replay_id
		  where l.state = 'replaying' and l.sent_at < now() - interval '1 hour' and r.ended_at is not null limit $1))`},
}

// Upkeep does the next piece of each task, and tells whether more is left.
func (s *Store) Upkeep(ctx context.Context) (more bool, err error) {
	for _, task := range upkeepTasks {
		tag, err := s.pool.Exec(ctx, task.sql, upkeepBatch)
		if err != nil {
			return false, fmt.Errorf("%s: %w", task.what, err)
		}
		more = more || tag.RowsAffected() == upkeepBatch
	}
	return more, nil
}
