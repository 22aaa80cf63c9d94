package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/notification-service/internal/deadletter"
)

// archiveSQL keeps one letter. The same letter may come twice, when the
// archiver died between the commit and the ack: it is known by the moment of
// its failure. One whose message has had its effect meanwhile is resolved.
const archiveSQL = `
with kept as (
  insert into dead_letters as l (queue, message_id, type, body, properties, headers,
    error_class, error, error_group, first_failed_at, failed_at, replay_id, state, closed_at)
  select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, (select id from replays where id = $14),
    case when done then 'resolved' else 'open' end, case when done then now() end
  from (select exists (select from processed_messages where consumer = $1 and message_id = $2) as done) as p
  where not exists (select from dead_letters where queue = $1 and message_id = $2 and failed_at = $11)
  on conflict (queue, message_id) where state in ('open', 'replaying') do update
  set deaths = l.deaths + 1, headers = excluded.headers, state = excluded.state, closed_at = excluded.closed_at,
    error_class = excluded.error_class, error = excluded.error, error_group = excluded.error_group,
    failed_at = excluded.failed_at
  where l.failed_at < excluded.failed_at
  returning id
)
insert into dead_letter_attempts (dead_letter_id, failed_at, retries, retry_reason, error_class, error, replay_id)
select id, $11, $12, $13, $7, $8, $14 from kept`

// Archive keeps the letters in one transaction.
func (s *Store) Archive(ctx context.Context, letters []deadletter.Letter) error {
	batch := &pgx.Batch{}
	for _, l := range letters {
		batch.Queue(archiveSQL, l.Queue, l.MessageID, l.Type, l.Body, l.Properties, l.Headers,
			l.Class, l.Error, l.Group, l.FirstFailedAt, l.FailedAt, l.Retries, l.RetryReason, l.Replay)
	}
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("archive dead letters: %w", err)
	}
	return nil
}
