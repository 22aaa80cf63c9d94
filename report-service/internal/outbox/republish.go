package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

// republishRows is how many messages are put back at a time.
const republishRows = 500

// Republish puts back what was published since a time, in the same order and
// under the same ids, as far as it is kept. It is for when those who had the
// messages lost them: the notifications database was restored, or the broker is
// a new one. Whoever has a message still drops it by its id.
//
// After each batch, tell is called with how many were put back so far.
func (s *Store) Republish(ctx context.Context, since time.Time, tell func(int64)) error {
	var until time.Time // what is published anew meanwhile is not put back again
	if err := s.pool.QueryRow(ctx, `select now()`).Scan(&until); err != nil {
		return fmt.Errorf("ask the time: %w", err)
	}
	for total := int64(0); ; {
		// A row goes to the end by being written anew: the relay reads in the
		// order of seq, which has to rise with the order of publishing.
		rows, err := s.pool.Query(ctx, `
			with oldest as (
				select id from outbox_messages
				where status = 'published' and published_at >= $1 and published_at < $2
				order by published_at, seq limit $3
			), taken as (
				delete from outbox_messages where id in (select id from oldest)
				returning id, routing_key, payload, created_at, published_at, seq, report_id, report_version, shard, headers
			)
			insert into outbox_messages (id, routing_key, payload, created_at, report_id, report_version, shard, headers)
			select id, routing_key, payload, created_at, report_id, report_version, shard, headers
			from taken order by published_at, seq
			returning shard`, since, until, republishRows)
		if err != nil {
			return fmt.Errorf("put messages back: %w", err)
		}
		batch, err := pgx.CollectRows(rows, pgx.RowTo[int16])
		if err != nil {
			return fmt.Errorf("put messages back: %w", err)
		}
		var woken shards.Set
		for _, shard := range batch {
			woken = woken.Add(shard)
		}
		s.wake(woken)
		total += int64(len(batch))
		tell(total)
		if len(batch) < republishRows {
			return nil
		}
	}
}
