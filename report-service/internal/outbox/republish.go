package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

const (
	// republishRows is how many messages are put back at a time.
	republishRows = 500
	// consumersKnow is for how long consumers drop a message that they had, less
	// a day. What is older is not published again: it would have its effect twice.
	consumersKnow = 29 * 24 * time.Hour
)

// A Window is when messages were published: from Since on, and before Until.
// Without an Until it ends now.
type Window struct{ Since, Until time.Time }

// publishedSQL is the oldest rows of a window.
const publishedSQL = `
	select id from outbox_messages
	where status = 'published' and published_at >= $1 and published_at < $2
	order by published_at, seq limit $3`

// toTheEndSQL puts rows at the end by writing them anew: the relay reads in the
// order of seq, which has to rise with the order of publishing.
const toTheEndSQL = `
	with oldest as materialized (` + publishedSQL + `), taken as (
		delete from outbox_messages where id in (select id from oldest) and status = 'published'
		returning id, routing_key, payload, created_at, published_at, seq, report_id, report_version, shard, headers
	), put as (
		insert into outbox_messages (id, routing_key, payload, created_at, report_id, report_version, shard, headers)
		select id, routing_key, payload, created_at, report_id, report_version, shard, headers
		from taken order by published_at, seq
		returning shard
	)
	select (select count(*) from oldest), (select count(*) from put), array(select distinct shard from put)`

// inPlaceSQL makes rows pending that keep their place.
const inPlaceSQL = `
	with oldest as materialized (` + publishedSQL + `), put as (
		update outbox_messages
		set status = 'pending', published_at = null, retry_count = 0, last_error = null, next_attempt_at = null
		where id in (select id from oldest) and status = 'published'
		returning shard
	)
	select (select count(*) from oldest), (select count(*) from put), array(select distinct shard from put)`

// Republish puts what was published within a window behind all that waits, in
// the same order and under the same ids, as far as it is kept. It is for when
// those who had the messages lost them: the notifications database was restored,
// or a queue was deleted. Whoever has a message still drops it by its id, so that
// it may be called again, also after one that broke off.
//
// After each batch, tell is called with how many were put back so far, and how
// many there are.
func (s *Store) Republish(ctx context.Context, w Window, tell func(done, total int64)) error {
	return s.putBack(ctx, toTheEndSQL, w, tell)
}

// PutBack makes all pending again that was published, as far as it is kept, and
// in its place: before what was not published yet. It is for when no relay
// publishes, because its readers do not look back at once.
func (s *Store) PutBack(ctx context.Context, tell func(done, total int64)) error {
	return s.putBack(ctx, inPlaceSQL, Window{}, tell)
}

func (s *Store) putBack(ctx context.Context, sql string, w Window, tell func(done, total int64)) error {
	var until *time.Time
	if !w.Until.IsZero() {
		until = &w.Until
	}
	var total int64
	// The end is fixed: what is published anew meanwhile is not put back again.
	err := s.pool.QueryRow(ctx, `
		with ends as (
			select greatest($1, now() - $3::interval) as since, least(coalesce($2, now()), now()) as until
		)
		select since, until, (
			select count(*) from outbox_messages where status = 'published' and published_at >= since and published_at < until)
		from ends`, w.Since, until, consumersKnow).Scan(&w.Since, &w.Until, &total)
	if err != nil {
		return fmt.Errorf("count what was published: %w", err)
	}
	for done := int64(0); ; {
		var found, put int64
		var numbers []int16
		if err := s.pool.QueryRow(ctx, sql, w.Since, w.Until, republishRows).Scan(&found, &put, &numbers); err != nil {
			return fmt.Errorf("put messages back: %w", err)
		}
		if found == 0 { // rows that were found and not put were so by somebody else
			return nil
		}
		var woken shards.Set
		for _, shard := range numbers {
			woken = woken.Add(shard)
		}
		s.wake(woken)
		done += put
		tell(done, max(done, total))
	}
}
