package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

const (
	// republishRows is how many messages are made pending in one transaction.
	republishRows = 500
	// consumersKnow is how long consumers recognise a message, less a day.
	// Older messages are not published again: they would take effect twice.
	consumersKnow = 29 * 24 * time.Hour
)

// A Window selects messages by the time when they were published: from Since
// on, and before Until. Without Until it ends now.
type Window struct{ Since, Until time.Time }

// publishedSQL selects the oldest rows of a window.
const publishedSQL = `
	select id from outbox_messages
	where status = 'published' and published_at >= $1 and published_at < $2
	order by published_at, seq limit $3`

// toTheEndSQL moves rows to the end by inserting them again: the relay reads in
// the order of seq, which must rise in the order of publishing.
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

// inPlaceSQL makes rows pending in their old place.
const inPlaceSQL = `
	with oldest as materialized (` + publishedSQL + `), put as (
		update outbox_messages
		set status = 'pending', published_at = null, retry_count = 0, last_error = null, next_attempt_at = null
		where id in (select id from oldest) and status = 'published'
		returning shard
	)
	select (select count(*) from oldest), (select count(*) from put), array(select distinct shard from put)`

// Republish makes the messages of a window pending again, behind all pending
// ones, in the same order and under the same ids, as far as they are kept. It
// is for consumers that lost messages: the notifications database was restored,
// or a queue was deleted. Consumers that still know a message drop it by its
// id, so Republish may be repeated, also after it broke off.
//
// After each batch it calls tell with the number of messages done so far, and
// with the total.
func (s *Store) Republish(ctx context.Context, w Window, tell func(done, total int64)) error {
	return s.putBack(ctx, toTheEndSQL, w, tell)
}

// PutBack makes all published messages pending again, as far as they are kept,
// in their old place: before those that were not published yet. No relay may
// publish at the same time, because its readers do not look back at once.
func (s *Store) PutBack(ctx context.Context, tell func(done, total int64)) error {
	return s.putBack(ctx, inPlaceSQL, Window{}, tell)
}

func (s *Store) putBack(ctx context.Context, sql string, w Window, tell func(done, total int64)) error {
	var until *time.Time
	if !w.Until.IsZero() {
		until = &w.Until
	}
	var total int64
	// The end is fixed, so that messages are not republished again while this
	// runs.
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
		if found == 0 { // found rows that did not change were changed by another process
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
